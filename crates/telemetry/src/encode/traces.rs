//! Encodes a call as one span for the whole and one for each stage it reached.

use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use toolgate_gate::{CallStage, Purpose, Reason};

use super::{Speaker, instant, scope, text};
use crate::{
    hex::{digest, hex},
    summary::{CallOutcome, CallSummary},
};

/// The body of a request to `/v1/traces`.
pub fn traces(speaker: &Speaker, calls: &[CallSummary]) -> Value {
    let spans: Vec<Value> = calls.iter().flat_map(spans).collect();
    json!({
        "resourceSpans": [{
            "resource": speaker.resource(),
            "scopeSpans": [{ "scope": scope(), "spans": spans }],
        }],
    })
}

fn spans(call: &CallSummary) -> Vec<Value> {
    let trace = trace_id(&call.call_id);
    let root = span_id(&trace, "call");
    let end = after(call.begun, call.duration);
    let mut spans = vec![json!({
        "traceId": hex(&trace),
        "spanId": root,
        "name": call.tool.as_ref().map_or_else(|| METHOD.to_owned(), |tool| format!("{METHOD} {tool}")),
        "kind": SERVER,
        "startTimeUnixNano": instant(call.begun),
        "endTimeUnixNano": instant(end),
        "attributes": attributes(call),
        "status": status(call.reason),
    })];
    let mut begun = call.begun;
    for (stage, took) in &call.stages {
        // Clamp to the parent: stages are timed by another clock reading, and readers expect children to end first.
        let ended = after(begun, *took).min(end);
        let stopped = call.reason.filter(|reason| reason.stage() == Some(*stage));
        spans.push(json!({
            "traceId": hex(&trace),
            "spanId": span_id(&trace, stage.name()),
            "parentSpanId": root,
            "name": stage.name(),
            "kind": INTERNAL,
            "startTimeUnixNano": instant(begun),
            "endTimeUnixNano": instant(ended),
            "attributes": [text("toolgate.stage", stage.name())],
            "status": status(stopped),
        }));
        begun = ended;
    }
    spans
}

fn attributes(call: &CallSummary) -> Vec<Value> {
    let kind = CallOutcome::of(call.reason);
    let reason = call.reason.map(Reason::code);
    let network = call.transport.and_then(network);
    let tool = call.tool.as_deref();
    let always = [
        ("toolgate.call.id", call.call_id.as_str()),
        ("toolgate.purpose", purpose(call.purpose)),
        ("toolgate.outcome", kind.name()),
        ("toolgate.caller", call.caller.as_str()),
    ];
    let where_known = [
        ("toolgate.reason", reason),
        ("toolgate.stage", call.reason.and_then(Reason::stage).map(CallStage::name)),
        ("toolgate.tool.name", tool),
        ("toolgate.tool.level", call.level.map(toolgate_policy::RiskLevel::name)),
        ("toolgate.transport", call.transport),
        ("error.type", reason.filter(|_| kind.is_error())),
        ("gen_ai.operation.name", tool.map(|_| "execute_tool")),
        ("gen_ai.tool.name", tool),
        ("mcp.method.name", network.map(|_| METHOD)),
        ("mcp.protocol.version", call.protocol.as_deref()),
        ("network.transport", network),
    ];
    let known = where_known.into_iter().filter_map(|(key, value)| Some((key, value?)));
    always.into_iter().chain(known).map(|(key, value)| text(key, value)).collect()
}

/// Set only for errors. A refusal is correct behaviour, and OTLP leaves success unset.
fn status(reason: Option<Reason>) -> Value {
    match reason {
        Some(reason) if CallOutcome::of(Some(reason)).is_error() => {
            json!({ "code": STATUS_ERROR, "message": reason.meaning() })
        }
        _ => json!({}),
    }
}

/// As in the semantic conventions; `None` if the call did not arrive over MCP.
fn network(transport: &str) -> Option<&'static str> {
    match transport {
        "http" => Some("tcp"),
        "stdio" => Some("pipe"),
        _ => None,
    }
}

pub fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Call => "call",
        Purpose::LocalPass => "local-pass",
    }
}

/// A call id is a UUID with as many bytes as a trace id. One can therefore be found from the other.
fn trace_id(call_id: &str) -> [u8; 16] {
    let digits: String = call_id.chars().filter(|digit| *digit != '-').collect();
    u128::from_str_radix(&digits, 16)
        .ok()
        .filter(|number| digits.len() == 32 && *number != 0)
        .map_or_else(|| digest(call_id.as_bytes()), u128::to_be_bytes)
}

/// Derived from the trace, so a request sent twice creates no second span.
fn span_id(trace: &[u8; 16], what: &str) -> String {
    let id: [u8; 8] = digest(&[trace.as_slice(), what.as_bytes()].concat());
    hex(&id)
}

fn after(begun: SystemTime, took: Duration) -> SystemTime {
    begun.checked_add(took).unwrap_or(begun)
}

const METHOD: &str = "tools/call";
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;
const STATUS_ERROR: u8 = 2;
