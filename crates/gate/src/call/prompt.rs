//! What is a person asked? Text from the tool's template and the typed arguments, which can neither speak for the
//! gateway nor hide in it; and the arguments themselves, whatever the template leaves out.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolgate_policy::Mask;
use toolgate_secrets::{Detector, Tier};
use toolgate_spec::{is_deceptive, model::ToolSpec};

use super::secrets::{self, Sanitised};

/// The arguments as a person may see them.
pub fn without_secrets(
    arguments: &Map<String, Value>,
    mask: &Mask,
    detector: &Detector,
) -> Map<String, Value> {
    // What the gateway knows goes first: the detector may take a part of it for a secret of its own.
    let known = mask.value(Value::Object(arguments.clone()));
    or_withheld(secrets::sanitise(detector, known), detector)
}

/// What holds a secret that cannot be taken out is not shown. That there are arguments is: nobody says yes to nothing.
fn or_withheld(clean: Sanitised, detector: &Detector) -> Map<String, Value> {
    let Value::Object(shown) = clean.value else { return Map::new() };
    if !clean.still_leaks {
        return shown;
    }
    let count = shown.len();
    let named: Map<String, Value> = shown.into_iter().map(|(name, _)| (name, WITHHELD.into())).collect();
    let json = Value::Object(named.clone()).to_string();
    match detector.contains(json.as_bytes(), Tier::Definite) {
        None => named,
        Some(_) => (1..=count).map(|number| (format!("argument {number}"), WITHHELD.into())).collect(),
    }
}

/// The arguments as JSON in one line. A long one hides no other, and what was cut off is told.
pub fn arguments(shown: &Map<String, Value>, mask: &Mask) -> String {
    let members: Vec<String> = shown
        .iter()
        .map(|(key, value)| format!("{}:{}", json(&key.as_str().into(), mask), json(value, mask)))
        .collect();
    let whole = format!("{{{}}}", members.join(","));
    if whole.len() <= MOST_BYTES {
        return whole;
    }
    let each = fair_share(&members);
    let cut: Vec<String> = members.iter().map(|member| cut_bytes(member, each, member.len())).collect();
    // Where there are too many for a share each, the last ones go.
    cut_bytes(&format!("{{{}}}", cut.join(",")), MOST_BYTES, whole.len())
}

/// One line a fact, escaped and bounded. Placeholders are replaced in one pass: what an argument brings along is text.
/// Takes arguments that have lost their secrets.
pub fn text(
    spec: &ToolSpec,
    wire_name: &str,
    arguments: &Map<String, Value>,
    reasons: &[&str],
    mask: &Mask,
    detector: &Detector,
) -> String {
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
        let reasons = secrets::without_secrets(detector, &mask.text(&reasons.join("; ")));
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
                    let (key, value) = (json(&key.as_str().into(), mask), json(value, mask));
                    format!("{key}:{}", cut(&value, each.max(SHORTEST_ARGUMENT)))
                })
                .collect();
            Some(format!("{{{}}}", shown.join(",")))
        }
        Some(("args", field)) => {
            let value = arguments.get(field).map_or_else(|| "nothing".to_owned(), |value| json(value, mask));
            Some(cut(&value, LONGEST_ARGUMENT))
        }
        _ => None,
    }
}

/// JSON in which characters that move, hide or reorder what is around them are written by their number. They stand in
/// texts only, where `\u` says the same.
fn json(value: &Value, mask: &Mask) -> String {
    let text = mask.text(&value.to_string());
    text.chars().fold(String::with_capacity(text.len()), |mut shown, character| {
        if is_deceptive(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(character);
        }
        shown
    })
}

/// How many bytes each may have, where the short ones leave what they do not need to the long ones.
fn fair_share(members: &[String]) -> usize {
    let mut lengths: Vec<usize> = members.iter().map(String::len).collect();
    lengths.sort_unstable();
    let punctuation = members.len() + 1;
    let (mut room, mut left) = (MOST_BYTES.saturating_sub(punctuation), lengths.len().max(1));
    for length in lengths {
        if length > room / left || left == 1 {
            break;
        }
        room -= length;
        left -= 1;
    }
    (room / left).saturating_sub(LONGEST_NOTE).max(SHORTEST_ARGUMENT)
}

/// The beginning of a text, and how much of the `whole` is missing.
fn cut_bytes(text: &str, most: usize, whole: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    match whole.saturating_sub(kept.len()) {
        few @ ..1_024 => format!("{kept}… {few} bytes more"),
        many => format!("{kept}… {} KiB more", many.div_ceil(1_024)),
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

const WITHHELD: &str = "withheld, for the arguments hold a secret that cannot be taken out of them";
const DEFAULT_TEMPLATE: &str = "Run the tool {toolName} with {args}?";
const LONGEST_ARGUMENT: usize = 500;
const LONGEST_ARGUMENTS: usize = 2_000;
const SHORTEST_ARGUMENT: usize = 40;
const LONGEST_PROMPT: usize = 4_000;
/// Of the arguments that are kept with a question.
const MOST_BYTES: usize = 8 * 1_024;
/// Of `… 1023 bytes more`, with some to spare.
const LONGEST_NOTE: usize = 24;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(value: &Value) -> String {
        let mask = Mask::new(&["s3cr3t-value".to_owned()]);
        let detector = Detector::shipped().unwrap();
        arguments(&without_secrets(value.as_object().unwrap(), &mask, &detector), &mask)
    }

    #[test]
    fn arguments_are_json_without_what_acts_or_is_secret() {
        let hostile =
            json!({ "text": "\u{1b}[2K\u{202e}\n\u{e0041} s3cr3t-value", "\u{200b}n": [1, { "a": null }] });
        let text = shown(&hostile);
        assert_eq!(text, r#"{"text":"\u001b[2K\u202e\n\udb40\udc41 ***","\u200bn":[1,{"a":null}]}"#);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["text"], "\u{1b}[2K\u{202e}\n\u{e0041} ***", "and it means the same");
    }

    /// A caller reads the prompt of its call. A guess must look like any other text.
    #[test]
    fn beginning_of_a_secret_is_shown_as_it_is_written() {
        for guess in ["s3cr3t-val…", "`s3cr3t-v…` and more", "s3cr3t-valu"] {
            let value = json!({ "text": guess, guess: [guess] });
            assert_eq!(shown(&value), value.to_string());
        }
        let text = shown(&json!({ "text": format!("{}s3cr3t-value and more", "x".repeat(9_000)) }));
        assert!(text.contains("x… ") && !text.contains("s3c"), "{text:.40}");
    }

    #[test]
    fn what_still_holds_a_secret_is_not_shown() {
        let token = format!("xox{}-{}-{}-{}", 'b', "1".repeat(12), "2".repeat(12), "Ab3".repeat(8));
        let detector = Detector::shipped().unwrap();
        let withheld = |name: &str| {
            let value = json!({ (name): 1, "text": "the rest of it" });
            let clean = Sanitised { value, findings: Vec::new(), still_leaks: true };
            arguments(&or_withheld(clean, &detector), &Mask::new(&[]))
        };
        assert_eq!(withheld("to"), format!(r#"{{"to":"{WITHHELD}","text":"{WITHHELD}"}}"#));
        assert_eq!(withheld(&token), format!(r#"{{"argument 1":"{WITHHELD}","argument 2":"{WITHHELD}"}}"#));
    }

    #[test]
    fn what_is_too_long_is_cut_and_told_and_hides_nothing_else() {
        let text =
            shown(&json!({ "text": "ü".repeat(6_000), "target": "PRODUCTION", "other": "y".repeat(5_000) }));
        assert!(text.len() <= MOST_BYTES, "{}", text.len());
        assert!(text.contains(r#""target":"PRODUCTION""#), "{text}");
        assert!(text.contains("ü… 8 KiB more,") && text.contains("y… 951 bytes more}"), "{text}");
    }

    #[test]
    fn ever_so_many_are_cut_and_told() {
        let many: Map<String, Value> = (0..3_000).map(|n| (format!("n{n}"), "z".repeat(60).into())).collect();
        let text = shown(&Value::Object(many));
        assert!(text.len() <= MOST_BYTES + LONGEST_NOTE && text.ends_with(" KiB more"), "{}", text.len());
    }

    #[test]
    fn the_reasons_hold_no_secret_of_the_tool() {
        let document =
            json!({ "name": "say", "description": "Says it.", "codeType": "Javascript", "code": "return 1" });
        let checked = toolgate_spec::check_text(&document.to_string(), toolgate_spec::Format::Json);
        let spec = checked.tools[0].spec.as_ref().unwrap();
        let (mask, detector) = (Mask::new(&["s3cr3t-value".to_owned()]), Detector::shipped().unwrap());
        let text = text(spec, "say", &Map::new(), &["it names s3cr3t-value"], &mask, &detector);
        assert!(text.ends_with("(asked because: it names ***)"), "{text}");
    }

    #[test]
    fn a_secret_does_not_stand_at_the_cut() {
        for lead in 8_150..8_200 {
            let text = shown(&json!({ "text": format!("{}s3cr3t-value", "x".repeat(lead)) }));
            assert!(!text.contains("s3c"), "{lead}");
        }
    }
}
