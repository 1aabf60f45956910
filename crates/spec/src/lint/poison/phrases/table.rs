//! The table of phrases: English ones in `instruction` and `steering`, other languages in
//! `profiles/poison/languages.yaml`. A pattern runs only on texts that contain its needles.
//!
//! Patterns match the imperative ("send"), not a description ("sends"), and an order together with its object. Either
//! alone occurs in honest descriptions. `crates/spec/tests/poison` measures both.

use std::sync::LazyLock;

use serde_json::Value;

use crate::{Code, Format, value_from_text};

pub(super) fn all() -> impl Iterator<Item = &'static Phrase> {
    super::instruction::PHRASES.iter().chain(super::steering::PHRASES).chain(LANGUAGES.iter())
}

static LANGUAGES: LazyLock<Vec<Phrase>> = LazyLock::new(|| {
    let rows = value_from_text(LANGUAGE_DATA, Format::Yaml).unwrap_or_default();
    rows.as_array().into_iter().flatten().filter_map(row).collect()
});

/// The strings are leaked, because the other rows are static. A test checks that every row is read.
fn row(row: &Value) -> Option<Phrase> {
    let text = |key: &str| -> Option<&'static str> { Some(row.get(key)?.as_str()?.to_owned().leak()) };
    let code = Code::from_name(row.get("code")?.as_str()?)?;
    Some(flat(code, text("why")?, text("needles")?, text("pattern")?))
}

pub(super) const LANGUAGE_DATA: &str = include_str!("../../../../../../profiles/poison/languages.yaml");

#[derive(Debug)]
pub(super) struct Phrase {
    pub code: Code,
    pub why: &'static str,
    pub place: In,
    /// Needles, separated by spaces; every match contains one of them. `+` starts another group, of which a match
    /// also contains one. A needle that begins with a letter begins a word; one of two letters is a whole word.
    pub needles: &'static str,
    pub pattern: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum In {
    /// The words alone, without punctuation between them.
    Words,
    /// The text with its punctuation.
    Flat,
}

pub(super) const fn words(
    code: Code,
    why: &'static str,
    needles: &'static str,
    pattern: &'static str,
) -> Phrase {
    Phrase { code, why, place: In::Words, needles, pattern }
}

pub(super) const fn flat(
    code: Code,
    why: &'static str,
    needles: &'static str,
    pattern: &'static str,
) -> Phrase {
    Phrase { code, why, place: In::Flat, needles, pattern }
}
