//! MCP: tools listed and called over stdio and Streamable HTTP, in every era of the protocol that the SDK knows.
//!
//! Translation only. Who calls is decided by the front, and what may be done by the gate.

mod ask;
mod call;
mod direct;
mod envelope;
mod http;
mod in_flight;
mod listing;
mod logging;
mod negotiation;
mod notify;
mod reply;
mod seal;
mod session;
mod stdio;
mod streams;
mod tools;

use std::{fmt, time::Duration};

use toolgate_policy::Caller;

pub use self::{
    ask::UNATTENDED_HEADER,
    http::router,
    stdio::{CallerNow, StdioError, serve_stdio},
};

/// Who makes an HTTP request, as the front found out. It puts this into the request's extensions; a request without
/// it is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CallerIdentity {
    pub caller: Caller,
}

/// What an embedder decides. Nothing in here has a default.
#[derive(Clone, Debug)]
pub struct McpSettings {
    /// Tools on a page of `tools/list`.
    pub page_size: usize,
    pub answers: ClientAnswers,
    pub state_key: StateKey,
    /// Of one message: the body of a request, or a line.
    pub message_bytes: usize,
    pub sessions: SessionLimits,
}

/// Is the person behind the caller's own client asked? The same as the gate's setting, which decides; this one only
/// keeps the door from asking in vain.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientAnswers {
    Taken,
    /// Only the queue answers.
    QueueOnly,
}

/// Sessions of the eras that have them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SessionLimits {
    pub in_all: usize,
    pub per_caller: usize,
    /// Of one caller, open at once only to be told of changes: by GET, and by `subscriptions/listen`.
    pub streams_per_caller: usize,
    /// Longer than any call may take: a call that says nothing for so long ends with its session.
    pub idle: Duration,
}

/// Seals the state that a client carries from a question to its answer. The same on every replica.
#[derive(Clone)]
pub struct StateKey(pub [u8; 32]);

impl fmt::Debug for StateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StateKey(***)")
    }
}

const SESSION_HEADER: &str = "mcp-session-id";
