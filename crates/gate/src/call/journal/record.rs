//! The journal entry of a call. Its fields are stable; see `docs/journal-fields.md`.

use std::{ops::Not, sync::Arc, time::Duration};

use regex::Regex;
use serde::Serialize;
use serde_json::{Value, json};
use toolgate_spec::FieldPattern;
use uuid::Uuid;

use super::parts::{
    CallerEntry, ClientInfoEntry, DecisionEntry, PreparedJson, RequestEntry, ResponseEntry, RunEntry,
};
use crate::{
    approval::ConsumedApproval,
    call::{
        check::Checked,
        decide::{Consent, Decided, Decision, DecisionNotes},
        execute::Executed,
        filter::Filtered,
        support::{
            console,
            personal::{self, PersonalData},
            stop::{AnsweredQuestion, StoppedCall},
        },
    },
    digest,
    gate::{Call, OnJournalFailure},
    live::LiveTool,
    outcome::Outcome,
    ports::{EffectEntry, RunReport, Runnable, Touch, UnreportedEffects, UnreportedRun},
    reason::{CallStage, EndKind, Reason},
};

/// Why the tool runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Call,
    LocalPass,
}

/// Written twice: as `call.opened` with what is known at the start, and as `call.closed` with everything. Fields and
/// nested members are in canonical JSON order, because sorting a record doubles the time to write it.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// Matches of the tool's `alertOn` texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Value>,
    pub audit_mode: &'static str,
    pub call_id: String,
    pub caller: CallerEntry,
    pub client: ClientInfoEntry,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dangers: Vec<String>,
    /// Whether arguments and outputs are recorded, not only their digests.
    #[serde(skip_serializing_if = "Not::not")]
    pub debug: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<DecisionEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denial: Option<Value>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<PreparedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies_version: Option<PreparedJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    pub purpose: Purpose,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    pub request: RequestEntry,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<ResponseEntry>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunEntry>,
    /// The last stage that the call reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<&'static str>,
    pub tool: PreparedJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_safety: Option<PreparedJson>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Value>,
    pub trace_id: String,
    /// The values of personal fields of the arguments. They are masked in what the tool says.
    #[serde(skip)]
    pub(super) personal: Option<Arc<PersonalData>>,
    /// The effects of a run that was dropped.
    #[serde(skip)]
    unreported: Option<Arc<UnreportedEffects>>,
    /// The decisions and the question of a call that was dropped before it was decided.
    #[serde(skip)]
    notes: Option<Arc<DecisionNotes>>,
    /// Knows the values of the tool's secrets.
    #[serde(skip)]
    pub(super) runnable: Option<Arc<dyn Runnable>>,
    /// The tool's redact patterns for free texts.
    #[serde(skip)]
    pub(super) redact: Arc<[Regex]>,
}

impl CallRecord {
    pub fn opened(call: &Call, purpose: Purpose, on_failure: OnJournalFailure) -> Self {
        let call_id = Uuid::now_v7().to_string();
        Self {
            kind: "call.opened",
            trace_id: call_id.clone(),
            call_id,
            purpose,
            audit_mode: on_failure.name(),
            debug: false,
            caller: CallerEntry::from(&call.caller),
            client: ClientInfoEntry::from(&call.client),
            tool: json!({ "name": call.tool }).into(),
            request: RequestEntry { args_hash: digest::of(&call.arguments), ..RequestEntry::default() },
            tool_safety: None,
            policy_version: None,
            policies_version: None,
            labels: None,
            touches: Vec::new(),
            dangers: Vec::new(),
            alerts: Vec::new(),
            decisions: Vec::new(),
            approval: None,
            run: None,
            response: None,
            decision: None,
            outcome: None,
            denial: None,
            stage: None,
            reason: None,
            message: None,
            duration: None,
            personal: None,
            unreported: None,
            notes: None,
            runnable: None,
            redact: Arc::from([]),
        }
    }

    pub fn arguments_digest(&self) -> &str {
        &self.request.args_hash
    }

    /// `policies` is the digest of the operator's policies. They do not apply to test runs.
    pub fn admitted(&mut self, tool: &LiveTool, policies: Option<&PreparedJson>) {
        self.stage = Some(CallStage::Admit.name());
        self.policies_version = policies.filter(|_| self.purpose == Purpose::Call).cloned();
        self.tool = tool.recorded.tool.clone();
        self.policy_version = Some(tool.policy_digest.clone());
        self.tool_safety = Some(tool.recorded.safety.clone());
        self.labels = Some(tool.recorded.labels.clone());
        self.redact = Arc::clone(&tool.redact);
        self.runnable = Some(Arc::clone(&tool.runnable));
    }

    pub fn bound(
        &mut self,
        arguments_digest: &str,
        personal_fields: &[FieldPattern],
        coercions: &[String],
        shown: super::LoggedArguments,
    ) {
        self.stage = Some(CallStage::Bind.name());
        self.request.bound_hash = Some(arguments_digest.to_owned());
        if !coercions.is_empty() {
            // Callers can send any number of undeclared members that count as absent, so the list is bounded.
            let first = coercions.iter().take(MOST_COERCIONS);
            let first: Vec<_> = first.map(|told| personal::coercion(personal_fields, told)).collect();
            self.request.coercion_count = Some(coercions.len());
            self.request.coercions = Some(json!(first));
        }
        if let Some(arguments) = shown {
            self.request.args = Some(in_order(Value::Object(arguments)));
        }
    }

    pub fn checked(&mut self, checked: &Checked) {
        self.stage = Some(CallStage::Check.name());
        let shown = |touch: &Touch| json!({ "target": touch.target, "what": touch.kind.name() });
        self.touches = checked.touches.iter().take(MOST_EFFECTS).map(shown).collect();
        self.dangers.clone_from(&checked.dangers);
        self.alert(&checked.alerts);
        self.unreported = Some(Arc::clone(&checked.unreported));
        self.notes = Some(Arc::clone(&checked.notes));
    }

    /// Adds the notes and effects of a call that was dropped and therefore returned none.
    pub fn cut_off(&mut self) {
        if let Some(notes) = self.notes.take() {
            let notes = notes.end();
            if self.decisions.is_empty() {
                self.decisions(&notes.decisions);
            }
            if let Some(question) = &notes.question {
                self.approval = Some(shown_answer(question));
            }
        }
        let unreported = self.unreported.take().map(|unreported| unreported.take()).unwrap_or_default();
        let UnreportedRun { effects, dropped, refused, refused_dropped } = unreported;
        if (effects.is_empty() && refused.is_empty()) || self.run.is_some() {
            return;
        }
        let mut run = RunEntry {
            effect_count: all_of(&effects, dropped.into()),
            effects: effects.iter().take(MOST_EFFECTS).map(shown_effect).collect(),
            ..RunEntry::default()
        };
        if !refused.is_empty() {
            run.refused = Some(refused.iter().take(MOST_REFUSED).cloned().collect());
            run.refused_count = Some(all_of(&refused, refused_dropped));
        }
        self.run = Some(run);
    }

    /// Records each text once, even if arguments, console and result all contain it.
    pub fn alert(&mut self, found: &[String]) {
        for text in found {
            if !self.alerts.contains(text) {
                self.alerts.push(text.clone());
            }
        }
    }

    pub fn decided(&mut self, decided: &Decided) {
        self.stage = Some(CallStage::Decide.name());
        self.decisions(&decided.decisions);
        if matches!(decided.consent, Consent::Remembered) {
            self.approval = Some(json!({ "trusted": true }));
        }
    }

    fn consumed(&mut self, consumed: Option<&ConsumedApproval>) {
        if let Some(spent) = consumed {
            let mut approval = json!({ "by": spent.decided_by, "id": spent.id.as_str() });
            if let (Some(remembers), Some(members)) = (&spent.remembers, approval.as_object_mut()) {
                let shown =
                    json!({ "conversation": remembers.conversation, "until": remembers.until_text() });
                members.insert("remembered".into(), shown);
            }
            self.approval = Some(approval);
        }
    }

    fn decisions(&mut self, decisions: &[Decision]) {
        self.decisions = decisions.iter().take(MOST_DECISIONS).map(DecisionEntry::from).collect();
    }

    pub fn executed(&mut self, executed: &Executed) {
        self.notes = None;
        self.consumed(executed.approval.as_ref());
        self.alert(&executed.alerts);
        self.ran(&executed.report);
    }

    fn ran(&mut self, report: &RunReport) {
        self.stage = Some(CallStage::Execute.name());
        let has_console = !report.console.is_empty();
        self.run = Some(RunEntry {
            console_hash: has_console.then(|| digest::of(&report.console)),
            console_lines: has_console.then_some(report.console.len()),
            effect_count: all_of(&report.effects, report.effects_dropped.into()),
            effects: report.effects.iter().take(MOST_EFFECTS).map(shown_effect).collect(),
            refused: Some(report.refused.iter().take(MOST_REFUSED).map(String::as_str).collect()),
            refused_count: Some(all_of(&report.refused, report.refused_dropped)),
            usage: Some((&report.usage).into()),
            layers: Some(report.layers.clone()),
            worker: Some(report.worker.into()),
        });
    }

    pub fn filtered(&mut self, filtered: &Filtered) {
        self.stage = Some(CallStage::Filter.name());
        self.alert(&filtered.alerts);
        self.response = Some(ResponseEntry {
            bytes: filtered.bytes,
            output: filtered.for_journal.clone().map(in_order),
            output_hash: filtered.output_digest.clone(),
            redacted_fields: filtered.redacted.iter().map(String::as_str).collect(),
            secrets: filtered.secrets.clone(),
        });
    }

    pub fn stopped(&mut self, stage: CallStage, stop: &StoppedCall) {
        self.stage = Some(stage.name());
        self.notes = None;
        self.message = Some(match &self.personal {
            Some(held) if personal::is_said_by_tool(stop.reason) => held.mask().text(&stop.to_operator),
            _ => stop.to_operator.clone(),
        });
        if !stop.for_journal.decisions.is_empty() {
            self.decisions(&stop.for_journal.decisions);
        }
        self.consumed(stop.for_journal.consumed.as_ref());
        if let Some(approval) = &stop.asked {
            self.approval = Some(json!({ "id": approval.id.as_str(), "state": approval.state.name() }));
        } else if let Some(answered) = &stop.for_journal.answered {
            self.approval = Some(shown_answer(answered));
        }
        if let Some(report) = stop.report() {
            self.ran(report);
            self.stage = Some(stage.name());
        }
    }

    pub fn close(&mut self, outcome: &Outcome, elapsed: Duration) {
        self.kind = "call.closed";
        self.duration = Some((elapsed.as_secs_f64() * 1_000_000.0).round() / 1_000.0);
        self.outcome = Some(match outcome {
            Outcome::Released(_) => "released",
            Outcome::Pending(_) => "pending",
            Outcome::Refused(_) => "refused",
            Outcome::Failed(_) => "failed",
            Outcome::Broken(_) => "broken",
        });
        if !console::may_leave(outcome) {
            self.console_stays();
        }
        let Some(reason) = outcome.reason() else {
            self.decision = Some("ALLOWED");
            return;
        };
        self.not_released(reason);
    }

    /// The caller went away before the end.
    pub fn cancelled(&mut self, elapsed: Duration) {
        self.cut_off();
        self.kind = "call.closed";
        self.duration = Some((elapsed.as_secs_f64() * 1_000_000.0).round() / 1_000.0);
        self.outcome = Some("failed");
        self.message = Some("the caller cancelled the call or went away".to_owned());
        self.console_stays();
        self.not_released(Reason::Cancelled);
    }

    /// Drops the console, except for the author of a draft.
    fn console_stays(&mut self) {
        if self.purpose == Purpose::Call
            && let Some(run) = &mut self.run
        {
            (run.console_hash, run.console_lines) = (None, None);
        }
    }

    fn not_released(&mut self, reason: Reason) {
        self.reason = Some(reason.code());
        self.decision = Some(if reason.end() == EndKind::Refused { "DENIED" } else { "ERROR" });
        self.denial = Some(json!({
            "reason": reason.code(),
            "stage": reason.stage().map(CallStage::audit_name),
        }));
    }
}

fn shown_answer(answered: &AnsweredQuestion) -> Value {
    let mut shown = json!({ "id": answered.id.as_str(), "state": answered.state.name() });
    if let (Some(by), Some(members)) = (&answered.by, shown.as_object_mut()) {
        members.shift_insert(0, "by".into(), by.as_str().into());
    }
    shown
}

fn all_of<T>(told: &[T], dropped: u64) -> u64 {
    dropped.saturating_add(u64::try_from(told.len()).unwrap_or(u64::MAX))
}

fn shown_effect(effect: &EffectEntry) -> Value {
    let mut shown = json!({
        "bytes": effect.bytes, "outcome": effect.outcome, "target": effect.target, "what": effect.what,
    });
    if let (Some(to), Some(members)) = (&effect.to, shown.as_object_mut()) {
        members.shift_insert(3, "to".into(), to.as_str().into());
    }
    shown
}

/// Sorts the members of a value that a caller or a tool wrote.
fn in_order(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}

const MOST_EFFECTS: usize = 100;
const MOST_REFUSED: usize = 100;
const MOST_COERCIONS: usize = 20;
/// Each host or path outside can raise a question, so the list is bounded.
const MOST_DECISIONS: usize = 100;
