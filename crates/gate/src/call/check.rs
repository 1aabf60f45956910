//! C. What would this call touch, and does the effective policy grant it?

use super::{bind::Bound, stop::Stop};
use crate::ports::Survey;

/// A call of which is known what it would touch. Danger is no refusal; it is a question to a person.
#[derive(Debug)]
pub struct Checked {
    pub bound: Bound,
    pub survey: Survey,
    /// The danger patterns that hit.
    pub dangers: Vec<String>,
    _sealed: (),
}

pub fn check(bound: Bound) -> Result<Checked, Stop> {
    let survey = bound
        .admitted
        .tool
        .runnable
        .survey(&bound.arguments)
        .map_err(|refusal| Stop::new(refusal.reason, refusal.message).with_remedy(refusal.remedy))?;
    let dangers = dangers(&bound, &survey);
    Ok(Checked { bound, survey, dangers, _sealed: () })
}

/// Patterns see each text of the arguments by itself, and all of them as JSON, so that neither quoting nor splitting
/// over members hides anything that the author meant; and the real names of what the arguments lead to.
fn dangers(bound: &Bound, survey: &Survey) -> Vec<String> {
    let tool = &bound.admitted.tool;
    if tool.danger.is_empty() {
        return Vec::new();
    }
    let mut hits = tool.danger.matches(&serde_json::Value::Object(bound.arguments.clone()).to_string());
    let mut found: std::collections::BTreeSet<usize> = hits.iter().collect();
    let mut texts = Vec::new();
    bound.arguments.values().for_each(|value| collect(value, &mut texts));
    texts.extend(survey.touches.iter().map(|touch| touch.target.as_str()));
    for text in texts {
        hits = tool.danger.matches(text);
        found.extend(hits.iter());
    }
    found.into_iter().filter_map(|at| tool.danger.patterns().get(at).cloned()).collect()
}

fn collect<'v>(value: &'v serde_json::Value, texts: &mut Vec<&'v str>) {
    match value {
        serde_json::Value::String(text) => texts.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        serde_json::Value::Object(members) => {
            for (key, value) in members {
                texts.push(key);
                collect(value, texts);
            }
        }
        _ => {}
    }
}
