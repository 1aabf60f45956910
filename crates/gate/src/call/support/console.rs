//! Filters what a tool wrote to its console before its caller reads it.

use serde_json::Value;
use toolgate_policy::OutputPolicy;
use toolgate_spec::{model::Body, neutral};

use super::secrets;
use crate::{gate::GateInner, live::LiveTool, outcome::Outcome, ports::RunReport, reason::CallStage};

/// Level and text.
type ConsoleLine = (&'static str, String);

/// Keeps the console lines that the caller may read, and returns the `alertOn` matches in all lines. Field rules and
/// output schemas cannot apply to lines of text, so a tool with either shows no console. The console of a command is
/// for the operator only.
pub fn clean(gate: &GateInner, tool: &LiveTool, report: &mut RunReport) -> Vec<String> {
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

/// Searches all lines as one text, because a match may span lines.
fn alerts_in(tool: &LiveTool, lines: &[ConsoleLine]) -> Vec<String> {
    if !tool.has_alarms() {
        return Vec::new();
    }
    let texts: Vec<&str> = lines.iter().map(|(_, text)| text.as_str()).collect();
    tool.alarms_in([texts.join("\n").as_str()])
}

fn keep_clean(gate: &GateInner, tool: &LiveTool, lines: Vec<ConsoleLine>, report: &mut RunReport) {
    let (levels, texts): (Vec<_>, Vec<_>) =
        lines.into_iter().map(|(level, text)| (level, Value::String(text))).unzip();
    // All lines at once, because a secret may span lines.
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

/// If the result was withheld, the console is withheld too.
pub fn may_leave(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Released(_) => true,
        Outcome::Failed(end) => end.reason.stage() == Some(CallStage::Execute),
        Outcome::Pending(_) | Outcome::Refused(_) | Outcome::Broken(_) => false,
    }
}

pub fn released(outcome: &Outcome, report: Option<RunReport>) -> Vec<ConsoleLine> {
    report.filter(|_| may_leave(outcome)).map(|report| report.console).unwrap_or_default()
}
