//! The gateway's state and its live tools.

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolgate_gate::{Gate, LiveTool};

use super::{Admin, AdminError, AdminIdentity};

pub async fn state(_: AdminIdentity, State(admin): State<Admin>) -> Json<Value> {
    Json(state_of(&admin.gate))
}

fn state_of(gate: &Gate) -> Value {
    let metrics = gate.metrics();
    // Reasons with a count of zero are left out.
    let ended: Map<String, Value> = metrics
        .ends()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| (reason.code().to_owned(), count.into()))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "tools": gate.live_count(),
        "calls": { "running": metrics.running(), "released": metrics.released(), "ended": ended },
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    after: Option<String>,
    limit: Option<usize>,
}

/// In the order in which they are listed to callers.
pub async fn tools(
    _: AdminIdentity,
    State(admin): State<Admin>,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Value>, AdminError> {
    let Query(page) = page?;
    let tools = (admin.tools)();
    let start = match &page.after {
        None => 0,
        Some(name) => match tools.iter().position(|tool| tool.name() == name) {
            Some(at) => at + 1,
            None => return Err(AdminError::not_found("`after` names an unknown tool")),
        },
    };
    let limit = page.limit.unwrap_or(USUAL_PAGE).clamp(1, LARGEST_PAGE);
    let end = tools.len().min(start.saturating_add(limit));
    let shown: Vec<Value> =
        tools.get(start..end).unwrap_or_default().iter().map(|tool| entry(tool)).collect();
    let next = tools.get(start..end).and_then(<[_]>::last).filter(|_| end < tools.len());
    Ok(Json(json!({ "tools": shown, "next": next.map(|tool| tool.name()) })))
}

fn entry(tool: &LiveTool) -> Value {
    let listing = tool.listing();
    json!({
        "name": tool.name(),
        "description": listing.get("description"),
        "level": tool.level().name(),
        "annotations": listing.get("annotations"),
    })
}

const USUAL_PAGE: usize = 100;
const LARGEST_PAGE: usize = 1_000;
