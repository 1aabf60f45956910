//! Errors of the admin API, as status and JSON.

use axum::{
    Json,
    extract::rejection::QueryRejection,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::json;
use toolgate_gate::ApprovalError;

#[derive(Debug)]
pub struct AdminError {
    status: StatusCode,
    /// Stable.
    code: &'static str,
    message: String,
}

impl AdminError {
    pub fn no_admin() -> Self {
        Self::new(StatusCode::FORBIDDEN, "no_admin", "this request needs an admin token")
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", message)
    }

    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }
}

impl From<ApprovalError> for AdminError {
    fn from(error: ApprovalError) -> Self {
        let (status, code) = match &error {
            ApprovalError::Unknown => (StatusCode::NOT_FOUND, "not_found"),
            ApprovalError::NotPending(_) => (StatusCode::CONFLICT, "not_pending"),
            ApprovalError::Expired => (StatusCode::GONE, "expired"),
            ApprovalError::OtherCall => (StatusCode::CONFLICT, "other_call"),
            ApprovalError::Unrevealed(_) => (StatusCode::CONFLICT, "unrevealed"),
            ApprovalError::OwnCall => (StatusCode::FORBIDDEN, "own_call"),
            ApprovalError::Ambiguous(_) => (StatusCode::CONFLICT, "ambiguous_id"),
            ApprovalError::ShortId => (StatusCode::BAD_REQUEST, "short_id"),
            ApprovalError::QueueFull(_) | ApprovalError::DeniedTooOften(_) => {
                (StatusCode::SERVICE_UNAVAILABLE, "queue_full")
            }
            ApprovalError::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<QueryRejection> for AdminError {
    fn from(rejection: QueryRejection) -> Self {
        Self::bad_request(rejection.body_text())
    }
}

impl IntoResponse for AdminError {
    fn into_response(self) -> Response {
        let body = json!({ "error": { "code": self.code, "message": self.message } });
        (self.status, Json(body)).into_response()
    }
}
