//! The journal's entry for a call. Its fields are a promise; see `docs/journal-fields.md`.

use std::{
    ops::{Deref, Not},
    sync::Arc,
    time::Duration,
};

use regex::Regex;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use toolgate_spec::FieldPattern;
use uuid::Uuid;

use crate::{
    approval::Spent,
    call::{
        check::Checked,
        decide::{Consent, Decided, Decision, DecisionNotes},
        execute::Executed,
        filter::Filtered,
        support::{
            console,
            personal::{self, Held},
            stop::{Answered, Stop},
        },
    },
    digest,
    gate::{Call, OnJournalFailure},
    live::LiveTool,
    outcome::Outcome,
    ports::{EffectEntry, Left, LeftEffects, RunReport, Runnable, Touch},
    reason::{End, Reason, Stage},
};

/// Why is the tool run?
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    Call,
    LocalPass,
}

/// A part that is the same in every record of a tool.
#[derive(Clone, Debug)]
pub struct Shared(Arc<Value>);

impl From<Value> for Shared {
    fn from(mut value: Value) -> Self {
        value.sort_all_objects();
        Self(Arc::new(value))
    }
}

impl Deref for Shared {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl Serialize for Shared {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// Written twice: as `call.opened` with what is known then, and as `call.closed` with all of it. Fields, and members of the values
/// in them, stand in the order of canonical JSON: a record that has to be put in order takes twice as long to write.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallRecord {
    /// Texts that the tool's audit policy wants somebody to be told of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Value>,
    pub audit_mode: &'static str,
    pub call_id: String,
    pub caller: Value,
    pub client: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dangers: Vec<String>,
    /// Are arguments and outputs written down, and not only their digests?
    #[serde(skip_serializing_if = "Not::not")]
    pub debug: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub denial: Option<Value>,
    /// Milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<f64>,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Shared>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policies_version: Option<Shared>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<String>,
    pub purpose: Purpose,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    pub request: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<Value>,
    /// The last stage that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<&'static str>,
    pub tool: Shared,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_safety: Option<Shared>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub touches: Vec<Value>,
    pub trace_id: String,
    /// What personal fields of the arguments hold: kept here, and out of what the tool says of the call.
    #[serde(skip)]
    pub(super) personal: Option<Arc<Held>>,
    /// Where a run that is dropped leaves what it had done.
    #[serde(skip)]
    left: Option<Arc<LeftEffects>>,
    /// What was said of a call that is not decided yet.
    #[serde(skip)]
    notes: Option<Arc<DecisionNotes>>,
    /// Knows the values of the tool's secrets.
    #[serde(skip)]
    pub(super) runnable: Option<Arc<dyn Runnable>>,
    /// What the tool's audit policy blots out of free texts.
    #[serde(skip)]
    pub(super) redact: Arc<[Regex]>,
}

impl CallRecord {
    pub fn opened(call: &Call, purpose: Purpose, on_failure: OnJournalFailure) -> Self {
        let call_id = Uuid::now_v7().to_string();
        let mut request = Map::new();
        request.insert("argsHash".into(), digest::of(&call.arguments).into());
        let client = &call.client;
        Self {
            kind: "call.opened",
            trace_id: call_id.clone(),
            call_id,
            purpose,
            audit_mode: on_failure.name(),
            debug: false,
            caller: json!({ "permissions": call.caller.permissions, "sub": call.caller.subject }),
            client: json!({
                "conversation": client.conversation,
                "name": client.name,
                "protocol": client.protocol,
                "transport": client.transport,
                "version": client.version,
            }),
            tool: json!({ "name": call.tool }).into(),
            request,
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
            left: None,
            notes: None,
            runnable: None,
            redact: Arc::from([]),
        }
    }

    pub fn arguments_digest(&self) -> &str {
        self.request.get("argsHash").and_then(Value::as_str).unwrap_or_default()
    }

    /// `policies`: the digest of the operator's policies, which have no say in a test run.
    pub fn admitted(&mut self, tool: &LiveTool, policies: Option<&Shared>) {
        self.stage = Some(Stage::Admit.name());
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
        shown: super::Shown,
    ) {
        self.stage = Some(Stage::Bind.name());
        self.request.insert("boundHash".into(), arguments_digest.into());
        if !coercions.is_empty() {
            // Callers choose how many: absent members need not even be declared.
            let first = coercions.iter().take(MOST_COERCIONS);
            let first: Vec<_> = first.map(|told| personal::coercion(personal_fields, told)).collect();
            self.request.insert("coercionCount".into(), coercions.len().into());
            self.request.insert("coercions".into(), json!(first));
        }
        if let Some(arguments) = shown {
            self.request.shift_insert(0, "args".into(), in_order(Value::Object(arguments)));
        }
    }

    pub fn checked(&mut self, checked: &Checked) {
        self.stage = Some(Stage::Check.name());
        let shown = |touch: &Touch| json!({ "target": touch.target, "what": touch.kind.name() });
        self.touches = checked.touches.iter().take(MOST_EFFECTS).map(shown).collect();
        self.dangers.clone_from(&checked.dangers);
        self.alert(&checked.alerts);
        self.left = Some(Arc::clone(&checked.left));
        self.notes = Some(Arc::clone(&checked.notes));
    }

    /// A call that nobody waits for any more tells nothing; what was said of it, and what its run had done, is known all the same.
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
        let left = self.left.take().map(|left| left.take()).unwrap_or_default();
        let Left { effects, dropped, refused, refused_dropped } = left;
        if (effects.is_empty() && refused.is_empty()) || self.run.is_some() {
            return;
        }
        let shown: Vec<Value> = effects.iter().take(MOST_EFFECTS).map(shown_effect).collect();
        let mut run = json!({ "effectCount": all_of(&effects, dropped.into()), "effects": shown });
        if let (false, Some(run)) = (refused.is_empty(), run.as_object_mut()) {
            run.insert("refused".into(), refused.iter().take(MOST_REFUSED).cloned().collect());
            run.insert("refusedCount".into(), all_of(&refused, refused_dropped).into());
        }
        self.run = Some(run);
    }

    /// Each text once, whether the arguments, the console or the result hold it.
    pub fn alert(&mut self, found: &[String]) {
        let new = found.iter().filter(|text| !self.alerts.contains(text)).cloned();
        self.alerts = self.alerts.iter().cloned().chain(new).collect();
    }

    pub fn decided(&mut self, decided: &Decided) {
        self.stage = Some(Stage::Decide.name());
        self.decisions(&decided.decisions);
        if matches!(decided.consent, Consent::Remembered) {
            self.approval = Some(json!({ "trusted": true }));
        }
    }

    fn consumed(&mut self, consumed: Option<&Spent>) {
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
        let shown = |decision: &Decision| {
            let verdict = decision.verdict.name();
            json!({ "source": decision.source.name(), "verdict": verdict, "why": decision.why })
        };
        self.decisions = decisions.iter().take(MOST_DECISIONS).map(shown).collect();
    }

    pub fn executed(&mut self, executed: &Executed) {
        self.notes = None;
        self.consumed(executed.approval.as_ref());
        self.alert(&executed.alerts);
        self.ran(&executed.report);
    }

    fn ran(&mut self, report: &RunReport) {
        self.stage = Some(Stage::Execute.name());
        let usage = &report.usage;
        let effects: Vec<Value> = report.effects.iter().take(MOST_EFFECTS).map(shown_effect).collect();
        let refused: Vec<&String> = report.refused.iter().take(MOST_REFUSED).collect();
        let mut run = json!({
            "effectCount": all_of(&report.effects, report.effects_dropped.into()),
            "effects": effects,
            "refused": refused,
            "refusedCount": all_of(&report.refused, report.refused_dropped),
            "usage": {
                "elapsedUs": usage.elapsed_us,
                "hostBytes": usage.host_bytes,
                "hostCalls": usage.host_calls,
                "memoryBytes": usage.memory_bytes,
                "statements": usage.statements,
            },
            "walls": report.walls,
            "worker": report.worker,
        });
        if let (false, Some(run)) = (report.console.is_empty(), run.as_object_mut()) {
            run.shift_insert(0, "consoleHash".into(), digest::of(&report.console).into());
            run.shift_insert(1, "consoleLines".into(), report.console.len().into());
        }
        self.run = Some(run);
    }

    pub fn filtered(&mut self, filtered: &Filtered) {
        self.stage = Some(Stage::Filter.name());
        self.alert(&filtered.alerts);
        let mut response = Map::new();
        response.insert("bytes".into(), filtered.bytes.into());
        if let Some(output) = &filtered.for_journal {
            response.insert("output".into(), in_order(output.clone()));
        }
        response.insert("outputHash".into(), filtered.output_digest.as_str().into());
        response.insert("redactedFields".into(), json!(filtered.redacted));
        if !filtered.secrets.is_empty() {
            response.insert("secrets".into(), filtered.secrets.clone().into());
        }
        self.response = Some(Value::Object(response));
    }

    pub fn stopped(&mut self, stage: Stage, stop: &Stop) {
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

    /// Nobody reads the console; but the author of a draft always does.
    fn console_stays(&mut self) {
        if self.purpose == Purpose::Call
            && let Some(run) = self.run.as_mut().and_then(Value::as_object_mut)
        {
            run.shift_remove("consoleLines");
            run.shift_remove("consoleHash");
        }
    }

    fn not_released(&mut self, reason: Reason) {
        self.reason = Some(reason.code());
        self.decision = Some(if reason.end() == End::Refused { "DENIED" } else { "ERROR" });
        self.denial = Some(json!({
            "reason": reason.code(),
            "stage": reason.stage().map(Stage::audit_name),
        }));
    }
}

fn shown_answer(answered: &Answered) -> Value {
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

/// As a caller or a tool wrote it, it may be in any.
fn in_order(mut value: Value) -> Value {
    value.sort_all_objects();
    value
}

const MOST_EFFECTS: usize = 100;
const MOST_REFUSED: usize = 100;
const MOST_COERCIONS: usize = 20;
/// Arguments that name much outside raise a question each.
const MOST_DECISIONS: usize = 100;
