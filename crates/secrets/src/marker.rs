//! Redaction markers: writing them, and finding those that are already in a text.
//!
//! Only exact markers of this detector count. Anyone can write one, so a marker exempts only its own text: it is not a
//! letter, a boundary, a distance or a value. Markers are recognised for one purpose: redacting twice must give the
//! same result as redacting once.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use memchr::memmem;

pub(crate) struct Markers {
    known: HashSet<Box<[u8]>>,
    longest: usize,
    /// Built once, because a text consists of many short ones.
    opening: memmem::Finder<'static>,
}

/// The markers in one text, in order.
#[derive(Default)]
pub(crate) struct MarkerSpans(Vec<Range<usize>>);

/// The marker for a secret of this kind and provider.
pub(crate) fn marker(kind: &str, provider: &str) -> String {
    format!("[REDACTED:{kind}:{provider}]")
}

/// The line ends within a secret. They are kept, so the number of lines stays.
pub(crate) fn line_ends(secret: &[u8]) -> impl Iterator<Item = &'static str> {
    memchr::memchr_iter(b'\n', secret).map(|at| {
        let before = at.checked_sub(1).and_then(|before| secret.get(before));
        if before == Some(&b'\r') { "\r\n" } else { "\n" }
    })
}

impl Markers {
    pub(crate) fn new<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let known: HashSet<Box<[u8]>> =
            labels.map(|(kind, provider)| marker(kind, provider).into_bytes().into()).collect();
        let longest = known.iter().map(|mark| mark.len()).max().unwrap_or(0);
        Self { known, longest, opening: memmem::Finder::new(OPENING) }
    }

    pub(crate) fn find(&self, hay: &[u8]) -> MarkerSpans {
        let marks = self.opening.find_iter(hay);
        MarkerSpans(marks.filter_map(|at| self.length_at(hay, at).map(|length| at..at + length)).collect())
    }

    fn length_at(&self, hay: &[u8], at: usize) -> Option<usize> {
        let rest = hay.get(at..hay.len().min(at + self.longest))?;
        let length = memchr::memchr(b']', rest)? + 1;
        rest.get(..length).filter(|mark| self.known.contains(*mark)).map(<[u8]>::len)
    }
}

impl MarkerSpans {
    /// The marker that contains the byte at `at`.
    pub(crate) fn around(&self, at: usize) -> Option<&Range<usize>> {
        let (before, _) = self.split(at + 1);
        before.last().filter(|mark| at < mark.end)
    }

    /// Extends a distance of `within` bytes after `at` by the markers in it, which do not count as distance.
    pub(crate) fn reach_behind(&self, at: usize, within: usize) -> usize {
        let (_, behind) = self.split(at);
        behind
            .iter()
            .take(MAX_PASSED)
            .fold(within, |reach, mark| if mark.start <= at + reach { reach + mark.len() } else { reach })
    }

    /// The markers that begin less than `reach` bytes after `at`.
    pub(crate) fn behind(&self, at: usize, reach: usize) -> &[Range<usize>] {
        let (_, behind) = self.split(at);
        let near = behind.partition_point(|mark| mark.start < at + reach);
        behind.get(..near).unwrap_or_default()
    }

    /// The same backwards from `at`.
    pub(crate) fn reach_before(&self, at: usize, within: usize) -> usize {
        let (before, _) = self.split(at);
        before
            .iter()
            .rev()
            .take(MAX_PASSED)
            .fold(within, |reach, mark| if mark.end + reach >= at { reach + mark.len() } else { reach })
    }

    /// The text of `part` without its markers.
    pub(crate) fn without<'h>(&self, hay: &'h [u8], part: &Range<usize>) -> Cow<'h, [u8]> {
        let (_, behind) = self.split(part.start);
        let mut at = part.start;
        let mut kept = Vec::new();
        for mark in behind.iter().take_while(|mark| mark.end <= part.end) {
            kept.extend_from_slice(hay.get(at..mark.start).unwrap_or_default());
            at = mark.end;
        }
        let rest = hay.get(at..part.end).unwrap_or_default();
        if at == part.start {
            return Cow::Borrowed(rest);
        }
        kept.extend_from_slice(rest);
        Cow::Owned(kept)
    }

    /// The markers that begin before `at`, and the others.
    fn split(&self, at: usize) -> (&[Range<usize>], &[Range<usize>]) {
        let count = self.0.partition_point(|mark| mark.start < at);
        self.0.split_at_checked(count).unwrap_or_default()
    }
}

const OPENING: &[u8] = b"[REDACTED:";
/// Each marker brings text behind it nearer, which may then be redacted, too. The limit ends this.
const MAX_PASSED: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_markers_count() {
        let markers = Markers::new([("token", "github")].into_iter());
        let text =
            "a[REDACTED:token:github]b[REDACTED:token:gitlab][REDACTED:token:github][REDACTED:token:github";
        assert_eq!(markers.find(text.as_bytes()).0, [1..24, 48..71]);
    }

    #[test]
    fn markers_are_neither_distance_nor_value() {
        let markers = Markers::new([("token", "github")].into_iter());
        let text = b"key [REDACTED:token:github] = [REDACTED:token:github]x";
        let marks = markers.find(text);
        assert_eq!((marks.reach_behind(3, 2), marks.reach_behind(3, 5)), (2 + 23, 5 + 46));
        assert_eq!((marks.reach_before(53, 0), marks.reach_before(53, 3)), (23, 3 + 46));
        assert_eq!(marks.reach_behind(3, 0), 0);
        let starts = |at, reach| marks.behind(at, reach).iter().map(|mark| mark.start).collect::<Vec<_>>();
        assert_eq!(
            [starts(3, 1), starts(3, 2), starts(3, 99), starts(5, 99)],
            [vec![], vec![4], vec![4, 30], vec![30]]
        );
        assert_eq!(*marks.without(text, &(0..text.len())), *b"key  = x");
        assert_eq!(marks.around(26), Some(&(4..27)));
        assert_eq!(marks.around(27), None);
    }
}
