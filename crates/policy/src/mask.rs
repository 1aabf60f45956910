//! Redacts secrets in text: as they are, in common encodings, and behind escapes.

mod forms;
mod search;
#[cfg(test)]
mod tests;
mod traces;
mod view;

use std::{fmt, ops::Range};

use serde_json::Value;

use crate::keys::DistinctMembers;

use forms::forms;
use search::SecretSearch;
use traces::Traces;

/// The secrets of one call. Built for each call, so a changed environment takes effect at once.
pub struct Mask {
    finder: Finder,
    /// Values that are redacted verbatim.
    traces: Option<Traces>,
}

enum Finder {
    NothingToFind,
    Finds(SecretSearch),
    /// The secrets are too large to search for. Then all text is redacted.
    HidesAll,
}

impl Mask {
    /// Ignores values of fewer than four characters: they would redact half of every text.
    pub fn new(secrets: &[String]) -> Self {
        let mut patterns: Vec<Vec<u8>> = secrets
            .iter()
            .filter(|secret| secret.chars().count() >= SHORTEST)
            .flat_map(|secret| forms(secret))
            .collect();
        patterns.sort_unstable();
        patterns.dedup();
        let finder = if patterns.is_empty() {
            Finder::NothingToFind
        } else {
            SecretSearch::new(&patterns).map_or(Finder::HidesAll, Finder::Finds)
        };
        Self { finder, traces: None }
    }

    /// Also redacts these values verbatim, and every part of 15 bytes or more of longer ones. Any number and length is
    /// allowed.
    #[must_use]
    pub fn and_as_they_stand<'v>(self, values: impl Iterator<Item = &'v str>) -> Self {
        Self { traces: Some(Traces::of(values)), ..self }
    }

    /// Replaces each whole secret by `***`. A part of a secret stays: redacting it would confirm a caller's guess.
    pub fn text(&self, text: &str) -> String {
        self.masked(text, text.len())
    }

    /// Redacts a truncated text. Drops its end, because a secret may start there. The dropped length does not depend on the
    /// content; otherwise a caller could test guesses. `…` marks the cut.
    pub fn cut_text(&self, text: &str) -> String {
        let end = match &self.finder {
            Finder::Finds(search) => search.complete_up_to(text),
            Finder::NothingToFind | Finder::HidesAll => text.len(),
        };
        self.masked(text, end) + "…"
    }

    /// Redacts the text up to `end`. Finds a secret that continues after `end` too.
    fn masked(&self, text: &str, end: usize) -> String {
        let mut hidden = match &self.finder {
            Finder::NothingToFind => Vec::new(),
            Finder::Finds(search) => search.hidden(text),
            Finder::HidesAll => return MASKED.to_owned(),
        };
        if let Some(traces) = &self.traces {
            // Both search the original text, so neither destroys a match of the other.
            traces.find(text.as_bytes(), |range| hidden.push(range));
            hidden = joined(hidden);
        }
        let mut masked = String::with_capacity(text.len());
        let mut shown_from = 0;
        for hidden in hidden.into_iter().take_while(|hidden| hidden.start < end) {
            let start = text.floor_char_boundary(hidden.start);
            masked.push_str(text.get(shown_from..start).unwrap_or_default());
            masked.push_str(MASKED);
            shown_from = text.ceil_char_boundary(hidden.end);
        }
        masked.push_str(text.get(shown_from..end).unwrap_or_default());
        masked
    }

    /// Redacts every text in a value, including keys. Keys that become equal stay separate.
    pub fn value(&self, value: Value) -> Value {
        if matches!((&self.finder, &self.traces), (Finder::NothingToFind, None)) {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => Value::Array(items.into_iter().map(|item| self.value(item)).collect()),
            Value::Object(members) => {
                let mut masked = DistinctMembers::with_capacity(members.len());
                for (key, value) in members {
                    masked.insert(self.text(&key), self.value(value));
                }
                Value::Object(masked.into_members())
            }
            Value::Number(number) if self.text(&number.to_string()) != number.to_string() => MASKED.into(),
            other => other,
        }
    }
}

/// Sorts the ranges and merges adjacent ones.
fn joined(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mask(***)")
    }
}

const MASKED: &str = "***";
const SHORTEST: usize = 4;
