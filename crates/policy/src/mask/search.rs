//! Where does a text show a secret, or the beginning of one at a cut?

use std::{iter, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, PatternID};

use super::{SHORTEST, view};

pub(super) struct Search {
    finder: AhoCorasick,
    patterns: Vec<Vec<u8>>,
}

/// What the end of a text is.
#[derive(Clone, Copy)]
pub(super) enum End {
    Whole,
    /// A secret may have begun there.
    Cut,
}

impl Search {
    /// None where there is too much to look for.
    pub(super) fn new(patterns: Vec<Vec<u8>>) -> Option<Self> {
        // The fastest way takes a kilobyte for each byte of a pattern: it is for what is short.
        let bytes: usize = patterns.iter().map(Vec::len).sum();
        let kind = (bytes > MOST_BYTES_TO_BE_FAST).then_some(AhoCorasickKind::ContiguousNFA);
        let sought = iter::once(CUT_MARK.as_bytes()).chain(patterns.iter().map(Vec::as_slice));
        // Secrets may overlap each other in a text, and each of them has to go as a whole.
        let finder = AhoCorasick::builder().match_kind(MatchKind::Standard).kind(kind).build(sought).ok()?;
        Some(Self { finder, patterns })
    }

    /// The ranges that are not to be shown, in order and apart from each other.
    pub(super) fn hidden(&self, text: &str, end: End) -> Vec<Range<usize>> {
        let mut found = self.found(text.as_bytes(), end);
        let plainly = found.len();
        view::for_each_view(text.as_bytes(), |bytes, source| {
            found.extend(self.found(bytes, end).into_iter().map(source));
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

    fn found(&self, bytes: &[u8], end: End) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut piece_start = 0;
        for hit in self.finder.find_overlapping_iter(bytes) {
            if hit.pattern() == PATTERN_OF_CUT_MARK {
                let piece = bytes.get(piece_start..hit.start()).unwrap_or_default();
                if let Some(begun) = self.begun(piece) {
                    add(&mut found, hit.start() - begun..hit.end());
                }
                piece_start = hit.end();
            } else {
                add(&mut found, hit.range());
            }
        }
        if let End::Cut = end {
            let piece = bytes.get(piece_start..).unwrap_or_default();
            if let Some(begun) = self.begun(piece) {
                add(&mut found, bytes.len() - begun..bytes.len());
            }
        }
        found
    }

    /// How many bytes at the end of a piece may be the beginning of a secret, if enough of it is there to tell.
    fn begun(&self, piece: &[u8]) -> Option<usize> {
        ends_before_cut(piece)
            .filter_map(|kept| {
                let length =
                    self.patterns.iter().filter_map(|pattern| beginning_at_end(pattern, kept)).max()?;
                Some(length + piece.len() - kept.len())
            })
            .max()
    }
}

/// The longest beginning of the pattern, but not all of it, with which a text ends.
fn beginning_at_end(pattern: &[u8], text: &[u8]) -> Option<usize> {
    let last = text.last()?;
    let most = text.len().min(pattern.len().saturating_sub(1));
    (SHORTEST..=most).rev().find(|length| {
        let beginning = pattern.get(..*length).unwrap_or_default();
        beginning.last() == Some(last) && text.ends_with(beginning)
    })
}

/// The cut may have gone through an escape or a character: then a secret ends before the rest of that.
fn ends_before_cut(piece: &[u8]) -> impl Iterator<Item = &[u8]> {
    let near = piece.len().saturating_sub(LONGEST_BROKEN_ESCAPE);
    let begins_escape = |byte: u8| matches!(byte, b'%' | b'\\' | FIRST_OF_REPLACEMENT_CHARACTER);
    let ends = (near..piece.len()).filter(move |at| piece.get(*at).is_some_and(|byte| begins_escape(*byte)));
    ends.chain(iter::once(piece.len())).filter_map(move |end| piece.get(..end))
}

/// Adds a range that begins or ends no earlier than all that were added, and joins it with those that it overlaps.
fn add(apart: &mut Vec<Range<usize>>, mut range: Range<usize>) {
    while let Some(last) = apart.pop_if(|last| last.end > range.start) {
        range = range.start.min(last.start)..range.end.max(last.end);
    }
    apart.push(range);
}

/// What messages put where they leave out the rest of a text.
const CUT_MARK: &str = "…";
const PATTERN_OF_CUT_MARK: PatternID = PatternID::ZERO;
/// `\ud83d\ude0`
const LONGEST_BROKEN_ESCAPE: usize = 11;
/// U+FFFD stands for the bytes of a character that was cut in two.
const FIRST_OF_REPLACEMENT_CHARACTER: u8 = 0xef;
const MOST_BYTES_TO_BE_FAST: usize = 8 * 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    fn search(patterns: &[&str]) -> Search {
        Search::new(patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect()).unwrap()
    }

    #[track_caller]
    fn check(search: &Search, text: &str, end: End, expect: &[(usize, usize)]) {
        let hidden: Vec<_> = search.hidden(text, end).iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(hidden, expect, "{text}");
    }

    #[test]
    fn ranges_are_joined_where_they_overlap_and_only_there() {
        let search = search(&["abcdef", "defghi", "hijk", "lmno", "fg"]);
        check(&search, "-abcdefghijklmno-abcdef", End::Whole, &[(1, 12), (12, 16), (17, 23)]);
    }

    #[test]
    fn the_beginning_of_a_secret_counts_at_a_cut_only() {
        let search = search(&["abcdefgh"]);
        check(&search, "abcde abcde… abc… abcde", End::Whole, &[(6, 14)]);
        check(&search, "abcde abcde… abc… abcde", End::Cut, &[(6, 14), (22, 27)]);
        check(&search, "abcdefgh…", End::Whole, &[(0, 8)]);
    }

    #[test]
    fn short_patterns_are_looked_for_in_the_fastest_way() {
        assert_eq!(search(&["s3cr3t-value"]).finder.kind(), AhoCorasickKind::DFA);
    }

    /// A caller may choose what is looked for, and so how long it is.
    #[test]
    fn a_long_pattern_takes_little_memory() {
        let long: String = (0..16 * 1_024_u32).filter_map(|n| char::from_u32(33 + n * n % 90)).collect();
        let search = search(&[&long]);
        assert!(search.finder.memory_usage() < 64 * long.len(), "{}", search.finder.memory_usage());
    }
}
