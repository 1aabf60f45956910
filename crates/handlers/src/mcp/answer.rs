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
    /// The tool ran and failed; the text is the server's.
    Tool(String),
    Protocol(UpstreamError),
}

impl fmt::Display for CallFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) | Self::Changed(why) | Self::Tool(why) => formatter.write_str(why),
            Self::Protocol(error) => error.fmt(formatter),
        }
    }
}

impl CallFailure {
    pub fn into_run_failure(self, mask: &Mask) -> RunFailure {
        let (reason, message) = match self {
            Self::Unavailable(why) => (Reason::UpstreamUnavailable, why),
            Self::Changed(why) => (Reason::UpstreamChanged, why),
            Self::Tool(message) => (Reason::ToolFailed, message),
            Self::Protocol(error) => (reason_of(&error), error.to_string()),
        };
        RunFailure { reason, message: mask.text(&message), stack: Vec::new(), helper: None, unredacted: None }
    }
}

const fn reason_of(error: &UpstreamError) -> Reason {
    match error {
        UpstreamError::TimedOut { .. } => Reason::Timeout,
        UpstreamError::Server { .. } => Reason::ToolFailed,
        UpstreamError::Busy => Reason::Busy,
        UpstreamError::Protocol(_) | UpstreamError::HttpStatus { .. } => Reason::UpstreamMisbehaved,
        UpstreamError::Closed
        | UpstreamError::Unreachable(_)
        | UpstreamError::Lost(_)
        | UpstreamError::SessionLost
        | UpstreamError::Unauthorized(_)
        | UpstreamError::NoToken(_) => Reason::UpstreamUnavailable,
    }
}

/// Structured content if there is any; else the text of a single text block; else all blocks. A result that the server marks as
/// an error is a failure.
pub(super) fn value_of(result: Value, mask: &Mask) -> Result<Value, CallFailure> {
    let Value::Object(mut result) = result else {
        let why = "it sent a result that is not an object".to_owned();
        return Err(CallFailure::Protocol(UpstreamError::Protocol(why)));
    };
    let blocks = match result.remove("content") {
        Some(Value::Array(blocks)) => blocks,
        _ => Vec::new(),
    };
    if result.get("isError") == Some(&Value::Bool(true)) {
        let texts: Vec<&str> =
            blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
        return Err(CallFailure::Tool(texts.join("\n")));
    }
    if let Some(structured @ Value::Object(_)) = result.remove("structuredContent") {
        return Ok(masked(structured, mask));
    }
    let value = match blocks.as_slice() {
        [block] if block.get("type").is_some_and(|kind| kind == "text") => {
            block.get("text").cloned().unwrap_or_default()
        }
        _ => json!({ "$content": blocks }),
    };
    Ok(masked(value, mask))
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
        let mask = Mask::new(&["hunter22secret".to_owned()]);
        let shown = match value_of(result, &mask) {
            Ok(value) => value.to_string(),
            Err(failure) => {
                let failure = failure.into_run_failure(&mask);
                format!("{} {}", failure.reason, failure.message)
            }
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
        check(
            json!(7),
            "execute.upstream_misbehaved the upstream server broke the protocol: it sent a result that is not an object",
        );
    }
}
