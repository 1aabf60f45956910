//! A compiled rule, applied at every hit of one of its keywords.

use std::{ops::Range, sync::Arc};

use regex_automata::{Anchored, Input, meta::Regex, util::captures::Captures};

use self::{alphabet::Alphabet, unmarked::Unmarked};
use crate::{
    check::{CheckResult, RuleCheck, covered_until, entropy, is_named_sample, is_sample},
    finding::Tier,
    marker::MarkerSpans,
};

mod alphabet;
mod compile;
mod file;
mod unmarked;

pub use file::{RuleError, RuleFile};

pub(crate) use file::read;

pub(crate) struct SecretRule {
    pub id: Arc<str>,
    pub provider: Arc<str>,
    pub kind: Arc<str>,
    pub tier: Tier,
    /// The tier if the pattern matches and `check` fails; without one, such a match is ignored.
    pub unverified: Option<Tier>,
    /// The keywords of the literal search; see [`MatchPosition`] for the meaning of a hit.
    pub words: Vec<Box<[u8]>>,
    pub case: KeywordCase,
    place: MatchPosition,
    /// Fixed beginnings of a secret that contains the keyword.
    beginnings: Vec<Box<[u8]>>,
    pattern: Regex,
    /// The capture group with the secret; the whole match if the pattern has none.
    group: Option<usize>,
    longest: usize,
    shortest: usize,
    /// The bytes that a match can contain.
    alphabet: Alphabet,
    /// A rare byte that every match contains after its beginning, if there is one.
    needed: Option<u8>,
    check: Option<RuleCheck>,
    context: Option<Context>,
    min_entropy: Option<f64>,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum KeywordCase {
    Exact,
    Ignored,
}

/// The position of the match relative to the keyword.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum MatchPosition {
    /// It begins with the keyword.
    Here,
    /// It contains the keyword and begins at most `reach` bytes before it.
    Around { reach: usize },
    /// It begins at most `within` bytes after the keyword, which is its context.
    After { within: usize, lines: ContextLines },
}

struct Context {
    words: Vec<Box<[u8]>>,
    within: usize,
    lines: ContextLines,
}

/// Whether the context may be on another line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ContextLines {
    Any,
    Same,
}

/// A secret that a rule found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Match {
    pub span: Range<usize>,
    pub tier: Tier,
    pub end: MatchEnd,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MatchEnd {
    Closed,
    /// A key block that may continue where the text stopped.
    Open,
    /// Everything that follows belongs to it.
    Never,
}

impl SecretRule {
    /// Searches the secret around the keyword at `word`.
    pub(crate) fn matches(
        &self,
        hay: &[u8],
        word: Range<usize>,
        marks: &MarkerSpans,
        mut found: impl FnMut(Match),
    ) {
        // The text of a marker describes another secret.
        if marks.around(word.start).is_some() {
            return;
        }
        match self.place {
            MatchPosition::Here => {
                let matched = self.match_here(hay, word.start, marks);
                found_if(matched.or_else(|| self.match_behind_marks(hay, &word, marks)), &mut found);
            }
            MatchPosition::Around { reach } => self.matches_around(hay, &word, reach, marks, &mut found),
            MatchPosition::After { within, lines } => {
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

    fn match_here(&self, hay: &[u8], start: usize, marks: &MarkerSpans) -> Option<Match> {
        // Most hits are words of a sentence; this test is cheaper than the regex.
        self.alphabet.first_run(hay, start..start + 1, self.shortest)?;
        let until = hay.len().min(start + self.longest);
        if !self.has_what_it_needs(hay, start..until) {
            return None;
        }
        let spans = self.search(&Input::new(hay).range(start..until).anchored(Anchored::Yes))?;
        if self.in_context(hay, spans.whole.start, marks) { self.judge(hay, &spans, marks) } else { None }
    }

    /// The same if markers separate a keyword and its value. Tokens need no keyword; a marker inside breaks them like
    /// any other text.
    fn match_behind_marks(&self, hay: &[u8], word: &Range<usize>, marks: &MarkerSpans) -> Option<Match> {
        let has_keyword =
            self.group.is_some() || matches!(self.check, Some(RuleCheck::Assigned | RuleCheck::AssignedKey));
        if !has_keyword || self.context.is_some() {
            return None;
        }
        let unmarked = Unmarked::new(hay, word, word.start + self.longest, marks)?;
        let matched = self.match_here(&unmarked.text, unmarked.word, &MarkerSpans::default())?;
        let span = unmarked.original(&matched.span);
        // Markers that were kept still count as markers.
        (!is_in_mark(&span, marks)).then_some(Match { span, ..matched })
    }

    fn matches_around(
        &self,
        hay: &[u8],
        word: &Range<usize>,
        reach: usize,
        marks: &MarkerSpans,
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
        // A search from every position would read the same bytes repeatedly; only the nearest beginnings are tried.
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

    /// Whether the rule applies to reassembled text: only rules that need no context do.
    pub(crate) fn stands_alone(&self) -> bool {
        self.case == KeywordCase::Exact && self.context.is_none() && self.tier >= Tier::Probable
    }

    /// The end of the region in which further hits add nothing. A key may contain many beginnings of keys, and a base64
    /// run many keywords.
    pub(crate) fn covers_until(&self, hay: &[u8], found: &Range<usize>) -> Option<usize> {
        match self.check? {
            RuleCheck::KeyBody => Some(covered_until(hay, found)),
            RuleCheck::Pem => Some(found.end),
            // Every match that begins within it ends at the same position; only a keyword near the end may introduce
            // text behind it.
            RuleCheck::Loose => Some(found.end.saturating_sub(self.sees_behind())),
            _ => None,
        }
    }

    /// The largest distance from the beginning of a keyword to a match, without markers in between.
    fn sees_behind(&self) -> usize {
        let longest = self.words.iter().map(|word| word.len()).max().unwrap_or(0);
        match self.place {
            MatchPosition::Here | MatchPosition::Around { .. } => 0,
            MatchPosition::After { within, .. } => longest + within,
        }
    }

    /// Whether a keyword is part of the secret, so a disguise affects it, too.
    pub(crate) fn word_is_inside(&self) -> bool {
        !matches!(self.place, MatchPosition::After { .. })
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
        // Most hits do not match, and a search without groups is much cheaper.
        self.pattern.search_half(input)?;
        let mut groups: Captures = self.pattern.create_captures();
        self.pattern.search_captures(input, &mut groups);
        let whole = groups.get_match()?.range();
        let secret = groups.get_group(group)?.range();
        Some(Spans { whole, secret })
    }

    fn in_context(&self, hay: &[u8], start: usize, marks: &MarkerSpans) -> bool {
        let Some(context) = &self.context else { return true };
        let from = start.saturating_sub(marks.reach_before(start, context.within));
        let before = hay.get(from..start).unwrap_or_default();
        let line = memchr::memrchr(b'\n', before)
            .filter(|_| context.lines == ContextLines::Same)
            .map_or(0, |at| at + 1);
        let before = before.get(line..).unwrap_or_default().to_ascii_lowercase();
        let is_outside_markers = |at: usize| marks.around(from + line + at).is_none();
        context.words.iter().any(|word| memchr::memmem::find_iter(&before, word).any(is_outside_markers))
    }

    fn judge(&self, hay: &[u8], spans: &Spans, marks: &MarkerSpans) -> Option<Match> {
        let secret = &spans.secret;
        let text = hay.get(secret.clone())?;
        if self.min_entropy.is_some_and(|least| entropy(text) < least) {
            return None;
        }
        let has_samples = self.check.is_none_or(RuleCheck::has_samples);
        // The shortest token is known only where the whole match is the secret.
        let is_named = || self.group.is_none() && is_named_sample(text, self.shortest);
        if has_samples && (is_sample(text) || is_named()) {
            return None;
        }
        let plain = |tier| Match { span: secret.clone(), tier, end: MatchEnd::Closed };
        let matched = match self.check.map_or(CheckResult::Sound, |check| check.judge(hay, secret, marks)) {
            CheckResult::Sound => Some(plain(self.tier)),
            CheckResult::Unsound => self.unverified.map(plain),
            CheckResult::Refuted => None,
            CheckResult::Extends(span, end) => Some(Match { span, tier: self.tier, end }),
        };
        matched.filter(|matched| !is_in_mark(&matched.span, marks))
    }
}

struct Spans {
    whole: Range<usize>,
    secret: Range<usize>,
}

/// Whether a secret begins in a marker and was therefore redacted before. A value that begins with a whole marker and
/// continues was not.
fn is_in_mark(secret: &Range<usize>, marks: &MarkerSpans) -> bool {
    marks.around(secret.start).is_some_and(|mark| mark.start < secret.start || secret.end <= mark.end)
}

/// Whether a line ends between keyword and secret although it must not.
fn is_barred(hay: &[u8], between: &Range<usize>, lines: ContextLines) -> bool {
    let between = hay.get(between.clone()).unwrap_or_default();
    lines == ContextLines::Same && memchr::memchr(b'\n', between).is_some()
}

fn found_if(found: Option<Match>, report: &mut impl FnMut(Match)) {
    if let Some(found) = found {
        report(found);
    }
}

/// The start of the run of token characters that touches `at`, at most `reach` bytes before it. If `at` is a dot, dots
/// end the run, so two such keywords never share one.
fn run_start(hay: &[u8], at: usize, reach: usize) -> usize {
    let dot = if hay.get(at) == Some(&b'.') { b'_' } else { b'.' };
    let before = hay.get(at.saturating_sub(reach)..at).unwrap_or_default();
    let belongs = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'~' | b'+' | b'/') || byte == dot
    };
    at - before.iter().rev().take_while(|byte| belongs(**byte)).count()
}

const MAX_TRIES: usize = 8;
