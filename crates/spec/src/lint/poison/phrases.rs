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

/// Does a plain text contain any of the words that the phrases begin with?
pub(super) fn is_suspect(text: &str) -> bool {
    MATCHER.as_ref().is_none_or(|matcher| matcher.needles.is_match(text))
}

/// What was found in one reading, as "why (`where`)".
pub(super) fn find(reading: &Reading, hits: &mut Vec<(Code, String)>) {
    let Some(matcher) = MATCHER.as_ref() else { return };
    let mut wanted = vec![false; matcher.phrases.len()];
    // The words are a thinned copy of the flat text, so its needles are looked up in both.
    for text in [&reading.flat, &reading.words] {
        for found in matcher.needles.find_overlapping_iter(text.as_str()) {
            for at in matcher.phrases_of.get(found.pattern().as_usize()).into_iter().flatten() {
                if let Some(wanted) = wanted.get_mut(*at) {
                    *wanted = true;
                }
            }
        }
    }
    for ((phrase, pattern), _) in matcher.phrases.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
        let text = if phrase.place == In::Words { &reading.words } else { &reading.flat };
        let is_new = |hits: &[(Code, String)]| {
            !hits.iter().any(|(code, what)| *code == phrase.code && what.starts_with(phrase.why))
        };
        if is_new(hits)
            && let Some(found) = pattern.find(text)
        {
            hits.push((phrase.code, format!("{} (`{}`)", phrase.why, shown(found.as_str().trim()))));
        }
    }
}

struct Matcher {
    needles: AhoCorasick,
    phrases_of: Vec<Vec<usize>>,
    phrases: Vec<(&'static Phrase, Regex)>,
}

static MATCHER: LazyLock<Option<Matcher>> = LazyLock::new(|| {
    let mut needles: Vec<&str> = Vec::new();
    let mut phrases_of: Vec<Vec<usize>> = Vec::new();
    let mut phrases = Vec::new();
    for (at, phrase) in table::all().enumerate() {
        phrases.push((phrase, compile(phrase)?));
        for needle in phrase.needles.split(' ') {
            if let Some(known) = needles.iter().position(|one| *one == needle) {
                phrases_of.get_mut(known)?.push(at);
            } else {
                needles.push(needle);
                phrases_of.push(vec![at]);
            }
        }
    }
    let needles = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .kind(Some(AhoCorasickKind::DFA))
        .build(needles)
        .ok()?;
    Some(Matcher { needles, phrases_of, phrases })
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
    use super::MATCHER;

    #[test]
    fn every_phrase_compiles() {
        assert!(MATCHER.is_some());
    }
}
