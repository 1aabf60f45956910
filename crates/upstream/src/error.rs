//! Errors of a connection to an upstream server.

use std::{fmt, time::Duration};

/// Why an upstream server did not answer as asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UpstreamError {
    /// The server ended, or closed its output.
    Closed,
    /// No answer within the deadline. The request may have taken effect.
    TimedOut { method: String, after: Duration },
    /// The server broke the protocol. The connection is closed.
    Protocol(String),
    /// The server answered with a JSON-RPC error. The message is its text: untrusted, and bounded in length.
    Server { code: i64, message: String },
    /// Too many requests wait for answers.
    Busy,
}

impl UpstreamError {
    /// Whether the server certainly did not see the request, so that sending it again is safe.
    pub const fn was_not_sent(&self) -> bool {
        matches!(self, Self::Busy)
    }

    /// An error message of the server, cut to a bounded length.
    pub(crate) fn server(code: i64, message: &str) -> Self {
        Self::Server { code, message: message.chars().take(MESSAGE_CHARS).collect() }
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => formatter.write_str("the upstream server closed the connection"),
            Self::TimedOut { method, after } => {
                write!(
                    formatter,
                    "the upstream server did not answer `{method}` within {} ms",
                    after.as_millis()
                )
            }
            Self::Protocol(why) => write!(formatter, "the upstream server broke the protocol: {why}"),
            Self::Server { code, message } => {
                write!(
                    formatter,
                    "the upstream server answered with error {code}: {}",
                    message.escape_debug()
                )
            }
            Self::Busy => formatter.write_str("too many requests wait for the upstream server"),
        }
    }
}

impl std::error::Error for UpstreamError {}

const MESSAGE_CHARS: usize = 2000;
