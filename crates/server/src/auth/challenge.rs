//! Answers to failed authentication (RFC 6750, RFC 9728).

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};

use crate::http::{DoorCode, HttpProblem};

/// A failed authentication. Contains no part of a token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Challenge {
    pub code: DoorCode,
    /// For the caller: what is wrong and how to correct it.
    pub detail: &'static str,
    /// For the journal: which issuer, which check.
    pub to_operator: String,
    pub retry_after: Option<Duration>,
    /// The caller, if authenticated.
    pub caller: Option<String>,
    /// The required scopes, separated by spaces.
    pub scope: Option<String>,
}

impl Challenge {
    pub(crate) fn new(code: DoorCode, detail: &'static str) -> Self {
        Self { code, detail, to_operator: detail.into(), retry_after: None, caller: None, scope: None }
    }

    pub(crate) fn said_to_operator(mut self, text: impl Into<String>) -> Self {
        self.to_operator = text.into();
        self
    }

    pub(crate) fn of_caller(mut self, subject: &str) -> Self {
        self.caller = Some(subject.to_owned());
        self
    }

    pub(crate) const fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    pub(crate) fn needing(mut self, scope: String) -> Self {
        self.scope = Some(scope);
        self
    }

    /// A 403 for an authenticated caller without the required role or scope.
    pub fn insufficient_scope(detail: &'static str) -> Self {
        Self::new(DoorCode::InsufficientScope, detail)
    }

    /// The HTTP answer. `resource_metadata` is the URL of the metadata document, if any.
    pub fn into_answer(self, resource_metadata: Option<&str>) -> Response {
        let authenticate = self.www_authenticate(resource_metadata);
        let mut response = HttpProblem::new(self.code, self.detail).into_response();
        // A URL that is not a valid header value is omitted.
        if let Some(Ok(value)) = authenticate.map(HeaderValue::try_from) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
        }
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.as_secs().max(1)));
        }
        response
    }

    fn www_authenticate(&self, resource_metadata: Option<&str>) -> Option<String> {
        let error = match self.code {
            DoorCode::TokenMissing => None,
            DoorCode::TokenInvalid | DoorCode::TokenExpired => Some("invalid_token"),
            DoorCode::InsufficientScope => Some("insufficient_scope"),
            _ => return None,
        };
        let mut header = r#"Bearer realm="toolgate""#.to_owned();
        if let Some(address) = resource_metadata.filter(|address| !address.contains(['"', '\\'])) {
            header = format!(r#"{header}, resource_metadata="{address}""#);
        }
        if let Some(error) = error {
            header = format!(
                r#"{header}, error="{error}", error_description="{}""#,
                self.detail.replace('`', "'")
            );
        }
        if let Some(scope) = &self.scope {
            header = format!(r#"{header}, scope="{scope}""#);
        }
        Some(header)
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    const METADATA: &str = "https://gate.example/.well-known/oauth-protected-resource/mcp";

    #[track_caller]
    fn check(challenge: Challenge, metadata: Option<&str>, status: u16, header: Option<&str>) {
        let response = challenge.into_answer(metadata);
        assert_eq!(response.status(), StatusCode::from_u16(status).unwrap());
        let said = response.headers().get("www-authenticate").map(|value| value.to_str().unwrap());
        assert_eq!(said, header);
    }

    #[test]
    fn missing_token_is_challenged_without_error() {
        let challenge = Challenge::new(DoorCode::TokenMissing, "send a token");
        check(challenge.clone(), None, 401, Some(r#"Bearer realm="toolgate""#));
        let with = format!(r#"Bearer realm="toolgate", resource_metadata="{METADATA}""#);
        check(challenge, Some(METADATA), 401, Some(&with));
    }

    #[test]
    fn invalid_token_is_reported_as_error() {
        let expected = r#"Bearer realm="toolgate", error="invalid_token", error_description="no good""#;
        check(Challenge::new(DoorCode::TokenInvalid, "no good"), None, 401, Some(expected));
    }

    #[test]
    fn insufficient_scope_is_403() {
        let expected =
            r#"Bearer realm="toolgate", error="insufficient_scope", error_description="admins only""#;
        check(Challenge::insufficient_scope("admins only"), None, 403, Some(expected));
    }

    #[test]
    fn rate_limit_sets_retry_after() {
        let challenge = Challenge::new(DoorCode::RateLimited, "slow down").after(Duration::from_millis(10));
        let response = challenge.into_answer(Some(METADATA));
        assert_eq!(response.status(), 429);
        assert_eq!(response.headers()["retry-after"], "1");
        assert!(!response.headers().contains_key("www-authenticate"));
    }

    #[test]
    fn metadata_url_cannot_inject_parameters() {
        let expected = r#"Bearer realm="toolgate""#;
        check(
            Challenge::new(DoorCode::TokenMissing, "x"),
            Some(r#"http://a", error="x"#),
            401,
            Some(expected),
        );
    }
}
