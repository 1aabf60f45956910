//! What may a caller read of what a tool wrote to its console? Text without a shape, cleaned as a result is.

use serde_json::Value;
use toolgate_policy::OutputPolicy;
use toolgate_spec::{model::Body, neutral};

use super::secrets;
use crate::{gate::Inner, live::LiveTool, outcome::Outcome, ports::RunReport, reason::Stage};

/// Leaves in the report what may leave. Rules about fields cannot be applied to a line of text, so that a tool which has
/// such rules tells nothing; nor does a command, whose errors are its operator's business.
pub fn clean(gate: &Inner, tool: &LiveTool, report: &mut RunReport) {
    let lines = std::mem::take(&mut report.console);
    let has_field_rules = OutputPolicy::of(&tool.spec.governance).exists();
    if lines.is_empty() || has_field_rules || !matches!(tool.spec.body, Body::JavaScript { .. }) {
        return;
    }
    let (levels, texts): (Vec<_>, Vec<_>) =
        lines.into_iter().map(|(level, text)| (level, Value::String(text))).unzip();
    // All at once: a secret may go on in the next line.
    let clean = secrets::sanitise(&gate.secrets, Value::Array(texts));
    let (false, Value::Array(texts)) = (clean.still_leaks, clean.value) else { return };
    let most = tool.policy.execution.max_output_bytes.value;
    let mut bytes: u64 = 0;
    for (level, text) in levels.into_iter().zip(texts) {
        let text = neutral(text.as_str().unwrap_or_default()).into_owned();
        bytes = bytes.saturating_add(text.len() as u64);
        if bytes > most {
            report.console_dropped = report.console_dropped.saturating_add(1);
        } else {
            report.console.push((level, text));
        }
    }
    if report.console_dropped > 0 {
        report.console.push(("warn", format!("{} more lines were dropped", report.console_dropped)));
    }
}

/// Where a result was withheld, nothing of it leaves by the console either.
pub fn released(outcome: &Outcome, report: Option<RunReport>) -> Vec<(&'static str, String)> {
    let may_leave = match outcome {
        Outcome::Released(_) => true,
        Outcome::Failed(end) => end.reason.stage() == Some(Stage::Execute),
        Outcome::Pending(_) | Outcome::Refused(_) | Outcome::Broken(_) => false,
    };
    report.filter(|_| may_leave).map(|report| report.console).unwrap_or_default()
}
