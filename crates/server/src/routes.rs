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
    mcp::{CallerIdentity, McpSettings, router},
};

/// `/mcp`, `/admin/v1/…` and `/admin/metrics`, for requests that the front has let in.
pub fn routes(gate: &Gate, settings: &McpSettings, tools: &AllTools, shutdown: CancellationToken) -> Router {
    let metrics = {
        let gate = gate.clone();
        move || {
            let gate = gate.clone();
            async move { prometheus_text(&gate) }
        }
    };
    router(gate.clone(), settings, shutdown)
        .merge(admin_router(gate.clone(), Arc::clone(tools)))
        .route("/admin/metrics", get(metrics))
        .layer(from_fn(introduce))
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
