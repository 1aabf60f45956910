//! C. What would this call touch, and does the effective policy grant it?

use std::{borrow::Cow, collections::BTreeSet};

use serde_json::Value;

use super::{bind::Bound, stop::Stop};
use crate::ports::Survey;

/// A call of which is known what it would touch. Danger is no refusal; it is a question to a person.
#[derive(Debug)]
pub struct Checked {
    pub bound: Bound,
    pub survey: Survey,
    /// The danger patterns that hit.
    pub dangers: Vec<String>,
    /// Texts in the arguments about which somebody wants to be told.
    pub alerts: Vec<String>,
    _sealed: (),
}

pub fn check(bound: Bound) -> Result<Checked, Stop> {
    let survey = bound
        .admitted
        .tool
        .runnable
        .survey(&bound.arguments)
        .map_err(|refusal| Stop::new(refusal.reason, refusal.message).with_remedy(refusal.remedy))?;
    let texts = texts_of(&bound, &survey);
    let (dangers, alerts) =
        (dangers(&bound, &texts), bound.admitted.tool.alarms_in(texts.iter().map(AsRef::as_ref)));
    Ok(Checked { bound, survey, dangers, alerts, _sealed: () })
}

/// Each text of the arguments by itself, all of them as JSON, and the real names of what they lead to, so that neither
/// quoting, nor splitting over members, nor a link hides anything that an author meant. Nothing where nobody looks.
fn texts_of<'c>(bound: &'c Bound, survey: &'c Survey) -> Vec<Cow<'c, str>> {
    let tool = &bound.admitted.tool;
    if tool.danger.is_empty() && !tool.has_alarms() {
        return Vec::new();
    }
    let mut texts = vec![Cow::Owned(serde_json::to_string(&bound.arguments).unwrap_or_default())];
    let mut add = |text: &'c str| texts.push(Cow::Borrowed(text));
    bound.arguments.values().for_each(|value| collect(value, &mut add));
    survey.touches.iter().for_each(|touch| add(&touch.target));
    texts
}

fn dangers(bound: &Bound, texts: &[Cow<'_, str>]) -> Vec<String> {
    let danger = &bound.admitted.tool.danger;
    let hits: BTreeSet<usize> =
        texts.iter().flat_map(|text| danger.matches(text).iter().collect::<Vec<_>>()).collect();
    hits.into_iter().filter_map(|at| danger.patterns().get(at).cloned()).collect()
}

fn collect<'v>(value: &'v Value, add: &mut impl FnMut(&'v str)) {
    match value {
        Value::String(text) => add(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, add)),
        Value::Object(members) => {
            for (key, value) in members {
                add(key);
                collect(value, add);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
