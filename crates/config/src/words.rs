//! Texts of errors: expected types, examples and "did you mean …?".

use serde_json::Value;
use toolgate_spec::edit_distance;

use crate::{
    key::{ConfigKey, ConfigValueKind, KeyDefault},
    keys::ROOT,
    shape::{Complaint, shown},
};

/// The error for a value of the wrong type.
pub(crate) fn mismatch(kind: &ConfigValueKind, value: &Value) -> Complaint {
    let got = match value {
        // Do not repeat a text written instead of a section such as `key`: it may be a secret.
        Value::String(text) if !matches!(kind, ConfigValueKind::Section(_) | ConfigValueKind::OneOf(_)) => {
            format!("`{}`", shown(text))
        }
        Value::Number(number) => format!("`{number}`"),
        other => type_of(other).to_owned(),
    };
    Complaint::new(format!("expected {}, got {got}", expected(kind)), remedy(kind, value))
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

/// The remedy for a key without a value.
pub(crate) fn no_value(kind: &ConfigValueKind) -> String {
    let list = matches!(
        kind,
        ConfigValueKind::Texts(_) | ConfigValueKind::Choices(_) | ConfigValueKind::Sections(_)
    );
    let none = if list { "write `[]` for none, or " } else { "write a value, or " };
    format!("{none}remove the key to use its default")
}

/// The remedy for a missing required key.
pub(crate) fn example(key: &ConfigKey) -> String {
    match &key.kind {
        ConfigValueKind::Version => "start the file with `version: 1`".into(),
        ConfigValueKind::OneOf(keys) => {
            let names: Vec<_> = keys.iter().map(|key| format!("`{}`", key.name)).collect();
            format!("write `{}:` with one of {} below it", key.name, names.join(", "))
        }
        _ => format!("write `{}: …`: {}", key.name, lower_first(key.doc.trim_end_matches('.'))),
    }
}

pub(crate) fn choices(kind: &ConfigValueKind) -> String {
    match kind {
        ConfigValueKind::Choice(known) | ConfigValueKind::Choices(known) => quoted(known),
        _ => String::new(),
    }
}

/// The remedy for an unknown key: a similar name in this section, or the same name in another section.
pub(crate) fn instead_of(name: &str, keys: &[ConfigKey]) -> String {
    if let Some(near) = closest(name, keys.iter().map(|key| key.name)) {
        return format!("did you mean `{near}`?");
    }
    if let Some(section) = section_with(name) {
        return format!("`{}` belongs below `{section}`", shown(name));
    }
    let known: Vec<_> = keys.iter().map(|key| key.name).collect();
    format!("remove it; this section has: {}", quoted(&known))
}

pub(crate) fn instead_of_choice(word: &str, known: &[&'static str]) -> String {
    match closest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("write one of {}", quoted(known)),
    }
}

/// The expected type, for errors.
fn expected(kind: &ConfigValueKind) -> String {
    match kind {
        ConfigValueKind::Version | ConfigValueKind::Number { .. } => "a whole number".into(),
        ConfigValueKind::Flag => "`true` or `false`".into(),
        ConfigValueKind::Duration { .. } => "a duration".into(),
        ConfigValueKind::Size { .. } => "a size".into(),
        ConfigValueKind::Choice(_) => "a word".into(),
        ConfigValueKind::Text(_) => "a text".into(),
        ConfigValueKind::Texts(_) | ConfigValueKind::Choices(_) => "a list of texts".into(),
        ConfigValueKind::Section(_) | ConfigValueKind::OneOf(_) => "a section".into(),
        ConfigValueKind::Sections(_) => "a list of sections".into(),
    }
}

fn remedy(kind: &ConfigValueKind, value: &Value) -> String {
    match kind {
        ConfigValueKind::Version => "write `version: 1`, without quotes".into(),
        ConfigValueKind::Flag => "write `true` or `false`, without quotes".into(),
        ConfigValueKind::Number { least, most } => {
            format!("write a whole number from {least} to {most}, without quotes")
        }
        ConfigValueKind::Duration { .. } => "write a number and its unit: `250ms`, `120s`, `5m`, `8h`".into(),
        ConfigValueKind::Size { .. } => {
            "write a number of bytes, or one with its unit: `64KiB`, `1MiB`".into()
        }
        ConfigValueKind::Choice(known) => format!("write one of {}", quoted(known)),
        ConfigValueKind::Text(_) if matches!(value, Value::Number(_) | Value::Bool(_)) => {
            "put it in quotes".into()
        }
        ConfigValueKind::Text(shape) => shape.remedy().into(),
        ConfigValueKind::Texts(_) | ConfigValueKind::Choices(_) => {
            "write a list: `[one, two]`; put numbers in quotes".into()
        }
        ConfigValueKind::Section(keys) | ConfigValueKind::OneOf(keys) => {
            let known: Vec<_> = keys.iter().map(|key| key.name).collect();
            format!("write its keys below it, indented: {}", quoted(&known))
        }
        ConfigValueKind::Sections(_) => "write a list whose entries begin with `- `".into(),
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
    let has_it = |section: &&ConfigKey| match &section.kind {
        ConfigValueKind::Section(keys) if matches!(section.fallback, KeyDefault::Inside) => {
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
