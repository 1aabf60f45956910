//! How is a secret kept out of what leaves? By its own bytes, by the forms that a line of code turns them into, and
//! behind escapes, whoever wrote them.

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
use search::Search;
use traces::Traces;

/// The secrets of one call. Built anew for each, so that a changed environment counts at once.
pub struct Mask {
    finder: Finder,
    /// What is hidden as it stands.
    traces: Option<Traces>,
}

enum Finder {
    NothingToFind,
    Finds(Search),
    /// The secrets are too large to be searched for: then nothing is let through.
    HidesAll,
}

impl Mask {
    /// Values of fewer than four characters are not masked: they would blank out half of every text.
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
            Search::new(&patterns).map_or(Finder::HidesAll, Finder::Finds)
        };
        Self { finder, traces: None }
    }

    /// Hides these too, as they stand and in no disguise, and of the longer ones every part of 15 bytes or more. There may
    /// be ever so many, and ever so long ones.
    #[must_use]
    pub fn and_as_they_stand<'v>(self, values: impl Iterator<Item = &'v str>) -> Self {
        Self { traces: Some(Traces::of(values)), ..self }
    }

    /// The text with `***` for each whole secret. A part of a secret stays: hiding it would confirm a caller's guess.
    pub fn text(&self, text: &str) -> String {
        self.masked(text, text.len())
    }

    /// Masks a text whose end was cut off before it could be masked. A secret may have begun there, so the end is dropped.
    /// How much that is does not depend on what the text says, or a caller could try out guesses. `…` marks the place.
    pub fn cut_text(&self, text: &str) -> String {
        let end = match &self.finder {
            Finder::Finds(search) => search.complete_up_to(text),
            Finder::NothingToFind | Finder::HidesAll => text.len(),
        };
        self.masked(text, end) + "…"
    }

    /// The text up to `end`, masked. A secret that goes on behind `end` is found all the same.
    fn masked(&self, text: &str, end: usize) -> String {
        let mut hidden = match &self.finder {
            Finder::NothingToFind => Vec::new(),
            Finder::Finds(search) => search.hidden(text),
            Finder::HidesAll => return MASKED.to_owned(),
        };
        if let Some(traces) = &self.traces {
            // Both are looked for in the text as it is, so that neither tears apart what the other looks for.
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

    /// Every text in a value, keys included. Two keys that are masked to the same text stay two.
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

/// In order, and put together where they touch.
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
