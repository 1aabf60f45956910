//! What stands behind the front's door, and how it learns who came through it.

use std::sync::Arc;

use axum::{Router, extract::Request, routing::get};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Gate;
use tower::util::MapRequestLayer;

use crate::{
    admin::{AdminIdentity, AllTools, admin_router, prometheus_text},
    auth::{Identity, Role},
    http::Refusals,
    mcp::{CallerIdentity, McpSettings, router},
};

/// `/mcp`, for requests that the front has let in.
pub fn mcp_routes(gate: &Gate, settings: &McpSettings, shutdown: CancellationToken) -> Router {
    router(gate.clone(), settings, shutdown).layer(MapRequestLayer::new(introduce))
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
    routes.layer(MapRequestLayer::new(introduce))
}

/// Are there metrics for Prometheus?
#[derive(Clone, Debug)]
pub enum Metrics {
    /// Beside what the gate counts, what the door refused.
    Shown(Arc<Refusals>),
    Hidden,
}

/// Each part gets to know as much of the identity as it needs.
fn introduce(mut request: Request) -> Request {
    let Some(identity) = request.extensions().get::<Identity>() else { return request };
    let admin =
        (identity.role == Role::Admin).then(|| AdminIdentity { name: identity.caller.subject.clone() });
    let caller = CallerIdentity { caller: identity.caller.clone() };
    if let Some(admin) = admin {
        request.extensions_mut().insert(admin);
    }
    request.extensions_mut().insert(caller);
    request
}
