//! Finds whole secrets in a text. Prefixes do not count: otherwise a caller who chooses the text could guess a secret
//! character by character.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

use super::view;

pub(super) struct SecretSearch {
    finder: AhoCorasick,
    longest: usize,
    line_breaks: usize,
}

impl SecretSearch {
    /// `None` if the patterns are too large to search for.
    pub(super) fn new(patterns: &[Vec<u8>]) -> Option<Self> {
        // A DFA needs about a kilobyte per pattern byte, so use it for short patterns only.
        let bytes: usize = patterns.iter().map(Vec::len).sum();
        let kind = (bytes > MOST_BYTES_TO_BE_FAST).then_some(AhoCorasickKind::ContiguousNFA);
        // Standard matching reports overlapping secrets. Each one is redacted as a whole.
        let finder =
            AhoCorasick::builder().match_kind(MatchKind::Standard).kind(kind).build(patterns).ok()?;
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        let lines = |pattern: &Vec<u8>| pattern.split(|byte| *byte == b'\n').count();
        let line_breaks = patterns.iter().map(lines).max().unwrap_or_default().saturating_sub(1);
        Some(Self { finder, longest, line_breaks })
    }

    /// The ranges to hide, in order and without overlaps.
    pub(super) fn hidden(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = self.found(text.as_bytes());
        let plainly = found.len();
        view::for_each_view(text.as_bytes(), |bytes, source| {
            found.extend(self.found(bytes).into_iter().map(source));
        });
        if found.len() == plainly {
            return found;
        }
        found.sort_unstable_by_key(|range| (range.start, range.end));
        found.into_iter().fold(Vec::new(), |mut apart, range| {
            add(&mut apart, range);
            apart
        })
    }

    /// The position up to which a truncated text is complete. After it, a secret may start without its end.
    ///
    /// The position depends on the length of the secrets and on the length and lines of the text, never on the characters of
    /// a secret.
    pub(super) fn complete_up_to(&self, text: &str) -> usize {
        let margin = SHORTEST_MARGIN.max(self.longest.saturating_mul(LONGEST_ESCAPE));
        let by_length = text.floor_char_boundary(text.len().saturating_sub(margin));
        // A secret has at most `line_breaks` line breaks, so an incomplete one starts after the line break before those.
        let mut lines = text.rmatch_indices('\n').map(|(at, _)| at + 1);
        by_length.max(lines.nth(self.line_breaks).unwrap_or_default())
    }

    fn found(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        let hits = self.finder.find_overlapping_iter(bytes);
        hits.fold(Vec::new(), |mut found, hit| {
            add(&mut found, hit.range());
            found
        })
    }
}

/// Adds a range that starts or ends no earlier than the previous ones, and merges overlaps.
fn add(apart: &mut Vec<Range<usize>>, mut range: Range<usize>) {
    while let Some(last) = apart.pop_if(|last| last.end > range.start) {
        range = range.start.min(last.start)..range.end.max(last.end);
    }
    apart.push(range);
}

/// The minimum number of bytes dropped at a cut. Secrets of up to 64 bytes need no more.
const SHORTEST_MARGIN: usize = 512;
/// Bytes of text per pattern byte. The longest patterns are hexadecimal, with two digits per byte and never escaped. A byte
/// that is escaped twice takes eight: `%5Cu0001`.
const LONGEST_ESCAPE: usize = 4;
const MOST_BYTES_TO_BE_FAST: usize = 8 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn search(patterns: &[&str]) -> SecretSearch {
        let patterns: Vec<Vec<u8>> = patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect();
        SecretSearch::new(&patterns).unwrap()
    }

    #[test]
    fn ranges_are_joined_where_they_overlap_and_only_there() {
        let search = search(&["abcdef", "defghi", "hijk", "lmno", "fg"]);
        let hidden = search.hidden("-abcdefghijklmno-abcdef");
        assert_eq!(hidden, [1..12, 12..16, 17..23]);
    }

    #[test]
    fn beginning_of_a_secret_is_never_hidden() {
        let search = search(&["abcdefgh"]);
        assert!(search.hidden("abcdefg abcdefg… abcdefg").is_empty());
        assert_eq!(search.hidden("abcdefgh…"), vec![Range { start: 0, end: 8 }]);
    }

    #[test]
    fn text_is_complete_up_to_its_last_line_or_the_margin() {
        let one_line = search(&["abcdefgh"]);
        let long = "x".repeat(2_000);
        assert_eq!(one_line.complete_up_to(&long), 2_000 - SHORTEST_MARGIN);
        assert_eq!(one_line.complete_up_to("one\ntwo\nabcd"), "one\ntwo\n".len());
        assert_eq!(one_line.complete_up_to("abcd"), 0);
        assert_eq!(search(&["abcd\nefgh"]).complete_up_to("one\ntwo\nabcd\nef"), "one\ntwo\n".len());
        let large = search(&[&"k".repeat(300)]);
        assert_eq!(large.complete_up_to(&long), 2_000 - 4 * 300);
    }

    #[test]
    fn short_patterns_use_a_dfa() {
        assert_eq!(search(&["s3cr3t-value"]).finder.kind(), AhoCorasickKind::DFA);
    }

    /// A caller may choose the pattern and its length.
    #[test]
    fn long_pattern_uses_little_memory() {
        let long: String = (0..16 * 1_024_u32).filter_map(|n| char::from_u32(33 + n * n % 90)).collect();
        let search = search(&[&long]);
        assert!(search.finder.memory_usage() < 64 * long.len(), "{}", search.finder.memory_usage());
    }
}
