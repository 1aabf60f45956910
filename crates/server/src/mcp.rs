//! MCP: lists and calls tools over stdio and Streamable HTTP, in all protocol versions of the SDK.
//!
//! Translation only. The front authenticates callers; the gate decides about calls.

mod call;
mod direct;
mod elicitation;
mod envelope;
mod handler;
mod http;
mod in_flight;
mod listing;
mod logging;
mod negotiation;
mod notify;
mod reply;
mod request_state;
mod session;
mod stdio;
mod streams;

use std::{fmt, time::Duration};

use toolgate_policy::Caller;

pub use self::{
    elicitation::UNATTENDED_HEADER,
    http::router,
    stdio::{CallerNow, StdioError, serve_stdio},
};

/// The authenticated caller of an HTTP request, in its extensions. Requests without it are refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallerIdentity {
    pub caller: Caller,
}

/// Settings of the MCP server, without defaults.
#[derive(Clone, Debug)]
pub struct McpSettings {
    /// Tools on a page of `tools/list`.
    pub page_size: usize,
    pub answers: ClientAnswers,
    pub state_key: StateKey,
    /// Limit of one message: a request body, or a line over stdio.
    pub message_bytes: usize,
    pub sessions: SessionLimits,
}

/// Whether the caller's own client may approve calls. The gate enforces the same setting; this copy avoids useless questions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientAnswers {
    Taken,
    /// Only the queue answers.
    QueueOnly,
}

/// Limits of sessions, for protocol versions that have them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SessionLimits {
    pub in_all: usize,
    pub per_caller: usize,
    /// Open notification streams per caller: by GET and by `subscriptions/listen`.
    pub streams_per_caller: usize,
    /// Must be longer than any call: a silent call ends with its session.
    pub idle: Duration,
}

/// Key for the `requestState` that a client returns with its answer. All replicas need the same key.
#[derive(Clone)]
pub struct StateKey(pub [u8; 32]);

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(***)")
    }
}

const SESSION_HEADER: &str = "mcp-session-id";
