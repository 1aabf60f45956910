//! OAuth 2.1 for HTTP upstreams: discovery, authorization with PKCE, client credentials, and refresh.
//!
//! Errors contain no text of the authorization server, because a hostile one could repeat a token there.

mod client;
mod discovery;
mod error;
mod grant;
mod scope;
mod settings;
mod token;
mod wire;

pub use client::{OAuthClient, PendingAuthorization};
pub use error::OAuthError;
pub use settings::{ClientRegistration, OAuthGrant, OAuthSettings};
pub use token::TokenStore;

#[cfg(test)]
mod tests;
