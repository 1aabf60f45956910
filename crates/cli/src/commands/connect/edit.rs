//! Adds, updates and removes our entry in a client's file: JSON with comments, or TOML.
//!
//! INVARIANT: the result is parsed again. If it differs from the old file in more than our entry, nothing is written.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstObject, CstRootNode},
};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, InlineTable, Item, TableLike};

use super::NAME;

/// The format of a client's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientFormat {
    Jsonc,
    Toml,
}

/// The file with this entry below `key`. It replaces all members of an old entry.
pub fn with_entry(
    format: ClientFormat,
    text: &str,
    key: &str,
    entry: &Map<String, Value>,
) -> Result<String, String> {
    let before = values(format, text)?;
    let mut wanted = before.clone();
    let servers = wanted.entry(key).or_insert_with(|| Value::Object(Map::new()));
    let Value::Object(servers) = servers else { return Err(format!("`{key}` is not an object")) };
    servers.insert(NAME.to_owned(), Value::Object(entry.clone()));
    if wanted == before {
        return Ok(text.to_owned());
    }
    let after = match format {
        ClientFormat::Jsonc => set_in_jsonc(text, key, entry)?,
        ClientFormat::Toml => set_in_toml(text, key, entry)?,
    };
    if values(format, &after).is_ok_and(|found| found == wanted) {
        Ok(after)
    } else {
        Err(NOT_IN_PLACE.to_owned())
    }
}

/// The file without our entry; `None` if it has none.
pub fn without_entry(format: ClientFormat, text: &str, key: &str) -> Result<Option<String>, String> {
    let mut wanted = values(format, text)?;
    let servers = wanted.get_mut(key).and_then(Value::as_object_mut);
    if servers.and_then(|servers| servers.remove(NAME)).is_none() {
        return Ok(None);
    }
    let candidates = match format {
        ClientFormat::Jsonc => vec![remove_from_jsonc(text, key)],
        ClientFormat::Toml => vec![cut_from_toml(text, key), remove_from_toml(text, key)],
    };
    let is_wanted = |after: &String| {
        values(format, after)
            .is_ok_and(|found| without_empty(found, key) == without_empty(wanted.clone(), key))
    };
    candidates.into_iter().flatten().find(is_wanted).map(Some).ok_or_else(|| NOT_IN_PLACE.to_owned())
}

/// The table that Codex reads, as text.
pub fn toml_table(key: &str, entry: &Map<String, Value>) -> String {
    let lines = entry.iter().map(|(name, value)| format!("{name} = {}\n", toml_value(value)));
    format!("[{key}.{NAME}]\n{}", lines.collect::<String>())
}

/// Drops an empty table. An implicit TOML table disappears with its last member.
fn without_empty(mut whole: Map<String, Value>, key: &str) -> Map<String, Value> {
    if whole.get(key).and_then(Value::as_object).is_some_and(Map::is_empty) {
        whole.remove(key);
    }
    whole
}

fn values(format: ClientFormat, text: &str) -> Result<Map<String, Value>, String> {
    let value = match format {
        ClientFormat::Jsonc if text.trim().is_empty() => Value::Object(Map::new()),
        ClientFormat::Jsonc => jsonc_parser::parse_to_serde_value(text, &OPTIONS)
            .map_err(|error| format!("this is not valid JSON: {error}"))?,
        ClientFormat::Toml => toml_edit::de::from_str(text)
            .map_err(|error| format!("this is not valid TOML: {}", error.message()))?,
    };
    match value {
        Value::Object(whole) => Ok(whole),
        _ => Err("the top level is not an object".to_owned()),
    }
}

fn set_in_jsonc(text: &str, key: &str, entry: &Map<String, Value>) -> Result<String, String> {
    let root = CstRootNode::parse(if text.trim().is_empty() { "{}\n" } else { text }, &OPTIONS)
        .map_err(|error| error.to_string())?;
    let whole = root.object_value().ok_or(NOT_IN_PLACE)?;
    let servers = whole.object_value_or_create(key).ok_or(NOT_IN_PLACE)?;
    match servers.get(NAME).map(|old| old.object_value_or_set()) {
        Some(old) => update(&old, entry),
        None => drop(servers.append(NAME, input(&Value::Object(entry.clone())))),
    }
    Ok(root.to_string())
}

/// Removes all other members: an `env` or `cwd` that came with a repository would apply to our program.
fn update(old: &CstObject, entry: &Map<String, Value>) {
    for member in old.properties() {
        let name = member.name().and_then(|name| name.decoded_value().ok());
        if name.is_none_or(|name| !entry.contains_key(&name)) {
            member.remove();
        }
    }
    for (name, value) in entry {
        match old.get(name) {
            Some(member) if member.value().and_then(|node| node.to_serde_value()).as_ref() == Some(value) => {
            }
            Some(member) => member.set_value(input(value)),
            None => drop(old.append(name, input(value))),
        }
    }
}

fn remove_from_jsonc(text: &str, key: &str) -> Option<String> {
    let root = CstRootNode::parse(text, &OPTIONS).ok()?;
    root.object_value()?.object_value(key)?.get(NAME)?.remove();
    Some(root.to_string())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(one) => CstInputValue::Bool(*one),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

/// Appends a new table, so the rest of the file stays the same.
fn set_in_toml(text: &str, key: &str, entry: &Map<String, Value>) -> Result<String, String> {
    let mut document = parsed(text)?;
    let old = document.get_mut(key).and_then(|servers| servers.as_table_like_mut()?.get_mut(NAME));
    let Some(old) = old else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let gap = if text.is_empty() { gap.to_owned() } else { format!("{gap}\n") };
        let added = format!("{gap}{}", toml_table(key, entry));
        return Ok(format!("{text}{}", with_newlines_of(text, added)));
    };
    let old: &mut dyn TableLike = old.as_table_like_mut().ok_or("our entry is not a table")?;
    let foreign: Vec<String> =
        old.iter().map(|(name, _)| name.to_owned()).filter(|name| !entry.contains_key(name)).collect();
    for name in foreign {
        old.remove(&name);
    }
    for (name, value) in entry {
        old.insert(name, Item::Value(toml_value(value)));
    }
    Ok(rendered(&document, text))
}

/// Removes the lines of our table. A comment before its header stays.
fn cut_from_toml(text: &str, key: &str) -> Option<String> {
    let document = toml_edit::Document::parse(text).ok()?;
    let (mut start, mut end) = (usize::MAX, 0);
    extent(document.get(key)?.get(NAME)?, &mut start, &mut end);
    let start = text.get(..start)?.rfind('\n').map_or(0, |newline| newline + 1);
    let end = text.get(end..)?.find('\n').map_or(text.len(), |newline| end + newline + 1);
    Some(format!("{}{}", text.get(..start)?, text.get(end..)?))
}

/// From the header of a table to its last value.
fn extent(item: &Item, start: &mut usize, end: &mut usize) {
    if let Some(span) = item.span() {
        *start = (*start).min(span.start);
        *end = (*end).max(span.end);
    }
    for (_, below) in item.as_table_like().into_iter().flat_map(TableLike::iter) {
        extent(below, start, end);
    }
}

fn remove_from_toml(text: &str, key: &str) -> Option<String> {
    let mut document = parsed(text).ok()?;
    document.get_mut(key)?.as_table_like_mut()?.remove(NAME)?;
    Some(rendered(&document, text))
}

fn parsed(text: &str) -> Result<DocumentMut, String> {
    let document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    if rendered(&document, text) == text { Ok(document) } else { Err(NOT_IN_PLACE.to_owned()) }
}

/// Removes the final newline that the library adds to a file without one.
fn rendered(document: &DocumentMut, original: &str) -> String {
    let text = document.to_string();
    let text = if original.ends_with('\n') { &text } else { text.strip_suffix('\n').unwrap_or(&text) };
    with_newlines_of(original, text.to_owned())
}

/// Restores CRLF, because the library writes LF only.
fn with_newlines_of(original: &str, text: String) -> String {
    if original.contains("\r\n") { text.replace("\r\n", "\n").replace('\n', "\r\n") } else { text }
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Array(items) => items.iter().map(toml_value).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.as_str(), toml_value(value)));
            toml_edit::Value::InlineTable(members.collect::<InlineTable>())
        }
        Value::Bool(one) => (*one).into(),
        other => other.as_str().unwrap_or_default().into(),
    }
}

/// Allows comments and trailing commas, as editors do; otherwise strict JSON.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

const NOT_IN_PLACE: &str = "our entry cannot be changed without changing other parts of this file";

#[cfg(test)]
mod tests;
