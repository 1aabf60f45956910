//! F. Does the output fit its schema and size, and which of its fields may leave?

mod clean;

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_policy::OutputPolicy;
use toolgate_spec::model::OutputAction;

use super::{
    execute::Executed,
    journal::{Shows, Writing},
    secrets,
    stop::Stop,
};
use crate::{digest, gate::Inner, live::LiveTool, ports::RunReport, reason::Reason};

/// A result that may be released.
#[derive(Debug)]
pub struct Filtered {
    pub value: Value,
    pub output_digest: String,
    pub bytes: usize,
    /// Fields that were masked or taken out.
    pub redacted: Vec<String>,
    /// What was taken for a secret and blotted out, a row each.
    pub secrets: Vec<Value>,
    /// Texts in the result about which somebody wants to be told.
    pub alerts: Vec<String>,
    tool: Arc<LiveTool>,
    is_structured: bool,
    report: RunReport,
    _sealed: (),
}

pub fn filter(gate: &Inner, executed: Executed) -> Result<Filtered, Stop> {
    let Executed { decided, mut report, .. } = executed;
    let tool = &decided.checked.bound.admitted.tool;
    // A tool that returns nothing has always been told to have returned this text.
    let returned = match &mut report.outcome {
        Ok(value) => value.take().unwrap_or_else(|| Value::String("undefined".to_owned())),
        Err(_) => Value::Null,
    };
    if let Some(schema) = &tool.output {
        let violations = schema.violations(&returned, 3);
        if let Some(first) = violations.first() {
            let place = if first.at.is_empty() { "the result" } else { &first.at };
            let what = format!("`{place}`: expected {}, came {}", first.expected, first.came);
            let stop = Stop::new(
                Reason::OutputShape,
                "the tool returned something other than it promises; nothing of it was released",
            );
            return Err(stop
                .for_operator(format!("the result does not fit the output schema: {what}"))
                .with_report(report));
        }
    }
    let output_digest = digest::of(&returned);
    let mut redacted = Vec::new();
    let policy = OutputPolicy::of(&tool.spec.governance);
    let value = if policy.exists() {
        apply(returned, &policy, &mut Vec::new(), &mut redacted).unwrap_or(Value::Null)
    } else {
        returned
    };
    let value = clean::clean(value);
    let mut text = serde_json::to_string(&value).unwrap_or_default();
    let alerts = tool.alarms_in([text.as_str()]);
    let mut found = Vec::new();
    let value = if tool.policy.data.sanitize_output.value {
        let clean = secrets::sanitise(&gate.secrets, value, &text);
        if clean.still_leaks {
            let message =
                "the result holds a secret that cannot be taken out of it; nothing of it was released";
            return Err(Stop::new(Reason::SecretInOutput, message).with_report(report));
        }
        if !clean.found.is_empty() {
            text = serde_json::to_string(&clean.value).unwrap_or_default();
        }
        found = clean.found;
        clean.value
    } else {
        value
    };
    let bytes = text.len();
    let most = tool.policy.execution.max_output_bytes.value;
    if bytes as u64 > most {
        let message = format!("the result has {bytes} bytes; this tool may return {most}");
        return Err(Stop::new(Reason::OutputTooLarge, message)
            .with_remedy("ask for less at once")
            .with_report(report));
    }
    let is_structured = tool.listing().get("outputSchema").is_some();
    let tool = Arc::clone(tool);
    Ok(Filtered {
        value,
        output_digest,
        bytes,
        redacted,
        secrets: found,
        alerts,
        tool,
        is_structured,
        report,
        _sealed: (),
    })
}

impl Filtered {
    /// The output for the journal, where the tool's audit policy or the operator wants it there.
    pub fn for_journal(&self, how: &Writing) -> Option<Value> {
        let is_wanted = how.shows == Shows::Everything || self.tool.policy.audit.log_output.value;
        is_wanted.then(|| self.tool.for_journal(self.value.clone(), &how.secrets))
    }

    pub fn into_parts(self) -> (Value, bool, RunReport) {
        (self.value, self.is_structured, self.report)
    }
}

/// `None`: the field does not leave. A container leaves with those of its fields that do.
fn apply(
    value: Value,
    policy: &OutputPolicy<'_>,
    path: &mut Vec<String>,
    redacted: &mut Vec<String>,
) -> Option<Value> {
    match value {
        Value::Object(members) => {
            let mut kept = Map::with_capacity(members.len());
            for (key, value) in members {
                path.push(key);
                let value = apply(value, policy, path, redacted);
                let key = path.pop().unwrap_or_default();
                if let Some(value) = value {
                    kept.insert(key, value);
                }
            }
            leaves(path, policy, kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(items) => {
            let kept: Vec<Value> =
                items.into_iter().filter_map(|item| apply(item, policy, path, redacted)).collect();
            leaves(path, policy, kept.is_empty()).then_some(Value::Array(kept))
        }
        scalar => {
            let names: Vec<&str> = path.iter().map(String::as_str).collect();
            match policy.action_for(&names) {
                OutputAction::Allow => Some(scalar),
                OutputAction::Mask => {
                    note(path, redacted);
                    Some(Value::String(mask(&scalar)))
                }
                OutputAction::Redact => {
                    note(path, redacted);
                    None
                }
            }
        }
    }
}

/// An empty container tells that there was one; it leaves only where a rule lets the field itself leave.
fn leaves(path: &[String], policy: &OutputPolicy<'_>, is_empty: bool) -> bool {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    !is_empty || path.is_empty() || policy.action_for(&names) == OutputAction::Allow
}

/// First and last character of a text, where there is enough between them to hide. Of `true` they would tell all.
fn mask(value: &Value) -> String {
    let Some(text) = value.as_str() else { return "***".to_owned() };
    let mut characters = text.chars();
    match (characters.next(), characters.next_back()) {
        (Some(first), Some(last)) if characters.count() >= 2 => format!("{first}***{last}"),
        _ => "***".to_owned(),
    }
}

/// Each path once, however many items of a list it stands for, and not endlessly many.
fn note(path: &[String], redacted: &mut Vec<String>) {
    let path: String = shown(path).chars().take(200).collect();
    if redacted.len() < MOST_REDACTED && !redacted.contains(&path) {
        redacted.push(path);
    }
}

fn shown(path: &[String]) -> String {
    path.iter().fold(String::new(), |text, part| format!("{text}.{part}"))
}

const MOST_REDACTED: usize = 200;
