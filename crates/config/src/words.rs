//! What to write instead: expectations, examples, and "did you mean …?".

use serde_json::Value;
use toolgate_spec::edit_distance;

use crate::{
    key::{Fallback, Key, Kind},
    keys::ROOT,
    shape::{Complaint, shown},
};

/// For a value of another type than the key's.
pub(crate) fn mismatch(kind: &Kind, value: &Value) -> Complaint {
    let stands = match value {
        // A secret that somebody wrote in the place of a section, such as `key`, is not repeated.
        Value::String(text) if !matches!(kind, Kind::Section(_) | Kind::OneOf(_)) => {
            format!("`{}`", shown(text))
        }
        Value::Number(number) => format!("`{number}`"),
        other => type_of(other).to_owned(),
    };
    Complaint::new(format!("{stands} stands where {} is expected", expected(kind)), remedy(kind, value))
}

pub(crate) const fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a section",
    }
}

/// For a key without a value.
pub(crate) fn no_value(kind: &Kind) -> String {
    let list = matches!(kind, Kind::Texts(_) | Kind::Choices(_) | Kind::Sections(_));
    let none = if list { "write `[]` for none, or " } else { "write a value, or " };
    format!("{none}remove the key to take its default")
}

/// For a required key that is absent.
pub(crate) fn example(key: &Key) -> String {
    match &key.kind {
        Kind::Version => "begin the file with `version: 1`".into(),
        Kind::OneOf(keys) => {
            let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
            format!("write `{}:` with one of {} below it", key.name, names.join(", "))
        }
        _ => format!("write `{}: …`: {}", key.name, lower_first(key.doc.trim_end_matches('.'))),
    }
}

pub(crate) fn choices(kind: &Kind) -> String {
    match kind {
        Kind::Choice(known) | Kind::Choices(known) => quoted(known),
        _ => String::new(),
    }
}

/// For a key that does not exist: one nearby that is spelt nearly so, or the same one in another section.
pub(crate) fn instead_of(name: &str, keys: &[Key]) -> String {
    if let Some(near) = closest(name, keys.iter().map(|key| key.name)) {
        return format!("did you mean `{near}`?");
    }
    if let Some(section) = section_with(name) {
        return format!("`{}` belongs below `{section}`", shown(name));
    }
    let known: Vec<_> = keys.iter().map(|key| key.name).collect();
    format!("remove it; the keys here are {}", quoted(&known))
}

pub(crate) fn instead_of_choice(word: &str, known: &[&'static str]) -> String {
    match closest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of {}", quoted(known)),
    }
}

/// The kind in a few words, for errors.
fn expected(kind: &Kind) -> String {
    match kind {
        Kind::Version | Kind::Number { .. } => "a whole number".into(),
        Kind::Flag => "`true` or `false`".into(),
        Kind::Duration { .. } => "a duration".into(),
        Kind::Size { .. } => "a size".into(),
        Kind::Choice(_) => "a word".into(),
        Kind::Text(_) => "a text".into(),
        Kind::Texts(_) | Kind::Choices(_) => "a list of texts".into(),
        Kind::Section(_) | Kind::OneOf(_) => "a section".into(),
        Kind::Sections(_) => "a list of sections".into(),
    }
}

fn remedy(kind: &Kind, value: &Value) -> String {
    match kind {
        Kind::Version => "write `version: 1`, without quotes".into(),
        Kind::Flag => "write `true` or `false`, without quotes".into(),
        Kind::Number { least, most } => {
            format!("write a whole number from {least} to {most}, without quotes")
        }
        Kind::Duration { .. } => "write a number and its unit: `250ms`, `120s`, `5m`, `8h`".into(),
        Kind::Size { .. } => "write a number of bytes, or one with its unit: `64KiB`, `1MiB`".into(),
        Kind::Choice(known) => format!("write one of {}", quoted(known)),
        Kind::Text(_) if matches!(value, Value::Number(_) | Value::Bool(_)) => "put it into quotes".into(),
        Kind::Text(shape) => shape.remedy().into(),
        Kind::Texts(_) | Kind::Choices(_) => "write a list: `[one, two]`, numbers in quotes".into(),
        Kind::Section(keys) | Kind::OneOf(keys) => {
            let known: Vec<_> = keys.iter().map(|key| key.name).collect();
            format!("write its keys below it, indented: {}", quoted(&known))
        }
        Kind::Sections(_) => "write a list whose entries begin with `- `".into(),
    }
}

fn closest<'known>(word: &str, known: impl Iterator<Item = &'known str>) -> Option<&'known str> {
    if word.len() > MAX_WORD {
        return None;
    }
    known
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= 2 && *edits * 2 < candidate.len())
        .min()
        .map(|(_, candidate)| candidate)
}

fn section_with(name: &str) -> Option<&'static str> {
    let has_it = |section: &&Key| match &section.kind {
        Kind::Section(keys) if matches!(section.fallback, Fallback::Inside) => {
            keys.iter().any(|key| key.name == name)
        }
        _ => false,
    };
    ROOT.iter().find(has_it).map(|section| section.name)
}

fn quoted(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn lower_first(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_lowercase().chain(rest).collect())
}

const MAX_WORD: usize = 64;
