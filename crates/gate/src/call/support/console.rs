//! What may a caller read of what a tool wrote to its console? Text without a shape, cleaned as a result is.

use serde_json::Value;
use toolgate_policy::OutputPolicy;
use toolgate_spec::{model::Body, neutral};

use super::secrets;
use crate::{gate::Inner, live::LiveTool, outcome::Outcome, ports::RunReport, reason::Stage};

/// Level and text.
type Line = (&'static str, String);

/// Leaves in the report what may leave, and says which alarming texts were in it, withheld or not. Neither rules about fields nor the shape
/// that a tool promises can be applied to a line of text, so that a tool which has either tells nothing; nor does a
/// command, whose errors are its operator's business.
pub fn clean(gate: &Inner, tool: &LiveTool, report: &mut RunReport) -> Vec<String> {
    let lines = std::mem::take(&mut report.console);
    if lines.is_empty() || !matches!(tool.spec.body, Body::JavaScript { .. }) {
        return Vec::new();
    }
    let alerts = alerts_in(tool, &lines);
    let has_rules = tool.output.is_some() || OutputPolicy::of(&tool.spec.governance).exists();
    if !has_rules {
        keep_clean(gate, tool, lines, report);
    }
    alerts
}

/// In all lines as one text, for a text that is asked for may go on in the next line.
fn alerts_in(tool: &LiveTool, lines: &[Line]) -> Vec<String> {
    if !tool.has_alarms() {
        return Vec::new();
    }
    let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
    tool.alarms_in([texts.join("\n").as_str()])
}

fn keep_clean(gate: &Inner, tool: &LiveTool, lines: Vec<Line>, report: &mut RunReport) {
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
pub fn may_leave(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Released(_) => true,
        Outcome::Failed(end) => end.reason.stage() == Some(Stage::Execute),
        Outcome::Pending(_) | Outcome::Refused(_) | Outcome::Broken(_) => false,
    }
}

pub fn released(outcome: &Outcome, report: Option<RunReport>) -> Vec<Line> {
    report.filter(|_| may_leave(outcome)).map(|report| report.console).unwrap_or_default()
}
