//! Redacts all further occurrences of a value that was found once.
//!
//! `DB_PASSWORD=x` reveals what `x` is; `connecting with x` does not. Short and common values are skipped, because they
//! also occur for other reasons.
//!
//! An attacker may get text echoed next to a secret. A value from that text must never match a part of a secret
//! together with the text around it: the redaction would reveal whether that part was guessed. A value therefore
//! contains no separator, must not touch letters or digits, and `Carry::repeated` drops it if it overlaps a finding of
//! a rule.

use std::{collections::HashSet, fmt, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::{
    check::{decoded_percent, noise},
    finding::{Encoding, Tier},
    rule::MatchEnd,
    searcher::SecretCandidate,
};

/// The values that were redacted so far in the texts of one result.
#[derive(Default)]
pub struct KnownValues {
    values: Vec<KnownValue>,
    texts: HashSet<Box<[u8]>>,
    /// Their total length.
    bytes: usize,
    /// Whether values were dropped at the limit. Repeats of those would be missed.
    is_full: bool,
    /// Built for many values; a separate search is cheaper for a few.
    search: Option<AhoCorasick>,
}

struct KnownValue {
    text: Box<[u8]>,
    /// The index of the rule that found it first.
    rule: usize,
    tier: Tier,
}

impl KnownValues {
    /// The number of values. A text that was redacted before the number grew may contain one of the new values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds the found values that are long and unusual enough.
    pub(crate) fn learn<'c>(&mut self, hay: &[u8], found: impl Iterator<Item = &'c SecretCandidate>) {
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

    fn add(&mut self, text: &[u8], found: &SecretCandidate) {
        if !is_unusual(text) || self.texts.contains(text) {
            return;
        }
        if self.bytes + text.len() > MAX_BYTES {
            self.is_full = true;
            return;
        }
        self.bytes += text.len();
        self.texts.insert(text.into());
        self.values.push(KnownValue { text: text.into(), rule: found.rule, tier: found.tier });
    }

    /// Finds every separate occurrence of a value within `scope`. Returns `false` if there are too many values or
    /// matches to find all.
    #[must_use]
    pub(crate) fn find(
        &mut self,
        hay: &[u8],
        scope: &Range<usize>,
        mut each: impl FnMut(SecretCandidate),
    ) -> bool {
        let mut found = |at: usize, value: &KnownValue| {
            let span = at..at + value.text.len();
            if scope.contains(&at) && stands_alone(hay, &span) {
                each(SecretCandidate {
                    rule: value.rule,
                    tier: value.tier,
                    span,
                    encoding: Encoding::Plain,
                    end: MatchEnd::Closed,
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
        // Overlapping matches, too: the first of two must not hide the second.
        let most = MAX_MATCHES + hay.len() / BYTES_PER_MATCH;
        let mut matches = 0;
        for matched in search.find_overlapping_iter(hay) {
            matches += 1;
            if matches > most {
                return false;
            }
            if let Some(value) = self.values.get(matched.pattern().as_usize()) {
                found(matched.start(), value);
            }
        }
        true
    }
}

/// Shows the number of values, never the values.
impl fmt::Debug for KnownValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnownValues").field("values", &self.values.len()).finish_non_exhaustive()
    }
}

/// Whether a text hardly occurs except as this secret. Names such as `access-1` do.
fn is_unusual(text: &[u8]) -> bool {
    // A finding may be as long as a window; the rest would read all of it several times.
    if !(MIN_RANDOM..=MAX_LENGTH).contains(&text.len()) {
        return false;
    }
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
    let kinds = (0..=u8::MAX).filter(|kind| memchr::memchr(*kind, text).is_some()).take(MIN_KINDS).count();
    let is_random = is_mixed || noise(text) > 0 || is_one;
    is_word && is_random && text.len() >= least && kinds >= MIN_KINDS && !text.starts_with(b"[REDACTED")
}

/// A value inside a longer word is another word.
fn stands_alone(hay: &[u8], span: &Range<usize>) -> bool {
    let touches = |at: Option<usize>| at.and_then(|at| hay.get(at)).is_some_and(u8::is_ascii_alphanumeric);
    !touches(span.start.checked_sub(1)) && !touches(Some(span.end))
}

/// Characters that are not part of a word or number.
const MIN_NOISE: usize = 4;
const MIN_RANDOM: usize = 8;
const MIN_MIXED: usize = 10;
/// For letters or digits only.
const MIN_LETTERS: usize = 16;
const MIN_KINDS: usize = 4;
const MAX_LENGTH: usize = 400;
/// Characters that separate a secret from the text around it.
const SEPARATORS: &[u8] = b"\"'`,;:&?()<>[]{}|\\";
const MAX_BYTES: usize = 256 * 1024;
/// Values may overlap; at most this many matches are examined, plus one per `BYTES_PER_MATCH` bytes of text.
const MAX_MATCHES: usize = 10_000;
const BYTES_PER_MATCH: usize = 4;
const FEW: usize = 8;

#[cfg(test)]
mod tests;
