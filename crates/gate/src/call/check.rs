//! Stage C: finds what the call would touch and checks it against the effective policy.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};
use toolgate_policy::DecisionSource;
use toolgate_secrets::Tier;

use super::{
    bind::BoundCall,
    decide::DecisionNotes,
    support::{disk, secrets, stop::StoppedCall, texts},
};
use crate::{
    gate::GateInner,
    ports::{ApprovedSecrets, StopFlag, Survey, SurveyQuestion, Surveyed, Touch, UnreportedEffects},
    reason::Reason,
};

/// A call whose targets are known and granted. A danger pattern does not refuse the call; it requires an approval.
#[derive(Debug)]
pub struct Checked {
    pub bound: BoundCall,
    pub touches: Vec<Touch>,
    /// Effects beyond what the arguments name, as text for the approval prompt.
    pub widened: Vec<String>,
    questions: Vec<SurveyQuestion>,
    /// The danger patterns that matched.
    pub dangers: Vec<String>,
    /// Probable secrets in the arguments. They may be sent if a person approves the call.
    pub approved_secrets: ApprovedSecrets,
    /// `alertOn` texts found in the arguments.
    pub alerts: Vec<String>,
    pub call: Box<dyn Surveyed>,
    /// For the record of a call that is dropped.
    pub notes: Arc<DecisionNotes>,
    pub unreported: Arc<UnreportedEffects>,
    _sealed: (),
}

impl Checked {
    /// The questions that the arguments raise.
    pub fn questions(&self) -> impl Iterator<Item = &SurveyQuestion> {
        self.questions.iter()
    }
}

pub async fn check(gate: &GateInner, bound: BoundCall) -> Result<Checked, StoppedCall> {
    let survey = survey(gate, &bound).await.map_err(|stop| stop.with_alerts(alerts_in(&bound, &[])))?;
    let Survey { touches, widened, mut questions, built, call } = survey;
    let alerts = alerts_in(&bound, &touches);
    let mut approved_secrets = ApprovedSecrets::default();
    if bound.admitted.tool.policy.data.can_leak_data.value
        && let Some(found) = secrets_in(gate, &bound).map_err(|stop| stop.with_alerts(alerts.clone()))?
    {
        questions.push(found.question);
        approved_secrets = found.approved_secrets;
    }
    let dangers = dangers(&bound, (&touches, &built));
    let (notes, unreported) = (Arc::default(), Arc::default());
    Ok(Checked {
        bound,
        touches,
        widened,
        questions,
        dangers,
        approved_secrets,
        alerts,
        call,
        notes,
        unreported,
        _sealed: (),
    })
}

async fn survey(gate: &GateInner, bound: &BoundCall) -> Result<Survey, StoppedCall> {
    let runnable = Arc::clone(&bound.admitted.tool.runnable);
    let surveyed = if runnable.survey_waits_for_disk() {
        let arguments = Arc::clone(&bound.arguments);
        let job = move |stop: &StopFlag| runnable.survey(arguments.members(), stop);
        // Boxed, because most calls do not need it.
        Box::pin(disk::blocking(gate, &bound.admitted.call, job)).await?
    } else {
        runnable.survey(bound.arguments.members(), &StopFlag::default())
    };
    surveyed.map_err(|refusal| StoppedCall::new(refusal.reason, refusal.message).with_remedy(refusal.remedy))
}

/// A probable secret that the tool would send, and the question about it.
struct ProbableSecret {
    question: SurveyQuestion,
    approved_secrets: ApprovedSecrets,
}

/// Refuses a definite secret in the arguments of a tool that sends data.
fn secrets_in(gate: &GateInner, bound: &BoundCall) -> Result<Option<ProbableSecret>, StoppedCall> {
    let json = serde_json::to_string(bound.arguments.members()).unwrap_or_default();
    let texts = texts::of_members(bound.arguments.members());
    let Some(finding) = secrets::surest(&gate.secrets, &texts, &json) else { return Ok(None) };
    let what = secrets::shown(&finding);
    if finding.tier == Tier::Definite {
        let message = format!("the arguments contain a secret ({what}), and this tool sends them out");
        return Err(StoppedCall::new(Reason::SecretToSink, message).with_remedy("leave the secret out"));
    }
    let why = format!("the arguments probably contain a secret ({what}), and this tool sends them out");
    let question = SurveyQuestion { source: DecisionSource::Secret, why };
    let approved_secrets = ApprovedSecrets::new(secrets::values(&gate.secrets, &texts, &json));
    Ok(Some(ProbableSecret { question, approved_secrets }))
}

/// Each text of the arguments by itself, all of them as JSON, and the real names of their targets. Neither quoting, nor
/// splitting over members, nor a symlink hides anything. Empty if the tool has no `alertOn` texts.
fn texts_of<'c>(bound: &'c BoundCall, touches: &'c [Touch]) -> Vec<Cow<'c, str>> {
    if !bound.admitted.tool.has_alarms() {
        return Vec::new();
    }
    texts_in(bound.arguments.members(), touches)
}

fn texts_in<'c>(arguments: &'c Map<String, Value>, touches: &'c [Touch]) -> Vec<Cow<'c, str>> {
    let json: Cow<'c, str> = Cow::Owned(serde_json::to_string(arguments).unwrap_or_default());
    let texts = texts::of_members(arguments).into_iter().map(Cow::Borrowed);
    let targets = touches.iter().map(|touch| Cow::Borrowed(touch.target.as_str()));
    [json].into_iter().chain(texts).chain(targets).collect()
}

fn alerts_in(bound: &BoundCall, touches: &[Touch]) -> Vec<String> {
    bound.admitted.tool.alarms_in(texts_of(bound, touches).iter().map(AsRef::as_ref))
}

/// The danger patterns that match an argument with a path, URL or command, the real name of its target, or a text that
/// another program receives.
fn dangers(bound: &BoundCall, (touches, built): (&[Touch], &[String])) -> Vec<String> {
    let tool = &bound.admitted.tool;
    if tool.danger.is_empty() {
        return Vec::new();
    }
    let arguments = tool.danger_scope.of_arguments(bound.arguments.members());
    let built = built.iter().map(|text| Cow::Borrowed(text.as_str()));
    let texts: Vec<Cow<'_, str>> = texts_in(&arguments, touches).into_iter().chain(built).collect();
    let hits: BTreeSet<usize> =
        texts.iter().flat_map(|text| tool.danger.matches(text).iter().collect::<Vec<_>>()).collect();
    hits.into_iter().filter_map(|at| tool.danger.patterns().get(at).cloned()).collect()
}
