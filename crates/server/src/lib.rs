//! Authentication, the HTTP front, MCP over stdio and Streamable HTTP, and the admin API.
#![forbid(unsafe_code)]

mod admin;
mod auth;
mod http;
mod mcp;
mod routes;

pub use admin::{AdminIdentity, AllTools, admin_router, prometheus_text};
pub use auth::{
    Algorithm, Anonymous, AuthIdentity, AuthSettings, AuthSettingsError, Authenticator, CallerStanding,
    Challenge, Fetch, How, IssuerSettings, KeySettings, Local, PemKey, PreparedAuth, Role, Secret,
    ThrottleSettings, TokenIdentity, TokenVerifier, issuer_name,
};
pub use http::{
    BoundFront, DoorCode, DoorEvents, Drained, FrontParts, HttpFront, HttpLimits, HttpProblem, HttpSettings,
    Peer, Readiness, RefusalLog, RefusalSummary,
};
pub use mcp::{
    CallerIdentity, CallerNow, ClientAnswers, McpSettings, SessionLimits, StateKey, StdioError,
    UNATTENDED_HEADER, router as mcp_router, serve_stdio,
};
pub use routes::{MetricsRoute, admin_routes, mcp_routes};
