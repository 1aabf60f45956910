//! Where does a text show a secret, or the beginning of one at a cut?

use std::{iter, ops::Range};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind, PatternID};

use super::{SHORTEST, view};

pub(super) struct Search {
    finder: AhoCorasick,
    patterns: Sorted,
    /// Those of them of which few bytes are a good part.
    short_patterns: Sorted,
}

/// In order, so that what begins alike stands together.
struct Sorted {
    patterns: Vec<Vec<u8>>,
    longest: usize,
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
        let short = patterns.iter().filter(|pattern| pattern.len() < 2 * SHORTEST_OF_LONG).cloned().collect();
        Some(Self { finder, patterns: Sorted::new(patterns), short_patterns: Sorted::new(short) })
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
                // A mark that is the last of a text which was cut off stands where it was.
                let at = if hit.end() == bytes.len() { end } else { End::Whole };
                if let Some(begun) = self.begun(piece, at) {
                    add(&mut found, hit.start() - begun..hit.end());
                }
                piece_start = hit.end();
            } else {
                add(&mut found, hit.range());
            }
        }
        if let End::Cut = end {
            let piece = bytes.get(piece_start..).unwrap_or_default();
            if let Some(begun) = self.begun(piece, end) {
                add(&mut found, bytes.len() - begun..bytes.len());
            }
        }
        found
    }

    /// How many bytes at the end of a piece may be the beginning of a secret, if enough of it is there to tell.
    fn begun(&self, piece: &[u8], end: End) -> Option<usize> {
        let ends: Vec<usize> = ends_before_cut(piece).collect();
        let start = match end {
            End::Cut => self.patterns.begun_at(piece, &ends, SHORTEST),
            // Anybody may write a mark behind a word with which a long secret happens to begin, such as `https://`.
            End::Whole => {
                let long = self.patterns.begun_at(piece, &ends, SHORTEST_OF_LONG);
                let short = self.short_patterns.begun_at(piece, &ends, SHORTEST);
                long.into_iter().chain(short).min()
            }
        };
        start.map(|start| piece.len() - start)
    }
}

impl Sorted {
    fn new(mut patterns: Vec<Vec<u8>>) -> Self {
        patterns.sort_unstable();
        patterns.dedup();
        let longest = patterns.iter().map(Vec::len).max().unwrap_or_default();
        Self { patterns, longest }
    }

    /// The first place from which a piece, up to one of the ends, is the beginning of a pattern but not all of it.
    fn begun_at(&self, piece: &[u8], ends: &[usize], least: usize) -> Option<usize> {
        let from = piece.len().saturating_sub(self.longest + LONGEST_BROKEN_ESCAPE);
        (from..piece.len()).find(|start| {
            let rest = piece.get(*start..).unwrap_or_default();
            // If any pattern goes on where the rest is cut, one of the two does between which the rest would stand.
            let behind = self.patterns.partition_point(|pattern| pattern.as_slice() <= rest);
            let before = behind.checked_sub(1).and_then(|before| self.patterns.get(before));
            let near = before.into_iter().chain(self.patterns.get(behind));
            let begins =
                |pattern: &&Vec<u8>| rest.get(..least).is_some_and(|first| pattern.starts_with(first));
            near.filter(begins).any(|pattern| {
                ends.iter().any(|end| {
                    let length = end.saturating_sub(*start);
                    let beginning = rest.get(..length).unwrap_or_default();
                    (least..pattern.len()).contains(&length) && pattern.starts_with(beginning)
                })
            })
        })
    }
}

/// The cut may have gone through an escape or a character: then a secret ends before the rest of that.
fn ends_before_cut(piece: &[u8]) -> impl Iterator<Item = usize> {
    let near = piece.len().saturating_sub(LONGEST_BROKEN_ESCAPE);
    let begins_escape = |byte: u8| matches!(byte, b'%' | b'\\' | FIRST_OF_REPLACEMENT_CHARACTER);
    let ends = (near..piece.len()).filter(move |at| piece.get(*at).is_some_and(|byte| begins_escape(*byte)));
    ends.chain(iter::once(piece.len()))
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
/// Longer than `https://`. Of a secret that is not twice as long, fewer bytes count.
const SHORTEST_OF_LONG: usize = 9;
const MOST_BYTES_TO_BE_FAST: usize = 8 * 1_024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

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

    /// Of a long one a few bytes are no more than a word; where the text itself was cut off, they may be all there is of it.
    #[test]
    fn the_beginning_of_a_long_secret_takes_more_bytes_before_a_mark() {
        let search = search(&["https://hooks.example/T0/B0/x", "https-only"]);
        check(&search, "https://… https://h…", End::Whole, &[(12, 24)]);
        check(&search, "https://…", End::Cut, &[(0, 11)]);
        check(&search, "https://… https:/", End::Cut, &[(12, 19)]);
        check(&search, "https… https-on…", End::Whole, &[(0, 8), (9, 20)]);
    }

    /// One pattern that is the beginning of another hides neither.
    #[test]
    fn patterns_that_begin_alike_are_told_apart() {
        let search = search(&["abcdef", "abcdefgh", "abcdzz"]);
        check(&search, "abcdefg…", End::Whole, &[(0, 10)]);
        check(&search, "abcdef…", End::Whole, &[(0, 9)]);
        check(&search, "abcdefgh…", End::Whole, &[(0, 8)]);
        check(&search, "abcd%2…", End::Whole, &[(0, 9)]);
    }

    fn walked(patterns: &[String], piece: &str, ends: &[usize], least: usize) -> Option<usize> {
        let mut starts = Vec::new();
        for pattern in patterns {
            for end in ends {
                let lengths = (least..pattern.len()).filter(|n| piece[..*end].ends_with(&pattern[..*n]));
                starts.extend(lengths.map(|length| end - length));
            }
        }
        starts.into_iter().min()
    }

    proptest! {
        #[test]
        fn the_first_beginning_is_the_one_that_a_walk_over_all_patterns_finds(
            patterns in prop::collection::vec("[ab%]{4,12}", 1..8),
            piece in "[ab%]{0,24}",
            least in 1_usize..7,
        ) {
            let ends: Vec<usize> = ends_before_cut(piece.as_bytes()).collect();
            let expect = walked(&patterns, &piece, &ends, least);
            let sorted = Sorted::new(patterns.iter().map(|pattern| pattern.as_bytes().to_vec()).collect());
            prop_assert_eq!(sorted.begun_at(piece.as_bytes(), &ends, least), expect);
        }
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
