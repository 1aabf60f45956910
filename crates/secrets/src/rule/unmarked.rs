//! The text after a keyword without the markers between keyword and value.
//!
//! `Bearer [REDACTED:token:github]…`: anyone can write a marker there. A marker that is the value itself stays, because
//! the keyword does not refer to the text behind it.

use std::ops::Range;

use crate::marker::MarkerSpans;

pub(super) struct Unmarked {
    pub text: Vec<u8>,
    /// The start of the keyword in it.
    pub word: usize,
    /// The start of the text in the original.
    base: usize,
    left_out: Vec<LeftOut>,
}

struct LeftOut {
    /// Its position in the text.
    at: usize,
    length: usize,
}

impl Unmarked {
    /// Copies the text around `word` up to `until`. Returns `None` if there is no marker to remove.
    pub(super) fn new(hay: &[u8], word: &Range<usize>, until: usize, marks: &MarkerSpans) -> Option<Self> {
        let near = marks_behind(word.end, marks);
        if near.is_empty() {
            return None;
        }
        let base = word.start.saturating_sub(BEFORE);
        let mut unmarked = Self { text: Vec::new(), word: word.start - base, base, left_out: Vec::new() };
        let mut at = base;
        for mark in near.iter().filter(|mark| !is_value(hay, mark)) {
            unmarked.text.extend_from_slice(hay.get(at..mark.start)?);
            unmarked.left_out.push(LeftOut { at: unmarked.text.len(), length: mark.len() });
            at = mark.end;
        }
        let length = unmarked.left_out.iter().map(|mark| mark.length).sum::<usize>();
        let until = hay.len().min(until.max(at) + length + BEHIND);
        unmarked.text.extend_from_slice(hay.get(at..until)?);
        (length > 0).then_some(unmarked)
    }

    /// Maps a part to the original: after a marker that touches its beginning, before one that touches its end.
    pub(super) fn original(&self, part: &Range<usize>) -> Range<usize> {
        let before = |holds: &dyn Fn(usize) -> bool| {
            self.left_out.iter().filter(|mark| holds(mark.at)).map(|mark| mark.length).sum::<usize>()
        };
        let start = self.base + part.start + before(&|at| at <= part.start);
        let end = self.base + part.end + before(&|at| at < part.end);
        start..end
    }
}

/// The markers shortly after a keyword; adjacent ones are merged.
fn marks_behind(from: usize, marks: &MarkerSpans) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for mark in marks.behind(from, marks.reach_behind(from, NEAR)) {
        match found.last_mut() {
            Some(last) if last.end == mark.start => last.end = mark.end,
            _ => found.push(mark.clone()),
        }
    }
    found
}

/// Whether a marker is a complete value: `token: [REDACTED:…] and so on`.
fn is_value(hay: &[u8], mark: &Range<usize>) -> bool {
    let before = mark.start.checked_sub(1).and_then(|at| hay.get(at));
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./+~%=:".contains(byte);
    let touches_name = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
    !touches_name && !hay.get(mark.end).is_some_and(goes_on)
}

/// The largest distance between a keyword and its secret.
const NEAR: usize = 256;
/// The context that checks read: a name before a keyword, and a value after a match.
const BEFORE: usize = 96;
const BEHIND: usize = 400;
