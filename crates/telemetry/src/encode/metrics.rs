//! Encodes all counts since the start. They are cumulative, so a lost export is covered by the next one.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolgate_gate::{IsolationLayer, Reason};
use toolgate_policy::RiskLevel;

use super::{Speaker, instant, scope, text, traces::purpose};
use crate::{
    counts::{BOUNDS, CallCount, CallCounters, Durations},
    summary::CallOutcome,
    tally::{Cause, Tally},
};

/// The body of a request to `/v1/metrics`.
pub fn metrics(
    speaker: &Speaker,
    counts: &CallCounters,
    tally: &Tally,
    started: SystemTime,
    now: SystemTime,
) -> Value {
    let window = ExportWindow { started: instant(started), now: instant(now) };
    let calls: Vec<Value> = counts.calls().map(|calls| calls_point(&window, &calls)).collect();
    let durations: Vec<Value> =
        counts.durations().map(|durations| duration_point(&window, &durations)).collect();
    let drops: Vec<Value> = Cause::ALL.into_iter().map(|cause| drop_point(&window, cause, tally)).collect();
    let mut metrics = Vec::new();
    if !calls.is_empty() {
        metrics.push(sum("toolgate.calls", "Calls that have ended.", "{call}", &calls));
        metrics.push(json!({
            "name": "toolgate.call.duration",
            "description": "Time from the arrival of a call to its end.",
            "unit": "s",
            "histogram": { "aggregationTemporality": CUMULATIVE, "dataPoints": durations },
        }));
    }
    if !counts.isolation.is_empty() {
        let points: Vec<Value> = counts.isolation.iter().map(|layer| layer_point(&window, layer)).collect();
        metrics.push(json!({
            "name": "toolgate.isolation.layer",
            "description": "Isolation layers of this host: 1 active, 0.5 partial, 0 missing.",
            "unit": "1",
            "gauge": { "dataPoints": points },
        }));
    }
    metrics.push(sum(
        "toolgate.telemetry.dropped",
        "Spans lost before the collector received them.",
        "{span}",
        &drops,
    ));
    json!({
        "resourceMetrics": [{
            "resource": speaker.resource(),
            "scopeMetrics": [{ "scope": scope(), "metrics": metrics }],
        }],
    })
}

struct ExportWindow {
    started: String,
    now: String,
}

fn sum(name: &str, description: &str, unit: &str, points: &[Value]) -> Value {
    json!({
        "name": name,
        "description": description,
        "unit": unit,
        "sum": { "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points },
    })
}

fn calls_point(window: &ExportWindow, calls: &CallCount) -> Value {
    let mut attributes = vec![text("toolgate.outcome", CallOutcome::of(calls.reason).name())];
    attributes.extend(calls.reason.map(Reason::code).map(|code| text("toolgate.reason", code)));
    attributes.extend(level(calls.level));
    attributes.push(text("toolgate.purpose", purpose(calls.purpose)));
    number_point(window, &attributes, calls.count)
}

fn drop_point(window: &ExportWindow, cause: Cause, tally: &Tally) -> Value {
    number_point(window, &[text("toolgate.telemetry.cause", cause.name())], tally.drops(cause))
}

fn layer_point(window: &ExportWindow, layer: &IsolationLayer) -> Value {
    json!({
        "attributes": [text("toolgate.isolation.layer", &layer.name)],
        "timeUnixNano": window.now,
        "asDouble": layer.in_force,
    })
}

fn number_point(window: &ExportWindow, attributes: &[Value], count: u64) -> Value {
    json!({
        "attributes": attributes,
        "startTimeUnixNano": window.started,
        "timeUnixNano": window.now,
        "asInt": count.to_string(),
    })
}

fn duration_point(window: &ExportWindow, durations: &Durations) -> Value {
    let mut attributes = vec![text("toolgate.outcome", durations.kind.name())];
    attributes.extend(level(durations.level));
    // Sum the buckets: readers reject a point whose count differs from the sum.
    let count: u64 = durations.counts.iter().sum();
    json!({
        "attributes": attributes,
        "startTimeUnixNano": window.started,
        "timeUnixNano": window.now,
        "count": count.to_string(),
        "sum": durations.seconds,
        "bucketCounts": durations.counts.iter().map(u64::to_string).collect::<Vec<_>>(),
        "explicitBounds": BOUNDS,
    })
}

fn level(level: Option<RiskLevel>) -> Option<Value> {
    level.map(|level| text("toolgate.tool.level", level.name()))
}

const CUMULATIVE: u8 = 2;
