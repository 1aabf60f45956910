//! The reasons for which the HTTP front refuses requests: one closed table for answers (RFC 9457), journal and metrics.

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

/// One row per code: variant, code, status, title, remedy.
macro_rules! door_codes {
    ($($variant:ident $code:literal $status:ident $title:literal $remedy:literal;)*) => {
        /// Stable: clients, dashboards and journal queries depend on the codes.
        #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
        pub enum DoorCode { $($variant,)* }

        impl DoorCode {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            pub const fn status(self) -> StatusCode {
                match self { $(Self::$variant => StatusCode::$status,)* }
            }

            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* }
            }

            /// A remedy for the operator or the client. `toolgate explain` prints it.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy,)* }
            }

            /// Whether authentication or authorization failed.
            pub fn is_about_the_caller(self) -> bool {
                self.code().starts_with("auth.")
            }
        }
    };
}

door_codes! {
    Malformed "http.malformed" BAD_REQUEST "the request is not valid HTTP"
        "Correct the client, or the proxy between it and the gateway.";
    UnknownCoding "http.unknown_coding" NOT_IMPLEMENTED "this transfer coding is not supported"
        "Let the client send its body with `Content-Length` or with `Transfer-Encoding: chunked`.";
    HostNotAllowed "http.host_not_allowed" MISDIRECTED_REQUEST "this host is not served here"
        "Use the address that `toolgate serve` prints, or add the name to `server.allowed_hosts`.";
    OriginNotAllowed "http.origin_not_allowed" FORBIDDEN "this origin is not allowed"
        "Add the web page's origin to `server.allowed_origins` if it may call.";
    MethodNotAllowed "http.method_not_allowed" METHOD_NOT_ALLOWED "this method is not served"
        "Use POST for `/mcp`; the answer names the methods that the path takes.";
    NotFound "http.not_found" NOT_FOUND "not found"
        "Check the path: MCP clients use `/mcp`.";
    TooLarge "http.too_large" PAYLOAD_TOO_LARGE "the request body is too large"
        "Send less in one request, or raise `server.max_request`.";
    Timeout "http.timeout" REQUEST_TIMEOUT "the request did not arrive in time"
        "Send the request faster, or raise `server.header_timeout` or `server.request_timeout`.";
    NotReady "http.not_ready" SERVICE_UNAVAILABLE "not ready"
        "Wait until the gateway has started; if it stays so, read its log and run `toolgate doctor`.";
    AcceptFailed "http.accept_failed" SERVICE_UNAVAILABLE "connections cannot be accepted"
        "Raise the limit of open files for the gateway, and look for the cause in its log.";
    TooManyConnections "http.too_many_connections" SERVICE_UNAVAILABLE "one address holds too many connections"
        "Let the client reuse its connections, or raise `server.max_connections_per_address`.";
    MessageNotJson "mcp.parse_error" BAD_REQUEST "the message is not JSON"
        "Correct the client: each message is one JSON object.";
    MessageInvalid "mcp.invalid_request" BAD_REQUEST "the message is not a JSON-RPC request"
        "Correct the client: the message lacks `jsonrpc`, `method` or another required member.";
    ParamsInvalid "mcp.invalid_params" BAD_REQUEST "the parameters of the request are wrong"
        "Correct the client: the error message names the parameter.";
    TokenMissing "auth.token_missing" UNAUTHORIZED "a token is required"
        "Send `Authorization: Bearer TOKEN`; `toolgate connect` and `toolgate token create` make tokens.";
    TokenInvalid "auth.token_invalid" UNAUTHORIZED "the token is not valid"
        "Check that the token is complete and was not revoked (`toolgate token list`), or create a new one.";
    TokenExpired "auth.token_expired" UNAUTHORIZED "the token has expired"
        "Get a new token from its issuer.";
    InsufficientScope "auth.insufficient_scope" FORBIDDEN "this token lacks the required role or scope"
        "Use a token with the role or scope that the answer names, such as one of `toolgate token create --admin`.";
    RateLimited "auth.rate_limited" TOO_MANY_REQUESTS "too many failed attempts"
        "Correct the token in the client, and try again after the time in `Retry-After`.";
    Unavailable "auth.unavailable" SERVICE_UNAVAILABLE "tokens cannot be verified at the moment"
        "Check that the gateway can read its state directory and reach the issuer's keys (`auth.jwt[].key`).";
}

/// A handler puts this into the extensions of its answer, for journal and metrics.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rejected {
    pub code: DoorCode,
    /// For operators; see [`DoorEvents::refused`](super::DoorEvents::refused).
    pub detail: String,
}

/// An error answer: code and title from the table, and a detail that says what to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpProblem {
    pub code: DoorCode,
    pub detail: String,
}

impl HttpProblem {
    pub fn new(code: DoorCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into() }
    }
}

impl IntoResponse for HttpProblem {
    fn into_response(self) -> Response {
        let status = self.code.status();
        let body = json!({
            "type": format!("urn:toolgate:problem:{}", self.code.code()),
            "title": self.code.title(),
            "status": status.as_u16(),
            "detail": self.detail,
            "code": self.code.code(),
        });
        let mut response = Response::new(Body::from(body.to_string()));
        *response.status_mut() = status;
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn codes_are_unique_and_start_with_their_part() {
        let codes: BTreeSet<&str> = DoorCode::ALL.iter().map(|code| code.code()).collect();
        assert_eq!(codes.len(), DoorCode::ALL.len());
        for code in codes {
            assert!(["http.", "mcp.", "auth."].iter().any(|part| code.starts_with(part)), "{code}");
        }
    }

    #[test]
    fn every_code_has_an_error_status() {
        for code in DoorCode::ALL {
            assert!(code.status().is_client_error() || code.status().is_server_error(), "{code:?}");
        }
    }

    #[test]
    fn caller_text_cannot_inject_headers() {
        let response = HttpProblem::new(DoorCode::Malformed, "a\"}\r\nX-Evil: 1").into_response();
        assert_eq!(response.headers().len(), 1);
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    }
}
