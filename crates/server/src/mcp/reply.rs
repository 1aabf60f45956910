//! Turns the outcome of a call into the result for the client.

use std::time::SystemTime;

use rmcp::model::{CallToolResult, ContentBlock, ErrorData, MetaObject};
use serde_json::{Map, Value, json};
use toolgate_gate::{BrokenCall, FailedCall, Outcome, PendingCall, Reason, RefusedCall, ReleasedCall, Retry};

/// For every outcome except a question to the client.
pub fn reply(outcome: Outcome) -> Result<CallToolResult, ErrorData> {
    match outcome {
        Outcome::Released(end) => Ok(released(end)),
        Outcome::Pending(end) => Ok(pending(&end)),
        Outcome::Refused(end) if end.reason == Reason::UnknownTool => Err(unknown_tool(&end)),
        Outcome::Refused(end) => Ok(refused(&end)),
        Outcome::Failed(end) => Ok(failed(&end)),
        Outcome::Broken(end) => Ok(broken(&end)),
    }
}

fn released(end: ReleasedCall) -> CallToolResult {
    let ReleasedCall { call_id, value, is_structured, warnings } = end;
    let result = if is_structured {
        CallToolResult::structured(value)
    } else {
        CallToolResult::success(content_of(value))
    };
    let mut result = with_meta(result, [(CALL_KEY, call_id.into())]);
    if let Some(MetaObject(meta)) = result.meta.as_mut().filter(|_| !warnings.is_empty()) {
        let told = warnings.iter().map(|warning| json!({ "code": warning.code, "message": warning.message }));
        meta.insert(WARNINGS_KEY.to_owned(), told.collect());
    }
    result
}

/// Strings become text, `$content` becomes content blocks, other values become JSON.
fn content_of(value: Value) -> Vec<ContentBlock> {
    match value {
        Value::String(text) => vec![ContentBlock::text(text)],
        other => media_of(&other).unwrap_or_else(|| vec![ContentBlock::text(other.to_string())]),
    }
}

/// Reads an object whose only member is `$content` with valid content blocks. Returns `None` for other data.
fn media_of(value: &Value) -> Option<Vec<ContentBlock>> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    let blocks = members.get(MEDIA_KEY)?.as_array()?;
    blocks.iter().map(|block| serde_json::from_value(block.clone()).ok()).collect()
}

/// A protocol error, because the tool does not exist for this caller.
fn unknown_tool(end: &RefusedCall) -> ErrorData {
    let message = match &end.remedy {
        Some(remedy) => format!("{}; {remedy}", end.to_caller),
        None => end.to_caller.clone(),
    };
    ErrorData::invalid_params(message, Some(denial(end.reason, &end.call_id, end.remedy.as_deref())))
}

fn pending(end: &PendingCall) -> CallToolResult {
    let left = end.expires.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
    let mut details = denial(Reason::ApprovalPending, &end.call_id, None);
    if let Value::Object(details) = &mut details {
        details.insert("approval".into(), end.approval.as_str().into());
        details.insert("expiresInSeconds".into(), left.into());
    }
    let text = format!(
        "not run: {}\napproval: {} (for another {left} seconds)\n{}",
        end.to_caller,
        end.approval,
        facts(Reason::ApprovalPending, &end.call_id)
    );
    denied(text, details)
}

fn refused(end: &RefusedCall) -> CallToolResult {
    let mut text = format!("not run: {}\n", end.to_caller);
    if let Some(remedy) = &end.remedy {
        text = format!("{text}remedy: {remedy}\n");
    }
    text.push_str(&facts(end.reason, &end.call_id));
    denied(text, denial(end.reason, &end.call_id, end.remedy.as_deref()))
}

/// The tool's text comes last, so it cannot imitate lines of the gateway after it.
fn failed(end: &FailedCall) -> CallToolResult {
    let remedy = end.remedy.as_ref().map(|remedy| format!("remedy: {remedy}\n")).unwrap_or_default();
    let facts = facts(end.reason, &end.call_id);
    let text = format!("{remedy}{facts}\nthe tool failed: {}", end.to_caller);
    denied(text, denial(end.reason, &end.call_id, end.remedy.as_deref()))
}

fn broken(end: &BrokenCall) -> CallToolResult {
    let result = CallToolResult::error(vec![ContentBlock::text(end.to_caller())]);
    with_meta(result, [(CALL_KEY, end.call_id.clone().into())])
}

fn facts(reason: Reason, call_id: &str) -> String {
    format!(
        "code: {} ({})\nretry: {}\ncall: {call_id}",
        reason.code(),
        reason.meaning(),
        advice(reason.retry())
    )
}

const fn advice(retry: Retry) -> &'static str {
    match retry {
        Retry::Never => "does not help; do not make this call again",
        Retry::ChangeArguments => "helps with other arguments only",
        Retry::Later => "may help in a while, with the same arguments",
        Retry::AfterApproval => "helps once a person has approved, with the same arguments",
    }
}

fn denial(reason: Reason, call_id: &str, remedy: Option<&str>) -> Value {
    let stage = reason.stage().map(toolgate_gate::CallStage::name);
    json!({
        "code": reason.code(),
        "stage": stage,
        "retry": reason.retry().name(),
        "callId": call_id,
        "remedy": remedy,
    })
}

fn denied(text: String, details: Value) -> CallToolResult {
    let call_id = details.get("callId").cloned().unwrap_or_default();
    let result = CallToolResult::error(vec![ContentBlock::text(text)]);
    with_meta(result, [(CALL_KEY, call_id), (DENIAL_KEY, details)])
}

fn with_meta<const N: usize>(mut result: CallToolResult, entries: [(&str, Value); N]) -> CallToolResult {
    let entries: Map<String, Value> =
        entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    result.meta = Some(MetaObject(entries));
    result
}

/// Member of `_meta`: the call id, as in the journal.
const CALL_KEY: &str = "dev.toolgate/callId";
/// Member of `_meta`: why the call has no result.
const DENIAL_KEY: &str = "dev.toolgate/denial";
/// Member of `_meta`: warnings about the result.
const WARNINGS_KEY: &str = "dev.toolgate/warnings";
/// Member of a tool's result: content blocks instead of data.
const MEDIA_KEY: &str = "$content";

#[cfg(test)]
mod tests;
