//! Translates errors of the YAML library to messages with a remedy.

use serde_saphyr::{Error, ExternalMessageSource, budget::BudgetBreach, granit_parser::ErrorKind};

use super::value::DUPLICATE_KEY;
use crate::{
    Code, Finding, Pointer, SourceSpan,
    source::{LineIndex, MAX_YAML_DEPTH},
};

pub(super) fn explain(text: &str, error: &Error) -> Finding {
    let error = error.without_snippet();
    let lines = LineIndex::new(text);
    let offset = error.location().map_or(0, |location| {
        let line = usize::try_from(location.line()).unwrap_or(1);
        lines.char_offset(line, usize::try_from(location.column()).unwrap_or(1))
    });
    let (message, remedy) = message_and_remedy(error);
    Finding::new(Code::SpecParse, Pointer::root(), message, remedy).at_span(SourceSpan::new(offset, offset))
}

/// Returns message and remedy. Syntax messages of the library are kept. Messages about its options and Rust types are
/// replaced, because a document has neither.
fn message_and_remedy(error: &Error) -> (String, &'static str) {
    match error {
        Error::AliasError { error, .. } => message_and_remedy(error.without_snippet()),
        Error::DuplicateMappingKey { key: Some(key), .. } => {
            (format!("{DUPLICATE_KEY} `{}` in one mapping", key.escape_debug()), ONE_OF_TWO)
        }
        Error::DuplicateMappingKey { key: None, .. } => {
            (format!("{DUPLICATE_KEY} in one mapping"), ONE_OF_TWO)
        }
        // Keys that differ in YAML but are equal as strings, such as `1` and `"1"`; our own visitor finds them.
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
            ("an alias is inside its own anchor".into(), NO_ALIASES)
        }
        Error::UnknownAnchor { .. } => (
            "an alias without its anchor".into(),
            "define `&name` before `*name`; quote a string that begins with `*`",
        ),
        Error::MergeKeyNotAllowed { .. } | Error::MergeValueNotMapOrSeqOfMaps { .. } => {
            ("merge key `<<` is not supported".into(), "write the merged keys out")
        }
        Error::NonFiniteFloat { value, .. } => (
            format!("`{}` is not a JSON number", value.escape_debug()),
            "NaN, infinity and numbers beyond a double are not supported; quote it if a string is meant",
        ),
        // Only keys are read as strings without checking their type.
        Error::NullIntoString { .. } | Error::Unexpected { expected: "string scalar", .. } => {
            ("a key is not a string".into(), "keys must be strings, as in JSON; quote the key")
        }
        // The scanner has its own, higher limit.
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

/// Without the position, which the finding has.
fn first_line(said: &str) -> String {
    said.lines().next().unwrap_or_default().split(" at line ").next().unwrap_or_default().to_owned()
}

const ONE_OF_TWO: &str = "remove one of the two; readers disagree on which one counts";
pub(super) const NO_TAGS: &str = "remove the tag; types are those of JSON, and quotes make a string";
const MANY_DOCUMENTS: &str = "more than one document in one file";
const ONE_DOCUMENT: &str = "one file holds one document; several tools go into a bundle: {toolSpecs: [...]}";
const MANY_ALIASES: &str = "too many anchors and aliases";
const NO_ALIASES: &str = "write the values out";
const PLAIN_YAML: &str =
    "write one YAML 1.2 document within the JSON data model: string keys, no tags, no merge keys";
