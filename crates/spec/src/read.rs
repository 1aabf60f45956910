//! Parses text to a value, and finds the position of a pointer in the text.

mod json;
mod json_locate;
mod value;
mod yaml;
mod yaml_error;
mod yaml_extent;
mod yaml_strict;

pub(crate) use json_locate::JsonMember;
use serde_json::Value;
pub(crate) use value::EXACT_LIMIT_FLOAT;
pub use value::Unambiguous;

use crate::{Code, Finding, Format, Pointer, SourceSpan, finding::FindingTarget};

/// The result of parsing.
#[derive(Clone, Debug)]
pub(crate) struct Parsed {
    pub value: Value,
    /// Whether a number may change in the canonical form.
    pub has_wide_numbers: bool,
}

pub(crate) fn read(text: &str, format: Format) -> Result<Parsed, Finding> {
    if text.trim().is_empty() {
        return Err(Finding::new(
            Code::SpecParse,
            Pointer::root(),
            "the file is empty",
            "`toolgate new NAME` writes a document to start from",
        )
        .at_span(SourceSpan::new(0, 0)));
    }
    match format {
        Format::Json => json::parse(text),
        Format::Yaml => yaml::parse(text),
    }
}

/// Fills in the spans of findings that have none, in one pass over the text.
pub(crate) fn locate(text: &str, format: Format, findings: &mut [Finding]) {
    if findings.iter().all(|finding| finding.span.is_some()) {
        return;
    }
    let wanted: Vec<_> = findings.iter().map(|finding| finding.at.tokens()).collect();
    let places = match format {
        Format::Json => json_locate::places(text, &wanted),
        Format::Yaml => yaml::places(text, &wanted),
    };
    for (finding, place) in findings.iter_mut().zip(places) {
        if finding.span.is_none() {
            finding.span = place.map(|place| match finding.target {
                FindingTarget::Key => place.key.unwrap_or(place.value),
                FindingTarget::Value => place.value,
            });
        }
    }
}

/// The spans of a value and, in an object, of its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct SourceSpans {
    key: Option<SourceSpan>,
    value: SourceSpan,
}

/// The members of a JSON object as written, for editing in place; `None` if the text is not an object.
pub(crate) fn json_members(text: &str) -> Option<Vec<JsonMember>> {
    json_locate::members(text)
}

/// The elements of a JSON array as written; `None` if the text is not an array.
pub(crate) fn json_elements(text: &str) -> Option<Vec<SourceSpan>> {
    json_locate::elements(text)
}

/// The layout of the outermost YAML mapping; `None` if there is none.
pub(crate) fn yaml_outline(text: &str) -> Option<YamlOutline> {
    yaml::outline(text)
}

pub(crate) enum YamlOutline {
    /// `{a: 1}`
    Flow,
    /// One key per line, each with the byte offset of its first character.
    Block(Vec<(String, usize)>),
}

#[cfg(test)]
mod tests;
