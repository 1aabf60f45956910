//! How is a secret kept out of what leaves? By its own bytes, by the forms that a line of code turns them into, and
//! behind escapes, whoever wrote them.

mod forms;
mod search;
#[cfg(test)]
mod tests;
mod view;

use std::fmt;

use serde_json::Value;

use crate::keys::DistinctMembers;

use forms::forms;
use search::{End, Search};

/// The secrets of one call. Built anew for each, so that a changed environment counts at once.
pub struct Mask(Finder);

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
        if patterns.is_empty() {
            return Self(Finder::NothingToFind);
        }
        Self(Search::new(patterns).map_or(Finder::HidesAll, Finder::Finds))
    }

    /// Lets no text through.
    pub const fn everything() -> Self {
        Self(Finder::HidesAll)
    }

    /// What stands before a `…` may be the beginning of a secret, and goes too.
    pub fn text(&self, text: &str) -> String {
        self.masked(text, End::Whole)
    }

    /// A text that was cut off somewhere: a secret may have begun at its end, too.
    pub fn cut_text(&self, text: &str) -> String {
        self.masked(text, End::Cut)
    }

    fn masked(&self, text: &str, end: End) -> String {
        let search = match &self.0 {
            Finder::NothingToFind => return text.to_owned(),
            Finder::Finds(search) => search,
            Finder::HidesAll => return MASKED.to_owned(),
        };
        let mut masked = String::with_capacity(text.len());
        let mut shown_from = 0;
        for hidden in search.hidden(text, end) {
            let start = text.floor_char_boundary(hidden.start);
            masked.push_str(text.get(shown_from..start).unwrap_or_default());
            masked.push_str(MASKED);
            shown_from = text.ceil_char_boundary(hidden.end);
        }
        masked.push_str(text.get(shown_from..).unwrap_or_default());
        masked
    }

    /// Every text in a value, keys included. Two keys that are masked to the same text stay two.
    pub fn value(&self, value: Value) -> Value {
        if let Finder::NothingToFind = self.0 {
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

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Mask(***)")
    }
}

const MASKED: &str = "***";
const SHORTEST: usize = 4;
