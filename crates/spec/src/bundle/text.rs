//! Converts values to JSON or YAML text. Each YAML entry is parsed again and compared; an entry that differs is
//! written as JSON, which is valid YAML.

use std::{fmt::Write as _, io};

use serde::Serialize;
use serde_json::{Map, Value, ser::Formatter};

use crate::{Format, read};

/// Indents by two spaces and ends with a line feed.
pub fn to_json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// Uses block style for every entry that parses back to the same value.
pub fn to_yaml_text(value: &Value) -> String {
    let entries = match value {
        Value::Object(members) if !members.is_empty() => members
            .iter()
            .map(|(key, member)| {
                let entry = Value::Object(Map::from_iter([(key.clone(), member.clone())]));
                block_yaml(&entry).unwrap_or_else(|| {
                    format!("{}: {}\n", flow_yaml(&Value::from(key.as_str())), flow_yaml(member))
                })
            })
            .collect(),
        _ => String::new(),
    };
    if is_yaml_for(&entries, value) { entries } else { format!("{}\n", flow_yaml(value)) }
}

/// One line that is both JSON and YAML.
pub(crate) fn flow_yaml(value: &Value) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, OneLine));
    let text = match (written, String::from_utf8(bytes)) {
        (Ok(()), Ok(text)) => text,
        _ => value.to_string(),
    };
    // JSON allows these characters in strings; YAML rejects them or reads them as line breaks.
    let needs_escape = |c: &char| {
        matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
    };
    if !text.chars().any(|c| needs_escape(&c)) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len() + 16), |mut escaped, c| {
        if needs_escape(&c) {
            // Writing to a `String` cannot fail.
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
        escaped
    })
}

fn block_yaml(value: &Value) -> Option<String> {
    let options = serde_saphyr::ser_options! { compact_list_indent: false };
    let text = serde_saphyr::to_string_with_options(value, options).ok()?;
    is_yaml_for(&text, value).then_some(text)
}

fn is_yaml_for(text: &str, value: &Value) -> bool {
    read::read(text, Format::Yaml).is_ok_and(|tree| tree.value == *value)
}

/// JSON with a space after colons and commas.
struct OneLine;

impl Formatter for OneLine {
    fn begin_array_value<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}
