//! How is a program's JSON read, so that no text in it changes what stands beside it?
//!
//! What steers a terminal is taken out of each text by itself, when the JSON has been read: of two texts one could begin a
//! sequence and the other end it, and all that stands between them would be a part of it. Encoders escape only some of the
//! characters that begin one. Before it is read, and only where it is no JSON otherwise, colours and single controls go.

use std::borrow::Cow;

use serde_json::{Map, Value};
use toolgate_policy::DistinctMembers;

use super::plain_text::plain;
use crate::js::values;

/// One value.
pub fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = text_of(bytes);
    if text.trim().is_empty() {
        return Err("the command wrote nothing where JSON was expected".to_owned());
    }
    check_count(&text)?;
    value(&text).map_err(|unread| {
        unread
            .told(|error| format!("the output is not JSON: line {}, column {}", error.line(), error.column()))
    })
}

/// One value a line.
pub fn read_lines(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let text = text_of(bytes);
    check_count(&text)?;
    let written = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let values = written.map(|(index, line)| {
        value(line).map_err(|unread| {
            unread.told(|error| {
                format!("line {} of the output is not JSON: column {}", index + 1, error.column())
            })
        })
    });
    values.collect()
}

fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes))
}

enum Unread {
    NotJson(serde_json::Error),
    TooMuch(String),
    Rounded,
}

impl Unread {
    fn told(self, not_json: impl FnOnce(&serde_json::Error) -> String) -> String {
        match self {
            Self::NotJson(error) => not_json(&error),
            Self::TooMuch(why) => why,
            Self::Rounded => ROUNDED.to_owned(),
        }
    }
}

fn value(text: &str) -> Result<Value, Unread> {
    let mut json = without_lone_surrogates(text);
    let mut parsed = serde_json::from_str(&json);
    if parsed.is_err()
        && let Some(bare) = without_controls(&json)
    {
        check_count(&bare).map_err(Unread::TooMuch)?;
        parsed = serde_json::from_str(&bare);
        json = Cow::Owned(bare);
    }
    let parsed = parsed.map_err(Unread::NotJson)?;
    if has_long_integer(&json) { Err(Unread::Rounded) } else { Ok(clean(parsed)) }
}

/// More than of JavaScript: what a command writes is often selected from.
pub const MOST_VALUES: usize = 500_000;

/// A value takes far more memory than its text.
fn check_count(text: &str) -> Result<(), String> {
    if values::count(text) <= MOST_VALUES {
        return Ok(());
    }
    Err(format!(
        "the output has more than {MOST_VALUES} names and values; let the command select what is needed"
    ))
}

/// Half a surrogate pair is no character. Encoders write one where a text was cut within a pair.
fn without_lone_surrogates(json: &str) -> Cow<'_, str> {
    if !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut whole = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let next = escape.get(6..).and_then(code_unit);
        let (kept, length) = match (code_unit(escape), next) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (escape.get(..12), 12),
            (Some(0xd800..=0xdfff), _) => (Some("\\ufffd"), 6),
            // What follows the backslash is no beginning of another escape.
            _ => {
                let length = 1 + escape.chars().nth(1).map_or(0, char::len_utf8);
                (escape.get(..length), length)
            }
        };
        whole.push_str(kept.unwrap_or_default());
        rest = escape.get(length..).unwrap_or_default();
    }
    whole.push_str(rest);
    Cow::Owned(whole)
}

/// Of an escape such as `\ud83d` at the beginning of `text`.
fn code_unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

/// Without colours, and without the controls that JSON does not allow; `None` where there are none. No quotation mark is part of a
/// colour, so that none ends in another text than it begins in; of any other sequence only its first character is taken.
fn without_controls(text: &str) -> Option<String> {
    let is_stray = |c: char| c < ' ' && !matches!(c, '\t' | '\n' | '\r');
    if !text.contains(is_stray) {
        return None;
    }
    let mut pieces = text.split(COLOUR);
    let mut bare = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| !matches!(c, '0'..='9' | ';' | ':'));
        match end.and_then(|end| piece.get(end..)?.strip_prefix(['m', 'K'])) {
            Some(after) => bare.push_str(after),
            None => bare.extend([COLOUR, piece]),
        }
    }
    bare.retain(|c| !is_stray(c));
    Some(bare)
}

/// A double would stand in its place, and be another number.
fn has_long_integer(json: &str) -> bool {
    let mut number = String::new();
    let mut bytes = json.bytes().chain(*b" ");
    while let Some(byte) = bytes.next() {
        match byte {
            b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E' => {
                number.push(char::from(byte));
                continue;
            }
            b'"' => values::skip_text(&mut bytes),
            _ => {}
        }
        let is_whole = !number.is_empty() && !number.contains(['.', 'e', 'E']);
        if is_whole && number.parse::<u64>().is_err() && number.parse::<i64>().is_err() {
            return true;
        }
        number.clear();
    }
    false
}

/// Takes out of each text what steers a terminal.
pub fn clean(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean_text(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(clean).collect()),
        Value::Object(members) => Value::Object(clean_members(members)),
        other => other,
    }
}

/// A name that is plain keeps its own; one that only reads like it once it is cleaned gets a number.
fn clean_members(members: Map<String, Value>) -> Map<String, Value> {
    let mut kept = DistinctMembers::with_capacity(members.len());
    let (disguised, plain): (Vec<_>, Vec<_>) =
        members.into_iter().partition(|(name, _)| name.contains(char::is_control));
    for (name, value) in plain.into_iter().chain(disguised) {
        kept.insert(clean_text(name), clean(value));
    }
    kept.into_members()
}

/// An escape can be written as `\u001b`.
fn clean_text(text: String) -> String {
    if text.contains(char::is_control) { plain(text.as_bytes()) } else { text }
}

const COLOUR: &str = "\u{1b}[";
const ROUNDED: &str = "the output has an integer of more than 64 bits, which would be rounded; let the command write it as text";
