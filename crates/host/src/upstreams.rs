//! Upstream MCP servers: from the configuration to servers that can be started, and from their listings to documents.

mod document;
mod listing;
mod review;
mod server;

pub use self::{
    document::{DocumentError, UpstreamDocument, tool_document},
    listing::{ListedUpstreamTool, ReviewState, UpstreamListing},
    review::{ReviewedTool, UpstreamReview},
};
pub(crate) use self::{listing::ListingWatch, server::servers};
