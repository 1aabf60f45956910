//! Redacts a value wherever it is repeated, once it was found.
//!
//! `DB_PASSWORD=x` tells what `x` is; `connecting with x` does not. Short and common values are left alone, because they occur
//! for other reasons.
//!
//! Callers can have a text of theirs echoed beside a secret. A value of theirs must therefore never match a part of a secret together
//! with the text around it: it would show by what disappears whether that part was guessed. So a value has no character that usually
//! separates words, it must not touch letters or digits, and `Carry::repeated` drops it where it overlaps a finding of a rule.

use std::{collections::HashSet, fmt, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::{
    check::{decoded_percent, noise},
    finding::{Encoding, Tier},
    look::Candidate,
    rule::End,
};

/// The values that were redacted so far in the texts of one result.
#[derive(Default)]
pub struct KnownValues {
    values: Vec<Value>,
    texts: HashSet<Box<[u8]>>,
    /// Their lengths together.
    bytes: usize,
    /// Were there more than are kept? Then repeats of the others would be missed.
    is_full: bool,
    /// Built when there are many; a search for each of a few is cheaper.
    search: Option<AhoCorasick>,
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
        if !is_unusual(text) || self.texts.contains(text) {
            return;
        }
        if self.bytes + text.len() > MOST_BYTES {
            self.is_full = true;
            return;
        }
        self.bytes += text.len();
        self.texts.insert(text.into());
        self.values.push(Value { text: text.into(), rule: found.rule, tier: found.tier });
    }

    /// Every place within `scope` where one of the values stands alone. `false` if there are too many values or places to find all.
    #[must_use]
    pub(crate) fn find(&mut self, hay: &[u8], scope: &Range<usize>, mut each: impl FnMut(Candidate)) -> bool {
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
        if self.is_full {
            return false;
        }
        if self.values.len() <= FEW {
            for value in &self.values {
                memchr::memmem::find_iter(hay, &*value.text).for_each(|at| found(at, value));
            }
            return true;
        }
        if self.search.is_none() {
            let texts = self.values.iter().map(|value| &*value.text);
            self.search = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(texts).ok();
        }
        let Some(search) = &self.search else { return false };
        // Overlapping ones, too: the first of two must not keep the second from being found.
        let most = MOST_PLACES + hay.len() / PLACES_SHARE;
        let mut places = 0;
        for place in search.find_overlapping_iter(hay) {
            places += 1;
            if places > most {
                return false;
            }
            if let Some(value) = self.values.get(place.pattern().as_usize()) {
                found(place.start(), value);
            }
        }
        true
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
    let is_word = text.iter().all(|byte| *byte > b' ' && *byte != 0x7f && !SEPARATORS.contains(byte));
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
    is_word
        && is_random
        && (least..=MAX_LENGTH).contains(&text.len())
        && kinds >= MIN_KINDS
        && !text.starts_with(b"[REDACTED")
}

/// A value inside a longer word is another word.
fn stands_alone(hay: &[u8], span: &Range<usize>) -> bool {
    let touches = |at: Option<usize>| at.and_then(|at| hay.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    !touches(span.start.checked_sub(1)) && !touches(Some(span.end))
}

/// Characters that belong to no word and no number.
const MIN_NOISE: usize = 4;
const MIN_RANDOM: usize = 8;
const MIN_MIXED: usize = 10;
/// Of letters or of digits alone.
const MIN_LETTERS: usize = 16;
const MIN_KINDS: usize = 4;
const MAX_LENGTH: usize = 400;
/// Characters that separate a secret from the text around it.
const SEPARATORS: &[u8] = b"\"'`,;:&?()<>[]{}|\\";
const MOST_BYTES: usize = 256 * 1024;
/// Values may overlap; so many places are looked at, and one more for every so many bytes of text.
const MOST_PLACES: usize = 10_000;
const PLACES_SHARE: usize = 4;
const FEW: usize = 8;

#[cfg(test)]
mod tests;
