//! Edits YAML: replaces the lines of an entry in a block mapping with one key per line. YAML has many notations, so
//! each change is tried in several ways; the first result that parses as wanted is used.

use std::ops::Range;

use serde_json::{Map, Value};

use super::{DAMAGED, EditError, FieldChange, is_exactly, json, object};
use crate::{
    Format,
    bundle::{flow_yaml, to_yaml_text},
    read::{self, YamlOutline},
};

pub(super) fn edit(text: &str, changes: &[FieldChange<'_>]) -> Result<String, EditError> {
    let mut edited = text.to_owned();
    let mut value = object(text, Format::Yaml)?;
    for change in changes {
        let wanted = super::with_changes(&value, std::slice::from_ref(change));
        if wanted != value {
            edited = edit_one(&edited, &value, &wanted, change)?;
        }
        value = wanted;
    }
    Ok(edited)
}

fn edit_one(
    text: &str,
    before: &Map<String, Value>,
    wanted: &Map<String, Value>,
    change: &FieldChange<'_>,
) -> Result<String, EditError> {
    let candidates = match read::yaml_outline(text) {
        Some(YamlOutline::Flow) if before.is_empty() => filled(text, change).into_iter().collect(),
        Some(YamlOutline::Flow) => vec![edit_flow(text, wanted, change)?],
        _ => candidates(text, before, change)?,
    };
    let is_wanted = |candidate: &String| is_exactly(candidate, Format::Yaml, wanted);
    candidates.into_iter().find(is_wanted).ok_or(DAMAGED)
}

/// Turns `{}` into its first entry and keeps the text around it.
fn filled(text: &str, (key, value): &FieldChange<'_>) -> Option<String> {
    let (open, close) = (text.rfind('{')?, text.rfind('}')?);
    let (before, after) = (text.get(..open)?, text.get(close + 1..)?);
    Some(format!("{before}{}: {}{after}", plain_key(key), flow_yaml(value.as_ref()?)))
}

/// Edits `{…}`. Most such documents are JSON. Others are rewritten, unless that would lose something.
fn edit_flow(text: &str, wanted: &Map<String, Value>, change: &FieldChange<'_>) -> Result<String, EditError> {
    if let Ok(before) = object(text, Format::Json) {
        return json::edit(text, &before, std::slice::from_ref(change));
    }
    let has_wide_numbers = read::read(text, Format::Yaml).is_ok_and(|tree| tree.has_wide_numbers);
    if has_wide_numbers || text.contains(['#', '&', '%']) {
        return Err(EditError::NotInPlace(
            "it is a flow mapping with comments, anchors or long numbers; write one key per line",
        ));
    }
    Ok(to_yaml_text(&Value::Object(wanted.clone())))
}

fn candidates(
    text: &str,
    before: &Map<String, Value>,
    (key, value): &FieldChange<'_>,
) -> Result<Vec<String>, EditError> {
    let entries = entries(text).ok_or(EditError::NotInPlace("it is not a mapping with one key per line"))?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let existing = entries.iter().find(|entry| entry.name == *key);
    let indent = entries.first().map_or("", |entry| entry.indent.as_str());
    let line = value.as_ref().map(|value| format!("{indent}{}: {}", plain_key(key), flow_yaml(value)));
    Ok(match (existing, line) {
        (Some(entry), Some(line)) => {
            let comment = before.get(*key).and_then(|value| comment_of(text, entry, value));
            let full = format!("{line}{}{newline}", comment.unwrap_or_default());
            both_ends(text, entry, &full)
        }
        (Some(entry), None) if entries.len() == 1 => both_ends(text, entry, &format!("{{}}{newline}")),
        (Some(entry), None) => both_ends(text, entry, ""),
        (None, Some(line)) => {
            let ends = [entries.last().map_or(text.len(), |last| last.content.end), text.len()];
            ends.map(|end| appended(text, end, &line, newline)).into()
        }
        (None, None) => Vec::new(),
    })
}

/// Keeps blank lines and comments after an entry. In a block scalar that keeps its line ends, they are part of the
/// value.
fn both_ends(text: &str, entry: &YamlEntry, with: &str) -> Vec<String> {
    let spliced = |range: &Range<usize>| {
        let mut candidate = text.to_owned();
        candidate.replace_range(range.clone(), with);
        candidate
    };
    vec![spliced(&entry.content), spliced(&entry.whole)]
}

fn appended(text: &str, at: usize, line: &str, newline: &str) -> String {
    let (before, after) = text.split_at_checked(at).unwrap_or((text, ""));
    let gap = if before.is_empty() || before.ends_with('\n') { "" } else { newline };
    format!("{before}{gap}{line}{newline}{after}")
}

struct YamlEntry {
    name: String,
    indent: String,
    /// The lines of key and value.
    content: Range<usize>,
    /// Up to the next key.
    whole: Range<usize>,
}

/// Returns `None` unless every key is first on its line and all keys have the same column.
fn entries(text: &str) -> Option<Vec<YamlEntry>> {
    let Some(YamlOutline::Block(keys)) = read::yaml_outline(text) else { return None };
    let mut starts = Vec::new();
    for (name, offset) in keys {
        let start = text.get(..offset)?.rfind('\n').map_or(0, |newline| newline + 1);
        let indent = text.get(start..offset)?;
        if !indent.chars().all(|character| character == ' ') {
            return None;
        }
        starts.push((name, start, indent.to_owned()));
    }
    let ends = starts.iter().skip(1).map(|(_, start, _)| *start).chain([text.len()]).collect::<Vec<_>>();
    let mut entries = Vec::new();
    for ((name, start, indent), end) in starts.into_iter().zip(ends) {
        let content = content_length(text.get(start..end)?);
        entries.push(YamlEntry { name, indent, content: start..start + content, whole: start..end });
    }
    let first = entries.first()?.indent.clone();
    entries.iter().all(|entry| entry.indent == first).then_some(entries)
}

/// The length without trailing blank lines, comments in the first column and document end markers.
fn content_length(entry: &str) -> usize {
    let mut length = entry.len();
    for line in entry.split_inclusive('\n').rev() {
        let is_outside = line.trim().is_empty() || line.starts_with('#') || line.trim_end() == "...";
        if !is_outside {
            break;
        }
        length -= line.len();
    }
    length
}

/// The comment after a one-line value: the part that can be cut off without changing the value.
fn comment_of<'text>(text: &'text str, entry: &YamlEntry, value: &Value) -> Option<&'text str> {
    let line = text.get(entry.content.clone())?.trim_end();
    if line.contains('\n') {
        return None;
    }
    line.match_indices(" #").find_map(|(at, _)| {
        let (before, _) = line.split_at_checked(at)?;
        let alone = object(before, Format::Yaml).ok()?;
        let start = before.trim_end().len();
        (alone.get(&entry.name) == Some(value)).then(|| line.get(start..))?
    })
}

fn plain_key(key: &str) -> String {
    let is_plain = key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        // Longer than every word that some YAML reader takes for a boolean: `no`, `off`, `false`.
        && (key.len() > 5 || KNOWN_SHORT.contains(&key));
    if is_plain { key.to_owned() } else { flow_yaml(&Value::from(key)) }
}

const KNOWN_SHORT: [&str; 5] = ["name", "tags", "code", "draft", "input"];
