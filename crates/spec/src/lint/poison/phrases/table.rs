//! What is a phrase? One row each in `instruction` and `steering`. A pattern is tried only on texts that have its needles.
//!
//! Patterns ask for the imperative ("send"), not for what a tool does ("sends"), and for an order together with
//! its object, because either alone is found in honest descriptions. `crates/spec/tests/poison` measures both.

use crate::Code;

/// Every phrase, in two files by what it does.
pub(super) fn all() -> impl Iterator<Item = &'static Phrase> {
    super::instruction::PHRASES.iter().chain(super::steering::PHRASES)
}

#[derive(Debug)]
pub(super) struct Phrase {
    pub code: Code,
    pub why: &'static str,
    pub place: In,
    /// Separated by spaces; every text that the pattern matches has one of them. `+` begins another such group, of
    /// which it has one too. A needle that begins with a letter begins a word; one of two letters is a whole word.
    pub needles: &'static str,
    pub pattern: &'static str,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum In {
    /// The words alone, where punctuation cannot come between them.
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
