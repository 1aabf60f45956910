//! Client side of the Model Context Protocol: connections to upstream servers, their listings and pins.
//!
//! An upstream server is untrusted. It may send anything, answer late or never, and change its tools after review.
//! This crate bounds what it reads, never waits without a deadline, and passes content on without interpreting it.
//! It knows no caller and no policy, it starts no process and opens no socket: a [`Connection`] works on any pair of
//! byte streams, or on any [`HttpClient`].
#![forbid(unsafe_code)]

mod compare;
mod connection;
mod error;
mod handshake;
mod http;
mod lines;
mod listing;
mod message;
mod oauth;
mod pin;

pub use compare::{ToolChange, compare};
pub use connection::{Connection, ConnectionLimits};
pub use error::UpstreamError;
pub use handshake::{ClientIdentity, Era, ServerIdentity};
pub use http::{
    AuthChallenge, BearerSource, EventParser, ExchangeLimits, HttpBody, HttpClient, HttpEndpoint, HttpError,
    HttpFuture, HttpMethod, HttpRequest, HttpResponse, ServerEvent,
};
pub use listing::{ToolDefinition, ToolHints};
pub use oauth::{
    ClientRegistration, OAuthClient, OAuthError, OAuthGrant, OAuthSettings, PendingAuthorization, TokenStore,
};
pub use pin::Pin;
