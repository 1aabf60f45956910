//! Prints a journal record as one line: time, number, kind and subject.

use std::io::Write;

use serde_json::{Map, Value};
use toolgate_audit::Record;

use crate::{
    Failure,
    terminal::{Terminal, visible},
};

pub fn print(record: &Record, terminal: &mut Terminal) -> Result<(), Failure> {
    let kind = record.entry.get("kind").and_then(Value::as_str).unwrap_or("-");
    let dim = terminal.palette.dim;
    write!(terminal, "{dim}{}{dim:#}  {}  {}", record.real_time(), record.position.seq, visible(kind))?;
    for part in about(&record.entry) {
        write!(terminal, "  {}", visible(&part))?;
    }
    writeln!(terminal)?;
    Ok(())
}

/// The record's call, tool, approval, token or caller, and the outcome.
fn about(entry: &Value) -> Vec<String> {
    let Some(fields) = entry.as_object() else { return Vec::new() };
    if fields.contains_key("callId") && fields.contains_key("tool") {
        of_call(fields)
    } else {
        of_event(fields)
    }
}

fn of_call(fields: &Map<String, Value>) -> Vec<String> {
    let mut parts: Vec<String> = ["callId", "caller", "tool"]
        .iter()
        .map(|key| named(fields.get(*key)).unwrap_or("-").to_owned())
        .collect();
    if fields.contains_key("outcome") {
        parts.extend(["outcome", "reason"].map(|key| named(fields.get(key)).unwrap_or("-").to_owned()));
    }
    if let Some(approval) = fields.get("approval") {
        parts.extend(named(Some(approval)).map(|id| format!("approval={id}")));
        parts.extend(approval.get("by").and_then(Value::as_str).map(|by| format!("by={by}")));
    }
    parts
}

/// All short members by name, without digests. New kinds of events need no change here.
fn of_event(fields: &Map<String, Value>) -> Vec<String> {
    let first = SUBJECTS.iter().filter_map(|key| fields.get_key_value(*key));
    let rest = fields
        .iter()
        .filter(|(key, _)| !SUBJECTS.contains(&key.as_str()) && !OMITTED.contains(&key.as_str()));
    first.chain(rest).filter_map(|(key, value)| Some(format!("{key}={}", shown(value)?))).collect()
}

fn shown(value: &Value) -> Option<String> {
    let text = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Object(_) => named(Some(value))?.to_owned(),
        Value::Array(items) => {
            let names: Vec<&str> = items.iter().filter_map(|item| named(Some(item))).collect();
            if names.is_empty() {
                return None;
            }
            names.join(",")
        }
    };
    let is_digest = text.starts_with("sha256:");
    let cut: String = text.chars().take(LONGEST).collect();
    (!is_digest).then(|| if cut.len() < text.len() { format!("{cut}…") } else { cut })
}

/// A string, or the name of an object.
fn named(value: Option<&Value>) -> Option<&str> {
    let value = value?;
    value.as_str().or_else(|| ["name", "sub", "id"].iter().find_map(|key| value.get(key)?.as_str()))
}

/// These come first, in this order.
const SUBJECTS: [&str; 7] = ["tool", "approval", "token", "caller", "state", "reason", "by"];
/// The kind is printed already; keys, roots and signatures mean nothing to a person.
const OMITTED: [&str; 7] = ["kind", "key", "root", "signature", "peaks", "listing", "traceId"];
const LONGEST: usize = 200;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::about;

    #[track_caller]
    fn check(entry: &serde_json::Value, expect: &[&str]) {
        assert_eq!(about(entry), expect, "{entry}");
    }

    #[test]
    fn events_show_their_subject() {
        check(&json!({ "kind": "token.revoked", "token": "ci", "by": "ann" }), &["token=ci", "by=ann"]);
        check(
            &json!({ "kind": "tool.published", "tool": { "name": "say", "digest": "sha256:0" }, "by": "ann" }),
            &["tool=say", "by=ann"],
        );
        check(
            &json!({ "kind": "approval.decided", "approval": "apr_1", "state": "approved", "by": "ann",
                "caller": { "sub": "bot" }, "tool": { "name": "say" }, "note": "fine" }),
            &["tool=say", "approval=apr_1", "caller=bot", "state=approved", "by=ann", "note=fine"],
        );
        check(
            &json!({ "kind": "door.refused", "reason": "auth.token_missing", "peer": "192.0.2.1", "caller": null, "count": 2 }),
            &["reason=auth.token_missing", "peer=192.0.2.1", "count=2"],
        );
        check(&json!({ "kind": "state.older", "tools": ["a", "b"], "tokens": [] }), &["tools=a,b"]);
        check(
            &json!({ "kind": "tools.loaded", "text": "x".repeat(300) }),
            &[&format!("text={}…", "x".repeat(200))],
        );
        check(
            &json!({ "kind": "checkpoint", "key": "ed25519:x", "size": 7, "root": "sha256:0" }),
            &["size=7"],
        );
    }

    #[test]
    fn call_names_its_tool_and_approval() {
        check(
            &json!({ "kind": "call.closed", "callId": "c1", "caller": { "sub": "bot" }, "tool": { "name": "say" },
                "outcome": "released", "approval": { "id": "apr_1", "by": "ann" } }),
            &["c1", "bot", "say", "released", "-", "approval=apr_1", "by=ann"],
        );
    }
}
