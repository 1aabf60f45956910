//! C. What would this call touch?

use super::bind::Bound;

/// A call whose arguments have been looked at for danger. Danger is no refusal; it is a question to a person.
#[derive(Debug)]
pub struct Checked {
    pub bound: Bound,
    /// The danger patterns that hit.
    pub dangers: Vec<String>,
    _sealed: (),
}

pub fn check(bound: Bound) -> Checked {
    let dangers = dangers(&bound);
    Checked { bound, dangers, _sealed: () }
}

/// Patterns see each text of the arguments by itself, and all of them as JSON, so that neither quoting nor splitting
/// over members hides anything that the author meant.
fn dangers(bound: &Bound) -> Vec<String> {
    let tool = &bound.admitted.tool;
    if tool.danger.is_empty() {
        return Vec::new();
    }
    let mut hits = tool.danger.matches(&serde_json::Value::Object(bound.arguments.clone()).to_string());
    let mut found: std::collections::BTreeSet<usize> = hits.iter().collect();
    let mut texts = Vec::new();
    bound.arguments.values().for_each(|value| collect(value, &mut texts));
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
