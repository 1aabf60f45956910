//! Which phrases give a model orders? The rows are in `phrases/instruction.rs` and `phrases/steering.rs`.

mod instruction;
mod steering;
mod table;

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::{Regex, RegexBuilder};

use super::reading::Reading;
use crate::{Code, lint::show::shown};
use table::{In, Phrase};

/// In the order in which findings are reported.
pub(super) const CODES: [Code; 5] = [
    Code::LintPoisonInstruction,
    Code::LintPoisonMarkup,
    Code::LintPoisonRole,
    Code::LintPoisonExfiltration,
    Code::LintPoisonCrossTool,
];

/// Does a plain text contain the words that some phrase needs?
pub(super) fn is_suspect(text: &str) -> bool {
    MATCHER.as_ref().is_none_or(|matcher| {
        let mut seen = vec![0; matcher.phrases.len()];
        matcher.look(text, &mut seen);
        matcher.phrases.iter().zip(seen).any(|(phrase, seen)| seen == phrase.groups)
    })
}

/// What was found in one reading, as "why (`where`)".
pub(super) fn find(reading: &Reading, hits: &mut Vec<(Code, String)>) {
    let Some(matcher) = MATCHER.as_ref() else { return };
    let mut seen = vec![0; matcher.phrases.len()];
    // The words are a thinned copy of the flat text, so needles are looked up in both.
    matcher.look(&reading.flat, &mut seen);
    matcher.look(&reading.words, &mut seen);
    for (phrase, _) in matcher.phrases.iter().zip(seen).filter(|(phrase, seen)| phrase.groups == *seen) {
        let row = phrase.row;
        let is_known = hits.iter().any(|(code, what)| *code == row.code && what.starts_with(row.why));
        if !is_known && let Some(found) = phrase.find(reading) {
            hits.push((row.code, format!("{} (`{}`)", row.why, shown(found.trim()))));
        }
    }
}

struct Matcher {
    needles: AhoCorasick,
    /// For each needle: does it begin a word, and in which group of which phrase is it?
    uses: Vec<(bool, Vec<(usize, u8)>)>,
    phrases: Vec<Compiled>,
}

struct Compiled {
    row: &'static Phrase,
    pattern: Regex,
    /// One bit for each group of needles.
    groups: u8,
}

impl Matcher {
    /// Notes for each phrase which groups of its needles the text has.
    fn look(&self, text: &str, seen: &mut [u8]) {
        for found in self.needles.find_overlapping_iter(text) {
            let Some((begins_word, uses)) = self.uses.get(found.pattern().as_usize()) else { continue };
            let before = found.start().checked_sub(1).and_then(|at| text.as_bytes().get(at));
            if *begins_word && before.is_some_and(u8::is_ascii_alphanumeric) {
                continue;
            }
            for (phrase, group) in uses {
                if let Some(seen) = seen.get_mut(*phrase) {
                    *seen |= group;
                }
            }
        }
    }
}

impl Compiled {
    fn find<'r>(&self, reading: &'r Reading) -> Option<&'r str> {
        let text = if self.row.place == In::Words { &reading.words } else { &reading.flat };
        self.pattern.find(text).map(|found| found.as_str())
    }
}

static MATCHER: LazyLock<Option<Matcher>> = LazyLock::new(|| {
    let mut needles: Vec<&str> = Vec::new();
    let mut uses: Vec<(bool, Vec<(usize, u8)>)> = Vec::new();
    let mut phrases = Vec::new();
    for (at, row) in table::all().enumerate() {
        let mut groups = 0;
        for (bit, group) in row.needles.split(" + ").enumerate() {
            let bit = 1_u8.checked_shl(u32::try_from(bit).ok()?)?;
            groups |= bit;
            for needle in group.split(' ') {
                let known = needles.iter().position(|one| *one == needle).unwrap_or(needles.len());
                if known == needles.len() {
                    needles.push(needle);
                    uses.push((needle.starts_with(|first: char| first.is_ascii_alphabetic()), Vec::new()));
                }
                uses.get_mut(known)?.1.push((at, bit));
            }
        }
        phrases.push(Compiled { row, pattern: compile(row)?, groups });
    }
    let needles = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(needles)
        .ok()?;
    Some(Matcher { needles, uses, phrases })
});

/// In word patterns `@4` stands for up to four words of the same sentence.
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

#[cfg(test)]
mod tests {
    use super::{super::reading, MATCHER, find};

    #[test]
    fn every_phrase_compiles() {
        assert!(MATCHER.is_some());
    }

    #[test]
    fn needles_lose_nothing() {
        let matcher = MATCHER.as_ref().unwrap();
        let corpus = concat!(
            include_str!("../../../tests/poison/poisoned.txt"),
            include_str!("../../../tests/poison/benign.txt")
        );
        for text in corpus.lines() {
            for reading in reading::readings(text, reading::Hint::of(text)) {
                let mut hits = Vec::new();
                find(&reading, &mut hits);
                for phrase in &matcher.phrases {
                    let is_found = hits.iter().any(|(_, what)| what.starts_with(phrase.row.why));
                    assert!(is_found || phrase.find(&reading).is_none(), "{}: {text}", phrase.row.pattern);
                }
            }
        }
    }
}
