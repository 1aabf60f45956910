//! From text to a value, and from a pointer back to its place in the text.

mod json;
mod json_locate;
mod value;
mod yaml;

use serde_json::Value;

use crate::{Code, Finding, Format, Pointer, Span, finding::Target};

/// A parsed document that can still say where each of its parts was written.
#[derive(Clone, Debug)]
pub(crate) struct Tree<'text> {
    pub value: Value,
    text: &'text str,
    format: Format,
    /// Set when a number in here may not survive the canonical form.
    pub has_wide_numbers: bool,
}

pub(crate) fn read(text: &str, format: Format) -> Result<Tree<'_>, Finding> {
    if text.trim().is_empty() {
        return Err(Finding::new(
            Code::SpecParse,
            Pointer::root(),
            "the file is empty",
            "`toolgate new NAME` writes a document to start from",
        )
        .at_span(Span::new(0, 0)));
    }
    let parsed = match format {
        Format::Json => json::parse(text),
        Format::Yaml => yaml::parse(text),
    }?;
    Ok(Tree { value: parsed.value, text, format, has_wide_numbers: parsed.has_wide_numbers })
}

impl Tree<'_> {
    /// Fills in the places of findings that have none. One pass over the text, however many there are.
    pub fn locate(&self, findings: &mut [Finding]) {
        if findings.iter().all(|finding| finding.span.is_some()) {
            return;
        }
        let wanted: Vec<_> = findings.iter().map(|finding| finding.at.tokens()).collect();
        let places = match self.format {
            Format::Json => json_locate::places(self.text, &wanted),
            Format::Yaml => yaml::places(self.text, &wanted),
        };
        for (finding, place) in findings.iter_mut().zip(places) {
            if finding.span.is_none() {
                finding.span = place.map(|place| match finding.target {
                    Target::Key => place.key.unwrap_or(place.value),
                    Target::Value => place.value,
                });
            }
        }
    }
}

/// Where a value and, in an object, its key were written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Place {
    key: Option<Span>,
    value: Span,
}

struct Parsed {
    value: Value,
    has_wide_numbers: bool,
}

/// The ranges of a JSON object's members: key, key span, value span. Used to edit a document in place.
pub(crate) fn json_members(text: &str) -> Option<Vec<json_locate::Member>> {
    json_locate::members(text)
}

#[cfg(test)]
mod tests;
