//! Turns the answer of an upstream server into a result or a failure. The server's texts are untrusted.

use std::fmt;

use serde_json::{Value, json};
use toolgate_gate::{Reason, RunFailure};
use toolgate_policy::Mask;
use toolgate_upstream::UpstreamError;

/// Why a call of an upstream tool has no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum CallFailure {
    /// The server cannot be started or reached, or is not configured any more.
    Unavailable(String),
    /// The tool is not as it was at its review, or was never reviewed.
    Changed(String),
    Protocol(UpstreamError),
}

impl fmt::Display for CallFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) | Self::Changed(why) => formatter.write_str(why),
            Self::Protocol(error) => error.fmt(formatter),
        }
    }
}

pub(super) fn outcome(answer: Result<Value, CallFailure>, mask: &Mask) -> Result<Option<Value>, RunFailure> {
    let (reason, message) = match answer {
        Ok(result) => match value_of(result) {
            Ok(value) => return Ok(Some(masked(value, mask))),
            Err(message) => (Reason::ToolFailed, message),
        },
        Err(CallFailure::Unavailable(why)) => (Reason::UpstreamUnavailable, why),
        Err(CallFailure::Changed(why)) => (Reason::UpstreamChanged, why),
        Err(CallFailure::Protocol(error)) => (reason_of(&error), error.to_string()),
    };
    Err(RunFailure { reason, message: mask.text(&message), stack: Vec::new(), helper: None, heard: None })
}

const fn reason_of(error: &UpstreamError) -> Reason {
    match error {
        UpstreamError::TimedOut { .. } => Reason::Timeout,
        UpstreamError::Server { .. } => Reason::ToolFailed,
        UpstreamError::Closed => Reason::UpstreamUnavailable,
        UpstreamError::Busy => Reason::Busy,
        UpstreamError::Protocol(_) => Reason::UpstreamMisbehaved,
    }
}

/// Structured content if there is any; else the text of a single text block; else all blocks. `Err` is the text of a result that
/// the server marks as an error.
fn value_of(result: Value) -> Result<Value, String> {
    let Value::Object(mut result) = result else {
        return Err("the upstream server sent a result that is not an object".to_owned());
    };
    let blocks = match result.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => Vec::new(),
    };
    if result.get("isError") == Some(&Value::Bool(true)) {
        let texts: Vec<&str> =
            blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
        return Err(texts.join("\n"));
    }
    if let Some(structured @ Value::Object(_)) = result.remove("structuredContent") {
        return Ok(structured);
    }
    match blocks.as_slice() {
        [block] if block.get("type").is_some_and(|kind| kind == "text") => {
            Ok(block.get("text").cloned().unwrap_or_default())
        }
        _ => Ok(json!({ "$content": blocks })),
    }
}

fn masked(value: Value, mask: &Mask) -> Value {
    match value {
        Value::String(text) => Value::String(mask.text(&text)),
        Value::Array(items) => items.into_iter().map(|item| masked(item, mask)).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(key, member)| (mask.text(&key), masked(member, mask))).collect()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: Value, expect: &str) {
        let shown = match outcome(Ok(result), &Mask::new(&["hunter22secret".to_owned()])) {
            Ok(value) => value.unwrap().to_string(),
            Err(failure) => format!("{} {}", failure.reason, failure.message),
        };
        assert_eq!(shown, expect);
    }

    #[test]
    fn content_becomes_a_value() {
        check(json!({ "content": [{ "type": "text", "text": "hi" }] }), "\"hi\"");
        check(json!({ "content": [], "structuredContent": { "a": 1 } }), r#"{"a":1}"#);
        let image = json!({ "type": "image", "data": "AA==", "mimeType": "image/png" });
        check(
            json!({ "content": [image] }),
            r#"{"$content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#,
        );
    }

    #[test]
    fn errors_fail_and_secrets_are_masked() {
        let text = json!({ "type": "text", "text": "no hunter22secret" });
        check(json!({ "content": [text], "isError": true }), "execute.tool_failed no ***");
        check(json!({ "content": [text] }), "\"no ***\"");
        check(json!(7), "execute.tool_failed the upstream server sent a result that is not an object");
    }
}
