//! C. What would this call touch, and does the effective policy grant it?

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value};
use toolgate_secrets::Tier;

use super::{bind::Bound, decide::Hearing, secrets, stop::Stop, survey, texts};
use crate::{
    gate::Inner,
    ports::{Agreed, Question, Survey},
    reason::Reason,
};

/// A call of which is known what it would touch. Danger is no refusal; it is a question to a person.
#[derive(Debug)]
pub struct Checked {
    pub bound: Bound,
    pub survey: Survey,
    /// The danger patterns that hit.
    pub dangers: Vec<String>,
    /// Texts in the arguments about which somebody wants to be told.
    pub alerts: Vec<String>,
    /// What was said of it so far, for a call that is dropped before it is decided.
    pub hearing: Arc<Hearing>,
    _sealed: (),
}

pub async fn check(gate: &Inner, bound: Bound) -> Result<Checked, Stop> {
    let tool = &bound.admitted.tool;
    let mut survey = survey::of(gate, &bound)
        .await
        .map_err(|stop| stop.with_alerts(alerts(&bound, &texts_of(&bound, &Survey::default()))))?;
    if tool.policy.data.can_leak_data.value {
        look_for_secrets(gate, &bound, &mut survey)
            .map_err(|stop| stop.with_alerts(alerts(&bound, &texts_of(&bound, &survey))))?;
    }
    let alerts = alerts(&bound, &texts_of(&bound, &survey));
    let dangers = dangers(&bound, &survey);
    // This call's own, whatever the handler made of its survey.
    survey.left = Arc::default();
    Ok(Checked { bound, survey, dangers, alerts, hearing: Arc::default(), _sealed: () })
}

/// What this tool gets, it sends away. A secret does not go along, and what looks like one only if a person says so.
fn look_for_secrets(gate: &Inner, bound: &Bound, survey: &mut Survey) -> Result<(), Stop> {
    let json = serde_json::to_string(bound.arguments.members()).unwrap_or_default();
    let texts = texts::of_members(bound.arguments.members());
    let found = secrets::surest(&gate.secrets, &texts, &json);
    let Some(finding) = found else { return Ok(()) };
    let what = secrets::shown(&finding);
    if finding.tier == Tier::Definite {
        let message = format!("the arguments hold a secret ({what}), and this tool sends them out");
        return Err(Stop::new(Reason::SecretToSink, message).with_remedy("leave the secret out"));
    }
    let why = format!("the arguments seem to hold a secret ({what}), and this tool sends them out");
    survey.questions.push(Question { source: "secret", why });
    survey.agreed = Agreed::new(secrets::values(&gate.secrets, &texts, &json));
    Ok(())
}

/// Each text of the arguments by itself, all of them as JSON, and the real names of what they lead to. Neither quoting, nor
/// splitting over members, nor a symlink hides anything. Empty if the tool has no alarms.
fn texts_of<'c>(bound: &'c Bound, survey: &'c Survey) -> Vec<Cow<'c, str>> {
    if !bound.admitted.tool.has_alarms() {
        return Vec::new();
    }
    texts_in(bound.arguments.members(), survey)
}

fn texts_in<'c>(arguments: &'c Map<String, Value>, survey: &'c Survey) -> Vec<Cow<'c, str>> {
    let json: Cow<'c, str> = Cow::Owned(serde_json::to_string(arguments).unwrap_or_default());
    let texts = texts::of_members(arguments).into_iter().map(Cow::Borrowed);
    let targets = survey.touches.iter().map(|touch| Cow::Borrowed(touch.target.as_str()));
    [json].into_iter().chain(texts).chain(targets).collect()
}

fn alerts(bound: &Bound, texts: &[Cow<'_, str>]) -> Vec<String> {
    bound.admitted.tool.alarms_in(texts.iter().map(AsRef::as_ref))
}

/// The danger patterns that match an argument which names a path, URL or command, the real name of what it leads to, or a text that
/// another program is given.
fn dangers(bound: &Bound, survey: &Survey) -> Vec<String> {
    let tool = &bound.admitted.tool;
    if tool.danger.is_empty() {
        return Vec::new();
    }
    let arguments = tool.danger_scope.of_arguments(bound.arguments.members());
    let built = survey.built.iter().map(|text| Cow::Borrowed(text.as_str()));
    let texts: Vec<Cow<'_, str>> = texts_in(&arguments, survey).into_iter().chain(built).collect();
    let hits: BTreeSet<usize> =
        texts.iter().flat_map(|text| tool.danger.matches(text).iter().collect::<Vec<_>>()).collect();
    hits.into_iter().filter_map(|at| tool.danger.patterns().get(at).cloned()).collect()
}
