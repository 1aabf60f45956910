//! Stage F: validates the result against schema and size limit, redacts secrets and applies the output policy.

mod clean;

use std::{panic::resume_unwind, sync::Arc};

use serde_json::Value;
use toolgate_policy::OutputPolicy;

use super::{
    execute::Executed,
    journal::{JournalDetail, RecordFormat},
    support::{personal::PersonalData, secrets, stop::StoppedCall, texts},
};
use crate::{
    digest,
    gate::GateInner,
    live::LiveTool,
    metrics::Metrics,
    outcome::{ReleasedCall, Warning},
    ports::RunReport,
    reason::Reason,
};

/// A result that may be released.
#[derive(Debug)]
pub struct Filtered {
    pub value: Value,
    pub output_digest: String,
    pub bytes: usize,
    /// Fields that were masked or removed.
    pub redacted: Vec<String>,
    /// The secrets that were found, one row each.
    pub secrets: Vec<Value>,
    /// The value for the journal, if it is recorded.
    pub for_journal: Option<Value>,
    warnings: Vec<Warning>,
    /// `alertOn` texts found in the result.
    pub alerts: Vec<String>,
    is_structured: bool,
    report: RunReport,
    _sealed: (),
}

/// Large results are filtered on the blocking pool, because filtering is CPU-bound and would stall other calls.
pub async fn filter(
    gate: &GateInner,
    executed: Executed,
    personal: Option<Arc<PersonalData>>,
) -> Result<Filtered, StoppedCall> {
    let is_large = matches!(&executed.report.outcome, Ok(Some(value)) if weight(value) > LARGE);
    let filter = Filter {
        how: RecordFormat { journal_detail: gate.journal_detail, secrets: Arc::clone(&gate.secrets) },
        metrics: Arc::clone(&gate.metrics),
        personal,
    };
    if !is_large {
        return filter.judge(executed);
    }
    let done = tokio::task::spawn_blocking(move || filter.judge(executed)).await;
    // A panic there ends the call like any other panic.
    done.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// The approximate number of bytes of its JSON.
fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(members) => members.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    inside + LEAST_WEIGHT
}

/// What filtering needs. Owned, because filtering continues on the blocking pool if the call is dropped.
struct Filter {
    how: RecordFormat,
    metrics: Arc<Metrics>,
    /// The values of personal fields of the arguments.
    personal: Option<Arc<PersonalData>>,
}

impl Filter {
    fn judge(self, executed: Executed) -> Result<Filtered, StoppedCall> {
        let Executed { bound, mut report, .. } = executed;
        let tool = &bound.admitted.tool;
        // A tool that returns nothing has always released this text.
        let returned = match &mut report.outcome {
            Ok(value) => value.take().unwrap_or_else(|| Value::String("undefined".to_owned())),
            Err(_) => Value::Null,
        };
        // Before anything is withheld: withholding must not hide an alert.
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
                let message = "the result contains a secret that cannot be redacted; the result was withheld";
                return Err(StoppedCall::new(Reason::SecretInOutput, message)
                    .with_alerts(alerts)
                    .with_report(report));
            }
            findings = clean.findings;
            clean.value
        } else {
            value
        };
        // After the redaction: escaping an invisible character inside a secret would hide the secret from the detector.
        let (value, is_changed) = clean::clean(value);
        let bytes = digest::json_bytes(&value);
        let most = tool.policy.execution.max_output_bytes.value;
        if bytes as u64 > most {
            let message = format!("the result has {bytes} bytes; this tool may return {most}");
            return Err(StoppedCall::new(Reason::OutputTooLarge, message)
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

    /// The output for the journal, if the tool's audit policy or the operator wants it.
    fn for_journal(&self, tool: &LiveTool, value: &Value) -> Option<Value> {
        let is_wanted =
            self.how.journal_detail == JournalDetail::Everything || tool.policy.audit.log_output.value;
        if !is_wanted {
            return None;
        }
        let fields = &tool.spec.governance.pii_fields;
        let personal = self.personal.as_ref().map(|held| held.and_in_result(fields, value).mask());
        Some(tool.for_journal(value.clone(), personal.as_ref(), &self.how.secrets))
    }
}

/// Searches each text by itself and all of them as JSON. Neither quoting nor splitting over members hides a match.
fn alerts_in(tool: &LiveTool, value: &Value) -> Vec<String> {
    if !tool.has_alarms() {
        return Vec::new();
    }
    let json = value.to_string();
    tool.alarms_in([json.as_str()].into_iter().chain(texts::of(value)))
}

/// A result that does not fit the output schema is withheld as a whole.
fn fits(tool: &LiveTool, returned: &Value) -> Result<(), StoppedCall> {
    let Some(schema) = &tool.output else { return Ok(()) };
    let violations = schema.violations(returned, 1);
    let Some(first) = violations.first() else { return Ok(()) };
    let message = "the result does not fit the tool's output schema; it was withheld";
    // The field rules were not applied yet, so the journal gets nothing of the result.
    Err(StoppedCall::new(Reason::OutputShape, message)
        .for_operator(format!("the result does not fit the output schema: {}", first.without_value)))
}

impl Filtered {
    pub fn into_released(self, call_id: &str) -> (ReleasedCall, RunReport) {
        let Self { value, is_structured, warnings, report, .. } = self;
        (ReleasedCall { call_id: call_id.to_owned(), value, is_structured, warnings }, report)
    }
}

/// Filtering this much ordinary text takes about 0.1 ms, and adversarial text some milliseconds.
const LARGE: usize = 4 * 1024;
/// A number and a comma, or quotes.
const LEAST_WEIGHT: usize = 4;
/// Clients reject structured content that does not fit the listed schema.
const UNSTRUCTURED: &str = "after redaction or escaping, the result no longer fits the tool's output schema; it is returned as text only";
