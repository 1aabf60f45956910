//! Does this rule's secret stand here? One compiled rule, asked wherever one of its words stands.

use std::{ops::Range, sync::Arc};

use regex_automata::{Anchored, Input, meta::Regex, util::captures::Captures};

use self::{alphabet::Alphabet, unmarked::Unmarked};
use crate::{
    check::{Check, Judged, covered_until, entropy, is_sample},
    finding::Tier,
    marker::Marks,
};

mod alphabet;
mod compile;
mod file;
mod unmarked;

pub use file::{RuleError, RuleFile};

pub(crate) use file::read;

pub(crate) struct Rule {
    pub id: Arc<str>,
    pub provider: Arc<str>,
    pub kind: Arc<str>,
    pub tier: Tier,
    /// The tier where the form fits and `check` does not; without one such a match is nothing.
    pub unverified: Option<Tier>,
    /// What the literal search looks for; see [`Place`] for what a hit means.
    pub words: Vec<Box<[u8]>>,
    pub case: Case,
    place: Place,
    /// Where the secret contains the word: how it begins, if that is fixed.
    beginnings: Vec<Box<[u8]>>,
    pattern: Regex,
    /// The capture group that is the secret; the whole match where the pattern has none.
    group: Option<usize>,
    longest: usize,
    shortest: usize,
    /// The bytes that a match can consist of.
    alphabet: Alphabet,
    /// A byte that every match has after its beginning, if it is a rare one.
    needed: Option<u8>,
    check: Option<Check>,
    context: Option<Context>,
    min_entropy: Option<f64>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Case {
    Exact,
    Ignored,
}

/// Where the match lies, seen from the word that was hit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Place {
    /// It begins with the word.
    Here,
    /// It contains the word, and begins at most so many bytes before it.
    Around { reach: usize },
    /// It begins at most so many bytes after the word, which is its context.
    After { within: usize, lines: Lines },
}

struct Context {
    words: Vec<Box<[u8]>>,
    within: usize,
    lines: Lines,
}

/// Whether the context may stand on another line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lines {
    Any,
    Same,
}

/// A secret that a rule found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Match {
    pub span: Range<usize>,
    pub tier: Tier,
    pub end: End,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    Closed,
    /// A key block of which more may follow where the text stopped.
    Open,
    /// All that follows goes with it.
    Never,
}

impl Rule {
    /// Looks for the secret around the word at `word`.
    pub(crate) fn matches(
        &self,
        hay: &[u8],
        word: Range<usize>,
        marks: &Marks,
        mut found: impl FnMut(Match),
    ) {
        // What a mark says of the secret that was there tells nothing about others.
        if marks.around(word.start).is_some() {
            return;
        }
        match self.place {
            Place::Here => {
                let matched = self.match_here(hay, word.start, marks);
                found_if(matched.or_else(|| self.match_behind_marks(hay, &word, marks)), &mut found);
            }
            Place::Around { reach } => self.matches_around(hay, &word, reach, marks, &mut found),
            Place::After { within, lines } => {
                let within = marks.reach_behind(word.end, within);
                let starts = word.end..word.end + within + 1;
                let Some(from) = self.alphabet.first_run(hay, starts, self.shortest) else { return };
                let until = hay.len().min(word.end + within + self.longest);
                self.each(hay, from..until, |span| {
                    let near = span.whole.start - word.end <= within;
                    if near && !is_barred(hay, &(word.end..span.whole.start), lines) {
                        found_if(self.judge(hay, span, marks), &mut found);
                    }
                    near
                });
            }
        }
    }

    fn match_here(&self, hay: &[u8], start: usize, marks: &Marks) -> Option<Match> {
        // Most hits are words in a sentence; this tells them from tokens before the regex is asked.
        self.alphabet.first_run(hay, start..start + 1, self.shortest)?;
        let until = hay.len().min(start + self.longest);
        if !self.has_what_it_needs(hay, start..until) {
            return None;
        }
        let spans = self.search(&Input::new(hay).range(start..until).anchored(Anchored::Yes))?;
        if self.in_context(hay, spans.whole.start, marks) { self.judge(hay, &spans, marks) } else { None }
    }

    /// The same where marks stand between a word and what it tells. A token is told by no word; a mark in it breaks it as
    /// anything else would.
    fn match_behind_marks(&self, hay: &[u8], word: &Range<usize>, marks: &Marks) -> Option<Match> {
        let is_told =
            self.group.is_some() || matches!(self.check, Some(Check::Assigned | Check::AssignedKey));
        if !is_told || self.context.is_some() {
            return None;
        }
        let unmarked = Unmarked::new(hay, word, word.start + self.longest, marks)?;
        let matched = self.match_here(&unmarked.text, unmarked.word, &Marks::default())?;
        let span = unmarked.original(&matched.span);
        // Those that stay are marks all the same.
        (!is_in_mark(&span, marks)).then_some(Match { span, ..matched })
    }

    fn matches_around(
        &self,
        hay: &[u8],
        word: &Range<usize>,
        reach: usize,
        marks: &Marks,
        found: &mut impl FnMut(Match),
    ) {
        let from = run_start(hay, word.start, reach);
        let until = hay.len().min(word.start + self.longest);
        let mut judge = |spans: &Spans| {
            let holds = spans.whole.start <= word.start && word.end <= spans.whole.end;
            if holds && self.in_context(hay, spans.whole.start, marks) {
                found_if(self.judge(hay, spans, marks), found);
            }
        };
        if self.beginnings.is_empty() {
            self.each(hay, from..until, |spans| {
                judge(spans);
                spans.whole.end <= word.start
            });
            return;
        }
        // A search from each place would read the same bytes over and over; the places nearest to the word are tried.
        for beginning in &self.beginnings {
            let run = hay.get(from..word.start).unwrap_or_default();
            for at in memchr::memmem::rfind_iter(run, beginning).take(MAX_TRIES) {
                let input = Input::new(hay).range(from + at..until).anchored(Anchored::Yes);
                if let Some(spans) = self.search(&input) {
                    judge(&spans);
                }
            }
        }
    }

    fn has_what_it_needs(&self, hay: &[u8], range: Range<usize>) -> bool {
        let has = |byte| memchr::memchr(byte, hay.get(range).unwrap_or_default()).is_some();
        self.needed.is_none_or(has)
    }

    /// Whether it may be looked for where a text was put together again: only what stands for itself may.
    pub(crate) fn stands_alone(&self) -> bool {
        self.case == Case::Exact && self.context.is_none() && self.tier >= Tier::Probable
    }

    /// Until where another hit has nothing to add to what was found: a key may hold ever so many beginnings of one, and a run of
    /// base64 ever so many telling words.
    pub(crate) fn covers_until(&self, hay: &[u8], found: &Range<usize>) -> Option<usize> {
        match self.check? {
            Check::KeyBody => Some(covered_until(hay, found)),
            Check::Pem => Some(found.end),
            // All that begins within it ends where it does; only a word near that end tells what is behind it.
            Check::Loose => Some(found.end.saturating_sub(self.sees_behind())),
            _ => None,
        }
    }

    /// How far behind the beginning of a word a match may begin, where no mark is between.
    fn sees_behind(&self) -> usize {
        let longest = self.words.iter().map(|word| word.len()).max().unwrap_or(0);
        match self.place {
            Place::Here | Place::Around { .. } => 0,
            Place::After { within, .. } => longest + within,
        }
    }

    /// Whether a hit on one of its words begins or contains the secret, so that the word is disguised with it.
    pub(crate) fn word_is_inside(&self) -> bool {
        !matches!(self.place, Place::After { .. })
    }

    fn each(&self, hay: &[u8], range: Range<usize>, mut go_on: impl FnMut(&Spans) -> bool) {
        let mut from = range.start;
        while from < range.end {
            let Some(spans) = self.search(&Input::new(hay).range(from..range.end)) else { return };
            if !go_on(&spans) {
                return;
            }
            from = spans.whole.end.max(from + 1);
        }
    }

    fn search(&self, input: &Input<'_>) -> Option<Spans> {
        let Some(group) = self.group else {
            let found = self.pattern.search(input)?;
            return Some(Spans { whole: found.range(), secret: found.range() });
        };
        // Most hits are no match, and finding that out without groups is far cheaper.
        self.pattern.search_half(input)?;
        let mut groups: Captures = self.pattern.create_captures();
        self.pattern.search_captures(input, &mut groups);
        let whole = groups.get_match()?.range();
        let secret = groups.get_group(group)?.range();
        Some(Spans { whole, secret })
    }

    fn in_context(&self, hay: &[u8], start: usize, marks: &Marks) -> bool {
        let Some(context) = &self.context else { return true };
        let from = start.saturating_sub(marks.reach_before(start, context.within));
        let before = hay.get(from..start).unwrap_or_default();
        let line =
            memchr::memrchr(b'\n', before).filter(|_| context.lines == Lines::Same).map_or(0, |at| at + 1);
        let before = before.get(line..).unwrap_or_default().to_ascii_lowercase();
        let is_told = |at: usize| marks.around(from + line + at).is_none();
        context.words.iter().any(|word| memchr::memmem::find_iter(&before, word).any(is_told))
    }

    fn judge(&self, hay: &[u8], spans: &Spans, marks: &Marks) -> Option<Match> {
        let secret = &spans.secret;
        let text = hay.get(secret.clone())?;
        if self.min_entropy.is_some_and(|least| entropy(text) < least) {
            return None;
        }
        let has_samples = self.check.is_none_or(Check::has_samples);
        if has_samples && is_sample(text) {
            return None;
        }
        let plain = |tier| Match { span: secret.clone(), tier, end: End::Closed };
        let matched = match self.check.map_or(Judged::Sound, |check| check.judge(hay, secret, marks)) {
            Judged::Sound => Some(plain(self.tier)),
            Judged::Unsound => self.unverified.map(plain),
            Judged::Refuted => None,
            Judged::Extends(span, end) => Some(Match { span, tier: self.tier, end }),
        };
        matched.filter(|matched| !is_in_mark(&matched.span, marks))
    }
}

struct Spans {
    whole: Range<usize>,
    secret: Range<usize>,
}

/// What begins in a mark was redacted before. A value that begins with a whole one and goes on was not.
fn is_in_mark(secret: &Range<usize>, marks: &Marks) -> bool {
    marks.around(secret.start).is_some_and(|mark| mark.start < secret.start || secret.end <= mark.end)
}

/// Whether a line ends between a word and a secret that must not.
fn is_barred(hay: &[u8], between: &Range<usize>, lines: Lines) -> bool {
    let between = hay.get(between.clone()).unwrap_or_default();
    lines == Lines::Same && memchr::memchr(b'\n', between).is_some()
}

fn found_if(found: Option<Match>, tell: &mut impl FnMut(Match)) {
    if let Some(found) = found {
        tell(found);
    }
}

/// Where the run of token characters that touches `at` begins, at most `reach` bytes before it. Where a dot stands at `at`,
/// dots end the run, so that no two such words share one.
fn run_start(hay: &[u8], at: usize, reach: usize) -> usize {
    let dot = if hay.get(at) == Some(&b'.') { b'_' } else { b'.' };
    let before = hay.get(at.saturating_sub(reach)..at).unwrap_or_default();
    let belongs = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'~' | b'+' | b'/') || byte == dot
    };
    at - before.iter().rev().take_while(|byte| belongs(**byte)).count()
}

const MAX_TRIES: usize = 8;
