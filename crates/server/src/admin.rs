//! The admin API at `/admin/v1`: approvals, live tools and the gateway's state as JSON.
//!
//! The front authenticates admins; requests without an [`AdminIdentity`] are refused here too. `docs/admin.md` specifies the JSON.

mod approvals;
mod problem;
mod prometheus;
mod state;

use std::{fmt, sync::Arc};

use axum::{
    Router,
    extract::{DefaultBodyLimit, FromRequestParts},
    http::request::Parts,
    routing::{get, post},
};
use toolgate_gate::{Gate, LiveTool};

use self::problem::AdminError;
pub use self::prometheus::prometheus_text;

/// The authenticated admin. The front puts this into the request's extensions.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AdminIdentity {
    /// Recorded as the person who decided.
    pub name: String,
}

/// Returns all live tools in order, including those hidden from some callers.
pub type AllTools = Arc<dyn Fn() -> Vec<Arc<LiveTool>> + Send + Sync>;

pub fn admin_router(gate: Gate, tools: AllTools) -> Router {
    let api = Router::new()
        .route("/state", get(state::state))
        .route("/tools", get(state::tools))
        .route("/approvals", get(approvals::list))
        .route("/approvals/{id}", get(approvals::show))
        .route("/approvals/{id}/reveal", post(approvals::reveal))
        .route("/approvals/{id}/approve", post(approvals::approve))
        .route("/approvals/{id}/deny", post(approvals::deny))
        .fallback(async |_: AdminIdentity| AdminError::not_found("unknown path; see docs/admin.md"))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
        .with_state(Admin { gate, tools });
    Router::new().nest("/admin/v1", api)
}

#[derive(Clone)]
struct Admin {
    gate: Gate,
    tools: AllTools,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl<S: Sync> FromRequestParts<S> for AdminIdentity {
    type Rejection = AdminError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, AdminError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(AdminError::no_admin)
    }
}

const LARGEST_BODY: usize = 16 * 1024;
