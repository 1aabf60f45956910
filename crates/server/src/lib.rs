//! The doors: authentication, MCP over stdio and Streamable HTTP, the admin API.
#![forbid(unsafe_code)]

mod auth;
mod http;

pub use self::auth::{
    Algorithm, Anonymous, AuthSettings, AuthSettingsError, Authenticator, Challenge, Fetch, How, Identity,
    IssuerSettings, KeySettings, PemKey, Role, Secret, ThrottleSettings, TokenIdentity, TokenVerifier,
    issuer_name,
};
pub use self::http::{
    Bound, DoorCode, DoorEvents, Doors, Drained, HttpFront, HttpLimits, HttpSettings, Peer, Problem,
    Readiness,
};
