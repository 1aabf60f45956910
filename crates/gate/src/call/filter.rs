//! F. Does the output fit its schema and size, and which of its fields may leave?

mod clean;

use std::{panic::resume_unwind, sync::Arc};

use serde_json::Value;
use toolgate_policy::OutputPolicy;

use super::{
    execute::Executed,
    journal::{Shows, Writing},
    support::{personal::Held, secrets, stop::Stop, texts},
};
use crate::{
    digest,
    gate::Inner,
    live::LiveTool,
    metrics::Metrics,
    outcome::{Released, Warning},
    ports::RunReport,
    reason::Reason,
};

/// A result that may be released.
#[derive(Debug)]
pub struct Filtered {
    pub value: Value,
    pub output_digest: String,
    pub bytes: usize,
    /// Fields that were masked or taken out.
    pub redacted: Vec<String>,
    /// What was taken for a secret, a row each.
    pub secrets: Vec<Value>,
    /// The value as it stands in the journal, where it does.
    pub for_journal: Option<Value>,
    warnings: Vec<Warning>,
    /// Texts in what the tool returned about which somebody wants to be told.
    pub alerts: Vec<String>,
    is_structured: bool,
    report: RunReport,
    _sealed: (),
}

/// Beside the runtime's own threads where there is much to go through: nobody else waits for that.
pub async fn filter(gate: &Inner, executed: Executed, personal: Option<Arc<Held>>) -> Result<Filtered, Stop> {
    let is_large = matches!(&executed.report.outcome, Ok(Some(value)) if weight(value) > LARGE);
    let filter = Filter {
        how: Writing { shows: gate.shows, secrets: Arc::clone(&gate.secrets) },
        metrics: Arc::clone(&gate.metrics),
        personal,
    };
    if !is_large {
        return filter.judge(executed);
    }
    let done = tokio::task::spawn_blocking(move || filter.judge(executed)).await;
    // A panic there is one of the call, and ends it as any other.
    done.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// About as many bytes as its JSON has.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + LEAST_WEIGHT
}

/// What a result is judged with. Owned, for it may be judged while nobody waits for it any more.
struct Filter {
    how: Writing,
    metrics: Arc<Metrics>,
    /// What personal fields of the arguments hold.
    personal: Option<Arc<Held>>,
}

impl Filter {
    fn judge(self, executed: Executed) -> Result<Filtered, Stop> {
        let Executed { bound, mut report, .. } = executed;
        let tool = &bound.admitted.tool;
        // A tool that returns nothing has always been told to have returned this text.
        let returned = match &mut report.outcome {
            Ok(value) => value.take().unwrap_or_else(|| Value::String("undefined".to_owned())),
            Err(_) => Value::Null,
        };
        // Before anything is withheld: what somebody wants to be told of was there all the same.
        let alerts = alerts_in(tool, &returned);
        if let Err(stop) = fits(tool, &returned) {
            return Err(stop.with_alerts(alerts).with_report(report));
        }
        let output_digest = digest::of(&returned);
        let (value, redacted) = OutputPolicy::of(&tool.spec.governance).apply(returned);
        let mut findings = Vec::new();
        let value = if tool.policy.data.sanitize_output.value {
            let shown = secrets::marked(&report.withheld, &value);
            let mut clean = secrets::sanitise(&self.how.secrets, value);
            clean.findings.extend(shown);
            self.metrics.found_secrets(&clean.findings);
            if clean.still_leaks {
                let message =
                    "the result holds a secret that cannot be taken out of it; nothing of it was released";
                return Err(Stop::new(Reason::SecretInOutput, message)
                    .with_alerts(alerts)
                    .with_report(report));
            }
            findings = clean.findings;
            clean.value
        } else {
            value
        };
        // After the secrets: a character that nobody sees hides none, and one that is shown by its number would break it apart.
        let (value, is_changed) = clean::clean(value);
        let bytes = digest::json_bytes(&value);
        let most = tool.policy.execution.max_output_bytes.value;
        if bytes as u64 > most {
            let message = format!("the result has {bytes} bytes; this tool may return {most}");
            return Err(Stop::new(Reason::OutputTooLarge, message)
                .with_remedy("ask for less at once")
                .with_alerts(alerts)
                .with_report(report));
        }
        let mut warnings = secrets::warnings(&findings);
        let is_as_returned = findings.is_empty() && !is_changed;
        let is_promised = tool.listing().get("outputSchema").is_some();
        let is_structured = is_promised && (is_as_returned || fits(tool, &value).is_ok());
        if is_promised && !is_structured {
            warnings.push(Warning { code: "output.unstructured", message: UNSTRUCTURED.to_owned() });
        }
        Ok(Filtered {
            for_journal: self.for_journal(tool, &value),
            value,
            output_digest,
            bytes,
            redacted,
            secrets: secrets::rows(&findings),
            warnings,
            alerts,
            is_structured,
            report,
            _sealed: (),
        })
    }

    /// The output for the journal, where the tool's audit policy or the operator wants it there.
    fn for_journal(&self, tool: &LiveTool, value: &Value) -> Option<Value> {
        let is_wanted = self.how.shows == Shows::Everything || tool.policy.audit.log_output.value;
        if !is_wanted {
            return None;
        }
        let fields = &tool.spec.governance.pii_fields;
        let personal = self.personal.as_ref().map(|held| held.and_in_result(fields, value).mask());
        Some(tool.for_journal(value.clone(), personal.as_ref(), &self.how.secrets))
    }
}

/// Each text by itself and all of them as JSON, so that neither quoting nor splitting over members hides what is asked for.
fn alerts_in(tool: &LiveTool, value: &Value) -> Vec<String> {
    if !tool.has_alarms() {
        return Vec::new();
    }
    let json = value.to_string();
    tool.alarms_in([json.as_str()].into_iter().chain(texts::of(value)))
}

/// What does not fit what the tool promises is withheld as a whole.
fn fits(tool: &LiveTool, returned: &Value) -> Result<(), Stop> {
    let Some(schema) = &tool.output else { return Ok(()) };
    let violations = schema.violations(returned, 1);
    let Some(first) = violations.first() else { return Ok(()) };
    let message = "the tool returned something other than it promises; nothing of it was released";
    // No rule about fields was applied yet, so nothing of the result goes into the journal with this.
    Err(Stop::new(Reason::OutputShape, message)
        .for_operator(format!("the result does not fit the output schema: {}", first.without_value)))
}

impl Filtered {
    pub fn into_released(self, call_id: &str) -> (Released, RunReport) {
        let Self { value, is_structured, warnings, report, .. } = self;
        (Released { call_id: call_id.to_owned(), value, is_structured, warnings }, report)
    }
}

/// Ordinary text of this size takes about 0.1 ms, text written to be slow some milliseconds.
const LARGE: usize = 4 * 1024;
/// A number and a comma, or quotes.
const LEAST_WEIGHT: usize = 4;
/// Clients refuse structured content that does not fit what they were told.
const UNSTRUCTURED: &str = "without what was taken out or shown by its number, this no longer fits the tool's output schema; it comes as text alone";
