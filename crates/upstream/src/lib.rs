//! Client side of the Model Context Protocol: connections to upstream servers, their listings and pins.
//!
//! An upstream server is untrusted. It may send anything, answer late or never, and change its tools after review.
//! This crate bounds what it reads, never waits without a deadline, and passes content on without interpreting it.
//! It knows no caller and no policy, and it starts no process: a [`Connection`] works on any pair of byte streams.
#![forbid(unsafe_code)]

mod compare;
mod connection;
mod error;
mod handshake;
mod lines;
mod listing;
mod message;
mod pin;

pub use compare::{ToolChange, compare};
pub use connection::{Connection, ConnectionLimits};
pub use error::UpstreamError;
pub use handshake::{ClientIdentity, Era, ServerIdentity};
pub use listing::{ToolDefinition, ToolHints};
pub use pin::Pin;
