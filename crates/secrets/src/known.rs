//! Redacts a value wherever it is repeated, once it was found.
//!
//! `DB_PASSWORD=x` tells what `x` is; `connecting with x` does not. Short and common values are left alone, because they occur
//! for other reasons.

use std::{collections::HashSet, fmt, ops::Range};

use crate::{
    check::{decoded_percent, noise},
    finding::{Encoding, Tier},
    literals::{Literals, Meaning, Needle},
    look::Candidate,
    rule::End,
};

/// The values that were redacted so far in the texts of one result.
#[derive(Default)]
pub struct KnownValues {
    values: Vec<Value>,
    texts: HashSet<Box<[u8]>>,
    /// Built when there are many; a search for each of a few is cheaper.
    search: Option<Literals>,
}

struct Value {
    text: Box<[u8]>,
    /// The index of the rule that found it first.
    rule: usize,
    tier: Tier,
}

impl KnownValues {
    /// How many there are. A text that was redacted before the number grew may hold one of the new ones.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds the values of what was found, as far as they are long and unusual enough.
    pub(crate) fn learn<'c>(&mut self, hay: &[u8], found: impl Iterator<Item = &'c Candidate>) {
        let before = self.values.len();
        for one in found {
            let text = hay.get(one.span.clone()).unwrap_or_default();
            self.add(text, one);
            if text.contains(&b'%') {
                self.add(&decoded_percent(text), one);
            }
        }
        if self.values.len() > before {
            self.search = None;
        }
    }

    fn add(&mut self, text: &[u8], found: &Candidate) {
        if self.values.len() < MOST_VALUES && is_unusual(text) && self.texts.insert(text.into()) {
            self.values.push(Value { text: text.into(), rule: found.rule, tier: found.tier });
        }
    }

    /// Every place within `scope` where one of the values stands.
    pub(crate) fn find(&mut self, hay: &[u8], scope: &Range<usize>, mut each: impl FnMut(Candidate)) {
        if self.values.len() > FEW && self.search.is_none() {
            let needles = self.values.iter().enumerate().map(|(index, value)| Needle {
                text: value.text.clone(),
                folds_case: false,
                meaning: Meaning::Rule(index),
            });
            self.search = Some(Literals::new(needles.collect()));
        }
        let mut found = |at: usize, value: &Value| {
            let span = at..at + value.text.len();
            if scope.contains(&at) && stands_alone(hay, &span) {
                each(Candidate {
                    rule: value.rule,
                    tier: value.tier,
                    span,
                    encoding: Encoding::Plain,
                    end: End::Closed,
                });
            }
        };
        if let Some(search) = &self.search {
            search.each(hay, |at, needle| {
                if let Meaning::Rule(index) = needle.meaning
                    && let Some(value) = self.values.get(index)
                {
                    found(at, value);
                }
            });
            return;
        }
        for value in &self.values {
            memchr::memmem::find_iter(hay, &*value.text).for_each(|at| found(at, value));
        }
    }
}

/// Shows how many there are, never what they are.
impl fmt::Debug for KnownValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownValues").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

/// Whether a text would hardly occur but as this secret. Names such as `access-1` would.
fn is_unusual(text: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| text.iter().any(kind);
    let is_line = text.iter().all(|byte| *byte >= b' ' && *byte != 0x7f);
    let has_case = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_one = text.iter().all(u8::is_ascii_alphanumeric);
    let has_sign = has(|byte| byte.is_ascii_punctuation() && !b"-_./:".contains(byte));
    let is_mixed = has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic);
    let least = match is_mixed {
        true if noise(text) >= MIN_NOISE => MIN_RANDOM,
        true if has_case || has_sign || is_one => MIN_MIXED,
        _ => MIN_LETTERS,
    };
    let kinds = text.iter().collect::<HashSet<_>>().len();
    let is_random = is_mixed || noise(text) > 0 || is_one;
    is_line
        && is_random
        && (least..=MAX_LENGTH).contains(&text.len())
        && kinds >= MIN_KINDS
        && !text.starts_with(b"[REDACTED")
}

/// A short value inside a longer word is another word.
fn stands_alone(hay: &[u8], span: &Range<usize>) -> bool {
    let touches = |at: Option<usize>| at.and_then(|at| hay.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    span.len() >= LONG || !touches(span.start.checked_sub(1)) && !touches(Some(span.end))
}

/// Characters that belong to no word and no number.
const MIN_NOISE: usize = 4;
const MIN_RANDOM: usize = 6;
const MIN_MIXED: usize = 8;
/// Of letters or of digits alone.
const MIN_LETTERS: usize = 16;
const MIN_KINDS: usize = 4;
const LONG: usize = 16;
const MAX_LENGTH: usize = 400;
const MOST_VALUES: usize = 1000;
const FEW: usize = 8;

#[cfg(test)]
mod tests;
