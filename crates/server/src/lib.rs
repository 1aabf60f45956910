//! The doors: authentication, MCP over stdio and Streamable HTTP, the admin API.
#![forbid(unsafe_code)]
