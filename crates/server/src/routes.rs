//! What stands behind the front's door, and how it learns who came through it.

use std::sync::Arc;

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
    routing::get,
};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Gate;

use crate::{
    admin::{AdminIdentity, AllTools, admin_router, prometheus_text},
    auth::{Identity, Role},
    http::Refusals,
    mcp::{CallerIdentity, McpSettings, router},
};

/// `/mcp`, for requests that the front has let in.
pub fn mcp_routes(gate: &Gate, settings: &McpSettings, shutdown: CancellationToken) -> Router {
    router(gate.clone(), settings, shutdown).layer(from_fn(introduce))
}

/// `/admin/v1/…` and, where wanted, `/admin/metrics`.
pub fn admin_routes(gate: &Gate, tools: &AllTools, metrics: Metrics) -> Router {
    let mut routes = admin_router(gate.clone(), Arc::clone(tools));
    if let Metrics::Shown(refusals) = metrics {
        let gate = gate.clone();
        let text = move || {
            let (gate, refusals) = (gate.clone(), Arc::clone(&refusals));
            async move { prometheus_text(&gate, &refusals) }
        };
        routes = routes.route("/admin/metrics", get(text));
    }
    routes.layer(from_fn(introduce))
}

/// Are there metrics for Prometheus?
#[derive(Clone, Debug)]
pub enum Metrics {
    /// Beside what the gate counts, what the door refused.
    Shown(Arc<Refusals>),
    Hidden,
}

/// Each part gets to know as much of the identity as it needs.
async fn introduce(mut request: Request, next: Next) -> Response {
    if let Some(identity) = request.extensions().get::<Identity>().cloned() {
        if identity.role == Role::Admin {
            request.extensions_mut().insert(AdminIdentity { name: identity.caller.subject.clone() });
        }
        request.extensions_mut().insert(CallerIdentity { caller: identity.caller });
    }
    next.run(request).await
}
