//! Errors of OAuth. None of them contains a token, a code or a text of the server.

use std::fmt;

use crate::{HttpError, UpstreamError};

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum OAuthError {
    /// The authorization server could not be reached, or the network rules refused it.
    Unreachable(String),
    /// The server's metadata is missing or cannot be used.
    Discovery(&'static str),
    /// The settings cannot be used with this server.
    Settings(&'static str),
    /// The authorization server refused, with this code from the standards.
    Refused(&'static str),
    /// The authorization server sent an invalid response.
    InvalidResponse(&'static str),
    /// The answer from the browser does not belong to the authorization that was started.
    Mismatch(&'static str),
    /// A person must authorize first.
    InteractionNeeded,
    /// The token store failed.
    Storage(String),
}

impl fmt::Display for OAuthError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(formatter, "the authorization server cannot be reached: {why}"),
            Self::Discovery(why) => {
                write!(formatter, "the server's authorization metadata is unusable: {why}")
            }
            Self::Settings(why) => write!(formatter, "the OAuth settings do not fit: {why}"),
            Self::Refused(code) => write!(formatter, "the authorization server refused: {code}"),
            Self::InvalidResponse(why) => {
                write!(formatter, "the authorization server sent an invalid response: {why}")
            }
            Self::Mismatch(why) => write!(formatter, "the authorization response was rejected: {why}"),
            Self::InteractionNeeded => formatter.write_str("a person must authorize access to this server"),
            Self::Storage(why) => write!(formatter, "the token store failed: {why}"),
        }
    }
}

impl std::error::Error for OAuthError {}

impl From<HttpError> for OAuthError {
    fn from(error: HttpError) -> Self {
        Self::Unreachable(error.to_string())
    }
}

impl From<OAuthError> for UpstreamError {
    fn from(error: OAuthError) -> Self {
        Self::NoToken(error.to_string())
    }
}

/// The code of a refusal. Only codes from the standards are repeated.
pub fn known_code(code: &str) -> &'static str {
    CODES.into_iter().find(|known| *known == code).unwrap_or("an unknown error")
}

/// The refresh token or the authorization code is no longer valid.
pub const INVALID_GRANT: &str = "invalid_grant";

const CODES: [&str; 14] = [
    "access_denied",
    "interaction_required",
    "invalid_client",
    "invalid_client_metadata",
    INVALID_GRANT,
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
];
