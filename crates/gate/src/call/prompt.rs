//! What is a person asked? Text from the tool's template and the typed arguments, which can neither speak for the
//! gateway nor hide in it.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolgate_policy::Mask;
use toolgate_secrets::Detector;
use toolgate_spec::{is_deceptive, model::ToolSpec};

use super::secrets;

/// One line a fact, escaped and bounded. Placeholders are replaced in one pass: what an argument brings along is text.
pub fn text(
    spec: &ToolSpec,
    wire_name: &str,
    arguments: &Map<String, Value>,
    reasons: &[&str],
    mask: &Mask,
    detector: &Detector,
) -> String {
    // What the gateway knows goes first: the detector may take a part of it for a secret of its own.
    let known = mask.value(Value::Object(arguments.clone()));
    let shown = secrets::sanitise(detector, known).value;
    let nothing = Map::new();
    let arguments = shown.as_object().unwrap_or(&nothing);
    let template = spec.approval.prompt_template.as_deref().unwrap_or(DEFAULT_TEMPLATE);
    let mut prompt = String::new();
    let mut rest = template;
    while let Some(start) = rest.find('{') {
        let (before, after) = rest.split_at(start);
        prompt.push_str(&plain(before));
        let Some(end) = after.find('}') else {
            prompt.push_str(&plain(after));
            rest = "";
            break;
        };
        let (placeholder, tail) = after.split_at(end + 1);
        match value_of(placeholder, wire_name, arguments, mask) {
            Some(value) => prompt.push_str(&plain(&value)),
            None => prompt.push_str(&plain(placeholder)),
        }
        rest = tail;
    }
    prompt.push_str(&plain(rest));
    if !reasons.is_empty() {
        let reasons = secrets::without_secrets(detector, &reasons.join("; "));
        prompt.push_str(&plain(&format!(" (asked because: {reasons})")));
    }
    cut(&prompt, LONGEST_PROMPT)
}

/// Masked before it is cut, or the beginning of a secret would stand at the cut.
fn value_of(
    placeholder: &str,
    wire_name: &str,
    arguments: &Map<String, Value>,
    mask: &Mask,
) -> Option<String> {
    let name = placeholder.trim_start_matches('{').trim_end_matches('}');
    match name.split_once('.') {
        None if name == "toolName" => Some(wire_name.to_owned()),
        None if name == "args" => {
            // Each by itself, so that a long one hides no other.
            let each = LONGEST_ARGUMENTS / arguments.len().max(1);
            let shown: Vec<String> = arguments
                .iter()
                .map(|(key, value)| {
                    let (key, value) = (Value::from(mask.text(key)), mask.text(&value.to_string()));
                    format!("{key}:{}", cut(&value, each.max(SHORTEST_ARGUMENT)))
                })
                .collect();
            Some(format!("{{{}}}", shown.join(",")))
        }
        Some(("args", field)) => {
            let value = arguments.get(field).map_or_else(|| "nothing".to_owned(), Value::to_string);
            Some(cut(&mask.text(&value), LONGEST_ARGUMENT))
        }
        _ => None,
    }
}

/// Characters that move, hide or reorder what is around them are shown by their number.
fn plain(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut plain, character| {
        if is_deceptive(character) {
            let _ = write!(plain, "\\u{{{:x}}}", u32::from(character));
        } else {
            plain.push(character);
        }
        plain
    })
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most).collect();
    format!("{kept}… ({} characters in all)", text.chars().count())
}

const DEFAULT_TEMPLATE: &str = "Run the tool {toolName} with {args}?";
const LONGEST_ARGUMENT: usize = 500;
const LONGEST_ARGUMENTS: usize = 2_000;
const SHORTEST_ARGUMENT: usize = 40;
const LONGEST_PROMPT: usize = 4_000;
