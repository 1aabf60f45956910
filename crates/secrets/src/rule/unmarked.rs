//! How does a text read behind a word, without the marks between the word and what it tells?
//!
//! `Bearer [REDACTED:token:github]…`: anybody can write a mark there. One that is a value by itself stays, for what follows it
//! is not told by the word.

use std::ops::Range;

use crate::marker::Marks;

pub(super) struct Unmarked {
    pub text: Vec<u8>,
    /// Where the word begins in it.
    pub word: usize,
    /// Where the text begins in the original.
    base: usize,
    left_out: Vec<LeftOut>,
}

struct LeftOut {
    /// Where in the text it would stand.
    at: usize,
    length: usize,
}

impl Unmarked {
    /// The text around `word` and up to `until`, unless there is nothing to leave out.
    pub(super) fn new(hay: &[u8], word: &Range<usize>, until: usize, marks: &Marks) -> Option<Self> {
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

    /// Where a part stands in the original: behind a mark that touches its beginning, before one that touches its end.
    pub(super) fn original(&self, part: &Range<usize>) -> Range<usize> {
        let before = |holds: &dyn Fn(usize) -> bool| {
            self.left_out.iter().filter(|mark| holds(mark.at)).map(|mark| mark.length).sum::<usize>()
        };
        let start = self.base + part.start + before(&|at| at <= part.start);
        let end = self.base + part.end + before(&|at| at < part.end);
        start..end
    }
}

/// The marks near behind a word; those that touch are one.
fn marks_behind(from: usize, marks: &Marks) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for mark in marks.behind(from, marks.reach_behind(from, NEAR)) {
        match found.last_mut() {
            Some(last) if last.end == mark.start => last.end = mark.end,
            _ => found.push(mark.clone()),
        }
    }
    found
}

/// Whether a mark stands where a value would, and ends there: `token: [REDACTED:…] and so on`.
fn is_value(hay: &[u8], mark: &Range<usize>) -> bool {
    let before = mark.start.checked_sub(1).and_then(|at| hay.get(at));
    let goes_on = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./+~%=:".contains(byte);
    let touches_name = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
    !touches_name && !hay.get(mark.end).is_some_and(goes_on)
}

/// No more stands between a word and its secret.
const NEAR: usize = 256;
/// What checks read before a word and behind a match: a name, and a value.
const BEFORE: usize = 96;
const BEHIND: usize = 400;
