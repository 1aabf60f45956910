//! Finds phrases that give orders to a model. `phrases/table.rs` says where the phrases are.

mod instruction;
mod steering;
mod table;

use std::{
    ops::ControlFlow,
    sync::{LazyLock, OnceLock},
};

use regex::{Regex, RegexBuilder};

use super::reading::Reading;
use crate::{
    Code,
    lint::{needles::Needles, show::shown},
};
use table::{In, Phrase};

/// The codes in report order.
pub(super) const CODES: [Code; 5] = [
    Code::LintPoisonInstruction,
    Code::LintPoisonMarkup,
    Code::LintPoisonRole,
    Code::LintPoisonExfiltration,
    Code::LintPoisonCrossTool,
];

/// The phrases whose needles occur in a text; usually none.
pub(super) fn suspects(text: &str) -> Suspects {
    let mut suspects = Suspects::default();
    MATCHER.look(text, &mut suspects);
    suspects
}

/// Adds the matches in one reading, as "reason (`match`)".
pub(super) fn find(reading: &Reading, suspects: &Suspects, hits: &mut Vec<(Code, String)>) {
    for phrase in MATCHER.met(suspects) {
        let row = phrase.row;
        let is_known = hits.iter().any(|(code, what)| *code == row.code && what.starts_with(row.why));
        if !is_known && let Some(found) = phrase.find(reading) {
            hits.push((row.code, format!("{} (`{}`)", row.why, shown(found.trim()))));
        }
    }
}

/// Like `find`, for a reading that differs from the written text. Needles are searched in both the flat text and its
/// words.
pub(super) fn find_in_reading(reading: &Reading, hits: &mut Vec<(Code, String)>) {
    let mut suspects = suspects(&reading.flat);
    MATCHER.look(&reading.words, &mut suspects);
    find(reading, &suspects, hits);
}

/// For each phrase, which groups of its needles were found.
pub(super) struct Suspects([u8; MOST_PHRASES]);

impl Default for Suspects {
    fn default() -> Self {
        Self([0; MOST_PHRASES])
    }
}

impl Suspects {
    pub(super) fn is_empty(&self) -> bool {
        MATCHER.met(self).next().is_none()
    }
}

struct Matcher {
    needles: Needles,
    /// For each needle, its phrases and groups.
    uses: Vec<Vec<(usize, u8)>>,
    phrases: Vec<Compiled>,
}

struct Compiled {
    row: &'static Phrase,
    /// Compiled on first use, because most documents have no needles.
    pattern: OnceLock<Option<Regex>>,
    /// One bit per group of needles.
    groups: u8,
}

impl Matcher {
    /// Records which needle groups of each phrase the text has.
    fn look(&self, text: &str, seen: &mut Suspects) {
        let _ = self.needles.each_word(text, |needle| {
            for (phrase, group) in self.uses.get(needle).into_iter().flatten() {
                if let Some(seen) = seen.0.get_mut(*phrase) {
                    *seen |= group;
                }
            }
            ControlFlow::Continue(())
        });
    }

    fn met<'m>(&'m self, seen: &'m Suspects) -> impl Iterator<Item = &'m Compiled> {
        self.phrases
            .iter()
            .zip(&seen.0)
            .filter(|(phrase, seen)| phrase.groups == **seen)
            .map(|(phrase, _)| phrase)
    }
}

impl Compiled {
    fn find<'r>(&self, reading: &'r Reading) -> Option<&'r str> {
        let text = if self.row.place == In::Words { &reading.words } else { &reading.flat };
        self.pattern()?.find(text).map(|found| found.as_str())
    }

    fn pattern(&self) -> Option<&Regex> {
        self.pattern.get_or_init(|| compile(self.row)).as_ref()
    }
}

static MATCHER: LazyLock<Matcher> = LazyLock::new(|| {
    let mut needles: Vec<&'static str> = Vec::new();
    let mut uses: Vec<Vec<(usize, u8)>> = Vec::new();
    let mut phrases = Vec::new();
    for (at, row) in table::all().enumerate() {
        let mut groups = 0;
        for (bit, group) in row.needles.split(" + ").enumerate() {
            let bit = 1 << bit.min(7);
            groups |= bit;
            for needle in group.split(' ') {
                let known = needles.iter().position(|one| *one == needle).unwrap_or(needles.len());
                if known == needles.len() {
                    needles.push(needle);
                    uses.push(Vec::new());
                }
                uses.get_mut(known).into_iter().for_each(|uses| uses.push((at, bit)));
            }
        }
        phrases.push(Compiled { row, pattern: OnceLock::new(), groups });
    }
    Matcher { needles: Needles::new(needles), uses, phrases }
});

/// In word patterns, `@4` matches up to four words of the same sentence.
fn compile(phrase: &Phrase) -> Option<Regex> {
    let pattern = if phrase.place == In::Words {
        let mut expanded = String::from("(?:^| )(?:");
        let mut characters = phrase.pattern.chars();
        while let Some(character) = characters.next() {
            if character == '@' {
                let count = characters.next()?;
                expanded.push_str("(?: [^ .]{1,40}){0,");
                expanded.push(count);
                expanded.push('}');
            } else {
                expanded.push(character);
            }
        }
        expanded.push_str(")(?:[ .]|$)");
        expanded
    } else {
        phrase.pattern.to_owned()
    };
    RegexBuilder::new(&pattern).size_limit(SIZE_LIMIT).build().ok()
}

const SIZE_LIMIT: usize = 4 << 20;
const MOST_PHRASES: usize = 160;

#[cfg(test)]
mod tests {
    use super::{
        super::reading, MATCHER, MOST_PHRASES, find, find_in_reading, suspects, table::LANGUAGE_DATA,
    };
    use crate::{Format, value_from_text};

    #[test]
    fn every_phrase_compiles() {
        let matcher = &*MATCHER;
        assert!(matcher.phrases.iter().all(|phrase| phrase.pattern().is_some()));
        assert!(matcher.phrases.len() <= MOST_PHRASES);
    }

    /// Each row matches its hits, and no row matches a miss.
    #[test]
    fn phrases_of_other_languages_match_their_examples() {
        let rows = value_from_text(LANGUAGE_DATA, Format::Yaml).unwrap();
        let rows = rows.as_array().unwrap();
        let (mut hits, mut misses) = (0, 0);
        for row in rows {
            let text = |key: &str| row[key].as_str().unwrap_or_else(|| panic!("{key}: {row}"));
            let read = MATCHER.phrases.iter().find(|phrase| phrase.row.pattern == text("pattern"));
            let phrase = read.unwrap_or_else(|| panic!("not read: {row}"));
            let examples = |key: &str| row[key].as_array().filter(|list| !list.is_empty()).unwrap();
            for hit in examples("hits") {
                let hit = hit.as_str().unwrap();
                let found = reading::readings(hit, reading::Hint::of(hit)).iter().any(|reading| {
                    let mut seen = suspects(&reading.flat);
                    MATCHER.look(&reading.words, &mut seen);
                    MATCHER.met(&seen).any(|met| std::ptr::eq(met, phrase)) && phrase.find(reading).is_some()
                });
                assert!(found, "{hit} is not found by {}", phrase.row.pattern);
                hits += 1;
            }
            for miss in examples("misses") {
                let miss = miss.as_str().unwrap();
                for reading in reading::readings(miss, reading::Hint::of(miss)) {
                    let mut found = Vec::new();
                    find_in_reading(&reading, &mut found);
                    assert!(found.is_empty(), "{miss}: {found:?}");
                }
                misses += 1;
            }
        }
        assert!(hits >= 60 && misses >= 30, "{hits} hits and {misses} misses in {} rows", rows.len());
    }

    #[test]
    fn needles_find_every_pattern_match() {
        let matcher = &*MATCHER;
        let corpus = concat!(
            include_str!("../../../tests/poison/poisoned.txt"),
            include_str!("../../../tests/poison/benign.txt")
        );
        for text in corpus.lines() {
            let hint = reading::Hint::of(text);
            let suspects = suspects(text);
            for reading in reading::readings(text, hint) {
                let mut hits = Vec::new();
                if hint.is_plain() {
                    find(&reading, &suspects, &mut hits);
                } else {
                    find_in_reading(&reading, &mut hits);
                }
                for phrase in &matcher.phrases {
                    let is_found = hits.iter().any(|(_, what)| what.starts_with(phrase.row.why));
                    assert!(is_found || phrase.find(&reading).is_none(), "{}: {text}", phrase.row.pattern);
                }
            }
        }
    }
}
