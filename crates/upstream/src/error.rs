//! Errors of a connection to an upstream server.

use std::{fmt, time::Duration};

use crate::AuthChallenge;

/// Why an upstream server did not answer as asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum UpstreamError {
    /// The server ended, or closed its output.
    Closed,
    /// No answer within the deadline. The request may have taken effect.
    TimedOut { method: String, after: Duration },
    /// The server broke the protocol. A connection over byte streams is closed; over HTTP only the request fails.
    Protocol(String),
    /// The server answered with a JSON-RPC error. The message is its text: untrusted, and bounded in length.
    Server { code: i64, message: String },
    /// Too many requests wait for answers.
    Busy,
    /// The request was not sent: the network rules refused it, or no connection could be opened.
    Unreachable(String),
    /// The connection ended before the answer. The request may have taken effect.
    Lost(String),
    /// The server answered with this HTTP status and without a JSON-RPC error.
    HttpStatus { status: u16 },
    /// The server forgot the session (404) and did not act on the request. A new connection starts a new session.
    SessionLost,
    /// The server wants a token (401) or a token with more scopes (403). It did not act on the request.
    Unauthorized(Box<AuthChallenge>),
    /// No usable token could be obtained. The message contains no token.
    NoToken(String),
}

impl UpstreamError {
    /// Whether the server certainly did not act on the request. Sending it again is then safe.
    pub const fn was_not_sent(&self) -> bool {
        matches!(
            self,
            Self::Busy | Self::Unreachable(_) | Self::SessionLost | Self::Unauthorized(_) | Self::NoToken(_)
        )
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
            Self::Unreachable(why) => write!(formatter, "the upstream server cannot be reached: {why}"),
            Self::Lost(why) => write!(formatter, "the upstream server sent no complete answer: {why}"),
            Self::HttpStatus { status } => {
                write!(formatter, "the upstream server answered with HTTP status {status}")
            }
            Self::SessionLost => formatter.write_str("the upstream server ended the session"),
            Self::Unauthorized(challenge) => {
                write!(formatter, "the upstream server refused access (HTTP status {})", challenge.status)
            }
            Self::NoToken(why) => write!(formatter, "there is no token for the upstream server: {why}"),
        }
    }
}

impl std::error::Error for UpstreamError {}

const MESSAGE_CHARS: usize = 2000;
