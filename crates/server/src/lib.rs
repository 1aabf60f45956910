//! The doors: authentication, MCP over stdio and Streamable HTTP, the admin API.
#![forbid(unsafe_code)]

mod admin;
mod auth;
mod http;
mod mcp;
mod routes;

pub use admin::{AdminIdentity, AllTools, admin_router, prometheus_text};
pub use auth::{
    Algorithm, Anonymous, AuthSettings, AuthSettingsError, Authenticator, CallerStanding, Challenge, Fetch,
    How, Identity, IssuerSettings, KeySettings, Local, PemKey, Prepared, Role, Secret, ThrottleSettings,
    TokenIdentity, TokenVerifier, issuer_name,
};
pub use http::{
    Bound, DoorCode, DoorEvents, Doors, Drained, HttpFront, HttpLimits, HttpSettings, Peer, Problem,
    Readiness, Refusal, Refusals,
};
pub use mcp::{
    CallerIdentity, CallerNow, ClientAnswers, McpSettings, SessionLimits, StateKey, StdioError,
    UNATTENDED_HEADER, router as mcp_router, serve_stdio,
};
pub use routes::{Metrics, admin_routes, mcp_routes};
