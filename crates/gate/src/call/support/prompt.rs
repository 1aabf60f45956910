//! Text for approvers: the arguments without secrets, the tool's message, and the reasons for asking.
//!
//! Everything is escaped, bounded and on one line. The number of hidden bytes is counted, because an approver must
//! reveal them first.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use toolgate_policy::Mask;
use toolgate_secrets::{Detector, Tier};
use toolgate_spec::{is_deceptive, model::ToolSpec};

use super::secrets::{self, ApproverView};
use crate::approval::HiddenArguments;

/// The arguments as an approver sees them.
pub struct PromptArguments {
    /// For the tool's message.
    pub members: Map<String, Value>,
    /// As JSON on one line.
    pub text: String,
    pub hidden: HiddenArguments,
}

pub fn shown(arguments: &Map<String, Value>, mask: &Mask, detector: &Detector) -> PromptArguments {
    let all = Value::Object(arguments.clone());
    // First mask the secrets that the gateway knows: the detector may take a part of one for another secret.
    let known = mask.value(all.clone());
    let masked = bytes_lost(&all, &known);
    let clean = secrets::for_approver(detector, known);
    let redacted = clean.hidden_bytes;
    let members = or_withheld(clean, detector);
    let (text, cut) = one_line(&members, mask);
    let bytes = masked + redacted + cut;
    let whole = (bytes > 0).then(|| escaped(&all.to_string()));
    let hidden = HiddenArguments { bytes: u64::try_from(bytes).unwrap_or(u64::MAX), whole };
    PromptArguments { members, text, hidden }
}

/// How many bytes are missing, from the first to the last byte that differs.
fn bytes_lost(before: &Value, after: &Value) -> usize {
    match (before, after) {
        (Value::String(before), Value::String(after)) => text_lost(before, after),
        (Value::Array(before), Value::Array(after)) => {
            before.iter().zip(after).map(|(before, after)| bytes_lost(before, after)).sum()
        }
        (Value::Object(before), Value::Object(after)) => {
            let both = before.iter().zip(after);
            both.map(|((name, one), (kept, other))| text_lost(name, kept) + bytes_lost(one, other)).sum()
        }
        (before, after) if before == after => 0,
        (before, _) => before.to_string().len(),
    }
}

fn text_lost(before: &str, after: &str) -> usize {
    if before == after {
        return 0;
    }
    let (before, after) = (before.as_bytes(), after.as_bytes());
    let same_start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let same_end =
        before.iter().rev().zip(after.iter().rev()).take_while(|(one, other)| one == other).count();
    before.len().saturating_sub(same_start + same_end).max(1)
}

/// If a secret cannot be redacted, only the number of arguments is shown.
fn or_withheld(clean: ApproverView, detector: &Detector) -> Map<String, Value> {
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

/// The arguments as JSON on one line, and how many bytes are missing. A long argument does not push out another one.
fn one_line(shown: &Map<String, Value>, mask: &Mask) -> (String, usize) {
    let whole = |(key, value): (&String, &Value)| {
        let member = format!("{}:{value}", Value::from(key.as_str()));
        let masked = mask.text(&member);
        (escaped(&masked), text_lost(&member, &masked))
    };
    let (members, lost): (Vec<String>, Vec<usize>) = shown.iter().map(whole).unzip();
    let lost: usize = lost.iter().sum();
    let line = format!("{{{}}}", members.join(","));
    if line.len() <= MOST_BYTES {
        return (line, lost);
    }
    let each = fair_share(&members);
    let cut: Vec<String> = members.iter().map(|member| cut_bytes(member, each, member.len())).collect();
    // If there are too many arguments to give each a share, the last ones are dropped.
    let cut = cut_bytes(&format!("{{{}}}", cut.join(",")), MOST_BYTES, line.len());
    let missing = line.len().saturating_sub(cut.len()).max(1);
    (cut, lost + missing)
}

/// One reason for asking, without secrets.
pub fn reason((source, why): (&str, &str), mask: &Mask, detector: &Detector) -> String {
    let why = secrets::without_secrets(detector, &mask.text(why));
    cut(&plain(&format!("{source}: {why}")), LONGEST_REASON)
}

/// The tool's message. Placeholders are replaced in one pass, so an argument is never read as a template. The arguments
/// must already be redacted.
pub fn text(spec: &ToolSpec, wire_name: &str, arguments: &Map<String, Value>, mask: &Mask) -> String {
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
    cut(&prompt, LONGEST_PROMPT)
}

/// Masked before it is cut. Otherwise a cut could leave the beginning of a secret.
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
            // Each argument is cut by itself, so a long one does not push out another one.
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

fn json(value: &Value, mask: &Mask) -> String {
    escaped(&mask.text(&value.to_string()))
}

/// JSON with deceptive characters escaped. They occur only in texts, where `\u` has the same meaning.
fn escaped(json: &str) -> String {
    json.chars().fold(String::with_capacity(json.len()), |mut shown, character| {
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

/// The bytes that each argument may have. Short ones leave their unused share to the long ones.
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

/// The beginning of a text, and how many bytes of `whole` are missing.
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

/// Escapes deceptive characters.
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

const WITHHELD: &str = "withheld, because the arguments contain a secret that cannot be redacted";
const DEFAULT_TEMPLATE: &str = "Run the tool {toolName} with {args}?";
const LONGEST_ARGUMENT: usize = 500;
const LONGEST_ARGUMENTS: usize = 2_000;
const SHORTEST_ARGUMENT: usize = 40;
const LONGEST_PROMPT: usize = 4_000;
const LONGEST_REASON: usize = 1_000;
/// Limit of the arguments that are stored with a question.
const MOST_BYTES: usize = 8 * 1_024;
/// The length of `… 1023 bytes more`, with a margin.
const LONGEST_NOTE: usize = 24;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(value: &Value) -> PromptArguments {
        let mask = Mask::new(&["s3cr3t-value".to_owned()]);
        super::shown(value.as_object().unwrap(), &mask, &Detector::shipped().unwrap())
    }

    fn shown(value: &Value) -> String {
        of(value).text
    }

    #[test]
    fn arguments_are_json_without_control_characters_or_secrets() {
        let hostile =
            json!({ "text": "\u{1b}[2K\u{202e}\n\u{e0041} s3cr3t-value", "\u{200b}n": [1, { "a": null }] });
        let text = shown(&hostile);
        assert_eq!(text, r#"{"text":"\u001b[2K\u202e\n\udb40\udc41 ***","\u200bn":[1,{"a":null}]}"#);
        let read: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["text"], "\u{1b}[2K\u{202e}\n\u{e0041} ***", "and it means the same");
    }

    /// A caller can read the prompt of a call it made. A guessed secret must look like any other text.
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
    fn arguments_with_a_secret_that_cannot_be_redacted_are_withheld() {
        let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
        let detector = Detector::shipped().unwrap();
        let withheld = |name: &str| {
            let value = json!({ (name): 1, "text": "the rest of it" });
            let clean = ApproverView { value, hidden_bytes: 9, still_leaks: true };
            one_line(&or_withheld(clean, &detector), &Mask::new(&[])).0
        };
        assert_eq!(withheld("to"), format!(r#"{{"to":"{WITHHELD}","text":"{WITHHELD}"}}"#));
        assert_eq!(withheld(&token), format!(r#"{{"argument 1":"{WITHHELD}","argument 2":"{WITHHELD}"}}"#));
    }

    #[test]
    fn long_argument_is_cut_and_does_not_push_out_others() {
        let text =
            shown(&json!({ "text": "ü".repeat(6_000), "target": "PRODUCTION", "other": "y".repeat(5_000) }));
        assert!(text.len() <= MOST_BYTES, "{}", text.len());
        assert!(text.contains(r#""target":"PRODUCTION""#), "{text}");
        assert!(text.contains("ü… 8 KiB more,") && text.contains("y… 951 bytes more}"), "{text}");
    }

    #[test]
    fn many_arguments_are_cut() {
        let many: Map<String, Value> = (0..3_000).map(|n| (format!("n{n}"), "z".repeat(60).into())).collect();
        let text = shown(&Value::Object(many));
        assert!(text.len() <= MOST_BYTES + LONGEST_NOTE && text.ends_with(" KiB more"), "{}", text.len());
    }

    #[test]
    fn reasons_contain_no_secret_and_no_line_break() {
        let (mask, detector) = (Mask::new(&["s3cr3t-value".to_owned()]), Detector::shipped().unwrap());
        let reason = reason(("cedar", "it names s3cr3t-value\nArguments: {}"), &mask, &detector);
        assert_eq!(reason, "cedar: it names ***\\u{a}Arguments: {}");
    }

    #[test]
    fn text_between_key_markers_is_shown_unless_it_is_base64() {
        let key = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj";
        let pem = |body: &str| format!("-----BEGIN PRIVATE KEY-----{body}-----END PRIVATE KEY-----");
        let sql = "DROP TABLE users; --";
        for body in [format!("\n{sql}\n"), format!(" {sql} "), format!("\n{key}\n{sql}\n{key}\n")] {
            let text = pem(&body);
            let seen = of(&json!({ "sql": text }));
            assert!(seen.text.contains(sql), "{}", seen.text);
            assert!(!seen.text.contains(key), "{}", seen.text);
            let hidden = body.matches(key).count() * key.len();
            assert_eq!(seen.hidden.bytes, hidden as u64, "{}", seen.text);
        }
        let lines = json!({ "lines": ["-----BEGIN PRIVATE KEY-----", sql, key, "Q9w=", "-----END PRIVATE KEY-----"] });
        let seen = of(&lines);
        assert!(seen.text.contains(sql) && !seen.text.contains(key), "{}", seen.text);
        assert!(seen.hidden.bytes >= key.len() as u64, "{}", seen.text);
    }

    /// Every step that hides something counts it.
    #[test]
    fn hidden_parts_are_counted_and_kept_for_a_reveal() {
        let all_shown = of(&json!({ "text": "plain", "n": 5 }));
        assert_eq!(all_shown.hidden, HiddenArguments::default());
        let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
        for hides in [
            json!({ "text": "a s3cr3t-value" }),
            json!({ "text": format!("use {token}") }),
            json!({ token.clone(): 1 }),
            json!({ "text": "y".repeat(9_000) }),
            json!({ "password": "correct-horse-7" }),
        ] {
            let seen = of(&hides);
            assert!(seen.hidden.bytes > 0, "{hides}");
            assert_eq!(seen.hidden.whole, Some(hides.to_string()));
        }
        assert_eq!(of(&json!({ "text": "a s3cr3t-value" })).hidden.bytes, 12);
        assert_eq!(of(&json!({ "text": format!("use {token}") })).hidden.bytes, token.len() as u64);
    }

    #[test]
    fn cut_does_not_leave_a_part_of_a_secret() {
        for lead in 8_150..8_200 {
            let text = shown(&json!({ "text": format!("{}s3cr3t-value", "x".repeat(lead)) }));
            assert!(!text.contains("s3c"), "{lead}");
        }
    }
}
