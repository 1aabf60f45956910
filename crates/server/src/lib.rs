//! The doors: authentication, MCP over stdio and Streamable HTTP, the admin API.
#![forbid(unsafe_code)]

mod admin;
mod mcp;

pub use admin::{AdminIdentity, AllTools, admin_router, prometheus_text};
pub use mcp::{
    CallerIdentity, ClientAnswers, McpSettings, SessionLimits, StateKey, StdioError, router as mcp_router,
    serve_stdio,
};
