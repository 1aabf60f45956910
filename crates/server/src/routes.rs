//! The routes behind the HTTP front, and how they receive the caller's identity.

use std::sync::Arc;

use axum::{Router, extract::Request, routing::get};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Gate;
use tower::util::MapRequestLayer;

use crate::{
    admin::{AdminIdentity, AllTools, admin_router, prometheus_text},
    auth::{AuthIdentity, Role},
    http::RefusalLog,
    mcp::{CallerIdentity, McpSettings, router},
};

/// `/mcp`, for authenticated requests.
pub fn mcp_routes(gate: &Gate, settings: &McpSettings, shutdown: CancellationToken) -> Router {
    router(gate.clone(), settings, shutdown).layer(MapRequestLayer::new(introduce))
}

/// `/admin/v1/…` and, if enabled, `/admin/metrics`.
pub fn admin_routes(gate: &Gate, tools: &AllTools, metrics: MetricsRoute) -> Router {
    let mut routes = admin_router(gate.clone(), Arc::clone(tools));
    if let MetricsRoute::Shown(refusals) = metrics {
        let gate = gate.clone();
        let text = move || {
            let (gate, refusals) = (gate.clone(), Arc::clone(&refusals));
            async move { prometheus_text(&gate, &refusals) }
        };
        routes = routes.route("/admin/metrics", get(text));
    }
    routes.layer(MapRequestLayer::new(introduce))
}

/// Whether Prometheus metrics are served.
#[derive(Clone, Debug)]
pub enum MetricsRoute {
    /// With the counts of the gate and of the HTTP front.
    Shown(Arc<RefusalLog>),
    Hidden,
}

/// Gives each router the part of the identity that it needs.
fn introduce(mut request: Request) -> Request {
    let Some(identity) = request.extensions().get::<AuthIdentity>() else { return request };
    let admin =
        (identity.role == Role::Admin).then(|| AdminIdentity { name: identity.caller.subject.clone() });
    let caller = CallerIdentity { caller: identity.caller.clone() };
    if let Some(admin) = admin {
        request.extensions_mut().insert(admin);
    }
    request.extensions_mut().insert(caller);
    request
}
