//! Parses JSON with serde_json; rejects duplicate keys and reports the position of errors.

use serde::de::DeserializeSeed;
use serde_json::error::Category;

use super::{
    Parsed, json_locate,
    value::{DUPLICATE_KEY, ReadNotes, UniqueKeys},
};
use crate::{
    Code, Finding, SourceSpan,
    source::{LineIndex, MAX_DEPTH},
};

pub(super) fn parse(text: &str) -> Result<Parsed, Finding> {
    let notes = ReadNotes::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = UniqueKeys(&notes)
        .deserialize(&mut deserializer)
        .and_then(|value| deserializer.end().map(|()| value))
        .map_err(|error| explain(text, &error))?;
    Ok(Parsed { value, has_wide_numbers: notes.has_wide_numbers.get() })
}

fn explain(text: &str, error: &serde_json::Error) -> Finding {
    let offset = LineIndex::new(text).byte_offset(error.line(), error.column());
    let raw = error.to_string();
    let said = raw.split(" at line ").next().unwrap_or(&raw);
    let (message, remedy) = match error.classify() {
        Category::Eof => {
            let inside = said.strip_prefix("EOF while parsing a ").unwrap_or("value");
            (
                format!("the text ends inside a {inside}"),
                "the file is cut off; close what is still open".into(),
            )
        }
        _ if said.starts_with(DUPLICATE_KEY) => (
            format!("{said} in one object"),
            "remove one of the two; readers disagree on which one counts".into(),
        ),
        _ if said.starts_with("recursion limit") => {
            (format!("nested deeper than {MAX_DEPTH} levels"), "flatten the document".into())
        }
        _ if said.starts_with("trailing characters") => (
            "more text follows the end of the document".into(),
            "one file holds one document; several tools go into a bundle: {\"toolSpecs\": [...]}".into(),
        ),
        _ => (lower(said), hint(text, offset)),
    };
    let span = if said.starts_with(DUPLICATE_KEY) {
        key_before(text, offset)
    } else {
        SourceSpan::new(offset, offset)
    };
    Finding::new(Code::SpecParse, json_locate::pointer_at(text, offset), message, remedy).at_span(span)
}

/// The parser stops at the closing quote of the key.
fn key_before(text: &str, end: usize) -> SourceSpan {
    let start = text.get(..end).and_then(|before| before.rfind('"')).unwrap_or(end);
    SourceSpan::new(start, (end + 1).min(text.len()))
}

fn hint(text: &str, offset: usize) -> String {
    let rest = text.get(offset..).unwrap_or_default();
    let wrong = ["NaN", "Infinity", "-Infinity", "undefined", "//", "/*", "'"];
    match wrong.iter().find(|start| rest.starts_with(**start)) {
        Some(start) => format!("`{start}` is JavaScript, not JSON (RFC 8259)"),
        None => "write the document as JSON (RFC 8259), or as YAML in a file that ends in .yaml".into(),
    }
}

fn lower(said: &str) -> String {
    let mut characters = said.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
