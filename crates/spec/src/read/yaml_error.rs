//! What the YAML library found wrong, in our own words and with a way out.

use serde_saphyr::{Error, ExternalMessageSource, budget::BudgetBreach, granit_parser::ErrorKind};

use super::value::DUPLICATE_KEY;
use crate::{
    Code, Finding, Pointer, Span,
    source::{LineIndex, MAX_YAML_DEPTH},
};

pub(super) fn explain(text: &str, error: &Error) -> Finding {
    let error = error.without_snippet();
    let lines = LineIndex::new(text);
    let offset = error.location().map_or(0, |location| {
        let line = usize::try_from(location.line()).unwrap_or(1);
        lines.char_offset(line, usize::try_from(location.column()).unwrap_or(1))
    });
    let (message, remedy) = in_our_words(error);
    Finding::new(Code::SpecParse, Pointer::root(), message, remedy).at_span(Span::new(offset, offset))
}

/// Message and remedy. What the library says about syntax is kept; what it says about its options and types would
/// send an author looking for something that a document does not have.
fn in_our_words(error: &Error) -> (String, &'static str) {
    match error {
        Error::AliasError { error, .. } => in_our_words(error.without_snippet()),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("{DUPLICATE_KEY} `{}` in one mapping", key.escape_debug()), ONE_OF_TWO)
        }
        Error::DuplicateMappingKey { key: None, .. } => {
            (format!("{DUPLICATE_KEY} in one mapping"), ONE_OF_TWO)
        }
        // Two keys that differ in YAML and are one text, as `1` and `"1"`; our own reader finds them.
        Error::Message { msg, .. } if msg.starts_with(DUPLICATE_KEY) => {
            (format!("{msg} in one mapping"), ONE_OF_TWO)
        }
        Error::UnsupportedTag { tag, .. } => {
            (format!("tag `{}` is not supported", tag.escape_debug()), NO_TAGS)
        }
        Error::InvalidBinaryBase64 { .. }
        | Error::BinaryNotUtf8 { .. }
        | Error::TaggedScalarCannotDeserializeIntoString { .. } => {
            ("a tag that does not fit its value".into(), NO_TAGS)
        }
        Error::MultipleDocuments { .. } => (MANY_DOCUMENTS.into(), ONE_DOCUMENT),
        Error::Budget { breach, .. } => beyond(breach),
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. }
        | Error::AliasReplayCounterOverflow { .. } => (MANY_ALIASES.into(), NO_ALIASES),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            ("an alias stands inside of what it stands for".into(), NO_ALIASES)
        }
        Error::UnknownAnchor { .. } => (
            "an alias without its anchor".into(),
            "define `&name` before `*name`; quote a text that begins with `*`",
        ),
        Error::MergeKeyNotAllowed { .. } | Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            ("merge key `<<` is not supported".into(), "write the merged keys out")
        }
        Error::NonFiniteFloat { value, .. } => (
            format!("`{}` is not a JSON number", value.escape_debug()),
            "there is no NaN, no infinity and nothing beyond a double; quote it where a text is meant",
        ),
        // Only keys are read as text without asking what they are.
        Error::NullIntoString { .. } | Error::Unexpected { expected: "string scalar", .. } => {
            ("a key is not a text".into(), "keys are texts, as in JSON; quote the key")
        }
        // The scanner has a limit of its own, above ours.
        Error::ExternalMessage { source, .. } if is_too_deep(source) => too_deep(),
        other => (first_line(&other.to_string()), PLAIN_YAML),
    }
}

fn beyond(breach: &BudgetBreach) -> (String, &'static str) {
    match breach {
        BudgetBreach::Documents { .. } => (MANY_DOCUMENTS.into(), ONE_DOCUMENT),
        BudgetBreach::Depth { .. } => too_deep(),
        BudgetBreach::Aliases { .. }
        | BudgetBreach::Anchors { .. }
        | BudgetBreach::AliasAnchorRatio { .. }
        | BudgetBreach::RecordedAnchorEvents { .. }
        | BudgetBreach::RecordedAnchorBytes { .. } => (MANY_ALIASES.into(), NO_ALIASES),
        _ => ("the document is too large".into(), "split it; a tool document is a page, not a data file"),
    }
}

fn too_deep() -> (String, &'static str) {
    (format!("nested deeper than {MAX_YAML_DEPTH} levels"), "flatten the document")
}

fn is_too_deep(source: &ExternalMessageSource) -> bool {
    matches!(source, ExternalMessageSource::Parser(error) if *error.kind() == ErrorKind::RecursionLimitExceeded)
}

/// Without the place, which the finding carries itself.
fn first_line(said: &str) -> String {
    said.lines().next().unwrap_or_default().split(" at line ").next().unwrap_or_default().to_owned()
}

const ONE_OF_TWO: &str = "remove one of the two; readers disagree on which one counts";
pub(super) const NO_TAGS: &str = "remove the tag; the types are those of JSON, and quotes make a text";
const MANY_DOCUMENTS: &str = "more than one document in one file";
const ONE_DOCUMENT: &str = "one file holds one document; several tools go into a bundle: {toolSpecs: [...]}";
const MANY_ALIASES: &str = "more anchors and aliases than are followed";
const NO_ALIASES: &str = "write the values out";
const PLAIN_YAML: &str =
    "write one YAML 1.2 document within the JSON data model: string keys, no tags, no merge keys";
