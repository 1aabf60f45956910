//! Matches regular expressions and globs in bounded time.
//!
//! Expressions become a lazy automaton that is stepped byte by byte here, so a call that is over also stops in the
//! middle of a line. Linear time is not enough: a large expression on a long line takes minutes, and finding all
//! matches is quadratic in the worst case. `\w`, `\d` and `\s` support Unicode; `\b` and similar only ASCII, as in
//! JavaScript. Look-around and back references are not supported.

use std::ffi::OsStr;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use regex_automata::{
    Anchored, Input, MatchKind,
    hybrid::{
        LazyStateID,
        dfa::{Cache, DFA},
    },
    nfa::thompson::{Compiler, Config as NfaConfig, WhichCaptures},
};
use regex_syntax::{
    ParserBuilder,
    hir::{Capture, Hir, HirKind, Look, Repetition},
};

use super::{
    Files,
    error::{FileFault, FileReason, quoted},
};

pub(super) struct LinePattern<'f> {
    files: &'f Files,
    forward: Automaton,
    backward: Automaton,
    steps: u32,
}

struct Automaton {
    dfa: DFA,
    cache: Cache,
}

#[derive(Clone, Copy)]
pub(super) enum LetterCase {
    Counts,
    Ignored,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Direction {
    Forward,
    Backward,
}

impl<'f> LinePattern<'f> {
    /// `Err` describes the problem with the expression.
    pub fn new(files: &'f Files, pattern: &str, case: LetterCase) -> Result<Self, String> {
        if pattern.len() > LONGEST_PATTERN {
            return Err(format!("it is longer than {LONGEST_PATTERN} bytes"));
        }
        let ignores_case = matches!(case, LetterCase::Ignored);
        let hir = ParserBuilder::new()
            .case_insensitive(ignores_case)
            .nest_limit(DEEPEST_PATTERN)
            .build()
            .parse(pattern)
            .map_err(|error| syntax_message(&error))?;
        let hir = ascii_boundaries(&hir);
        let forward = Automaton::new(&hir, Direction::Forward)?;
        let backward = Automaton::new(&hir, Direction::Backward)?;
        Ok(Self { files, forward, backward, steps: 0 })
    }

    pub fn is_match(&mut self, line: &str) -> Result<bool, FileFault> {
        Ok(self.match_end(line, 0, MatchExtent::First)?.is_some())
    }

    /// The start and end of the leftmost match at or after `from`.
    pub fn find(&mut self, line: &str, from: usize) -> Result<Option<(usize, usize)>, FileFault> {
        let Some(end) = self.match_end(line, from, MatchExtent::Longest)? else { return Ok(None) };
        let start = self.match_start(line, from, end)?;
        Ok(Some((start, end)))
    }

    fn match_end(&mut self, line: &str, from: usize, stop: MatchExtent) -> Result<Option<usize>, FileFault> {
        let input = Input::new(line).range(from..);
        let start = self.forward.dfa.start_state_forward(&mut self.forward.cache, &input);
        let mut state = start.map_err(|_| gave_up())?;
        let mut last = None;
        for (at, byte) in line.bytes().enumerate().skip(from) {
            state = self.forward.next(state, byte)?;
            if state.is_match() {
                last = Some(at);
                if stop == MatchExtent::First {
                    return Ok(last);
                }
            } else if state.is_dead() {
                return Ok(last);
            }
            self.count_step()?;
        }
        state = self.forward.at_end(state)?;
        Ok(if state.is_match() { Some(line.len()) } else { last })
    }

    fn match_start(&mut self, line: &str, from: usize, end: usize) -> Result<usize, FileFault> {
        let input = Input::new(line).range(from..end).anchored(Anchored::Yes);
        let start = self.backward.dfa.start_state_reverse(&mut self.backward.cache, &input);
        let mut state = start.map_err(|_| gave_up())?;
        let mut first = end;
        let bytes = line.as_bytes();
        for at in (from..end).rev() {
            let Some(byte) = bytes.get(at) else { break };
            state = self.backward.next(state, *byte)?;
            if state.is_match() {
                first = at + 1;
            } else if state.is_dead() {
                return Ok(first);
            }
            self.count_step()?;
        }
        state = match from.checked_sub(1).and_then(|before| bytes.get(before)) {
            Some(byte) => self.backward.next(state, *byte)?,
            None => self.backward.at_end(state)?,
        };
        Ok(if state.is_match() { from } else { first })
    }

    fn count_step(&mut self) -> Result<(), FileFault> {
        self.steps = self.steps.wrapping_add(1);
        if self.steps.is_multiple_of(STEPS_BETWEEN_CHECKS) { self.files.check_deadline() } else { Ok(()) }
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum MatchExtent {
    First,
    Longest,
}

impl Automaton {
    fn new(hir: &Hir, direction: Direction) -> Result<Self, String> {
        let is_backward = direction == Direction::Backward;
        let config = NfaConfig::new()
            .nfa_size_limit(Some(LARGEST_AUTOMATON))
            .which_captures(WhichCaptures::None)
            .reverse(is_backward);
        let nfa = Compiler::new().configure(config).build_from_hir(hir).map_err(|_| too_large())?;
        // Backwards, the longest match is the one that starts leftmost.
        let kind = if is_backward { MatchKind::All } else { MatchKind::LeftmostFirst };
        let config = DFA::config().match_kind(kind).cache_capacity(CACHE).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| too_large())?;
        let cache = dfa.create_cache();
        Ok(Self { dfa, cache })
    }

    fn next(&mut self, state: LazyStateID, byte: u8) -> Result<LazyStateID, FileFault> {
        let next = self.dfa.next_state(&mut self.cache, state, byte).map_err(|_| gave_up())?;
        if next.is_quit() { Err(gave_up()) } else { Ok(next) }
    }

    fn at_end(&mut self, state: LazyStateID) -> Result<LazyStateID, FileFault> {
        self.dfa.next_eoi_state(&mut self.cache, state).map_err(|_| gave_up())
    }
}

/// Matched against a name, not a path.
pub(super) struct NameGlob(GlobSet);

impl NameGlob {
    pub fn new(glob: &str) -> Result<Self, FileFault> {
        let invalid =
            |why: &str| FileFault::new(FileReason::FindInvalidGlob, format!("glob {} {why}", quoted(glob)));
        if glob.len() > LONGEST_GLOB {
            return Err(invalid("is longer than 1000 bytes"));
        }
        let parsed = GlobBuilder::new(glob).backslash_escape(true).build();
        let parsed = parsed.map_err(|error| invalid(&format!("is wrong: {}", error.kind())))?;
        // A set, because compiling a single glob panics if its expression is too large.
        let set = GlobSetBuilder::new().add(parsed).build().map_err(|_| invalid("is too large"))?;
        Ok(Self(set))
    }

    pub fn matches(&self, name: &OsStr) -> bool {
        self.0.is_match(name)
    }
}

/// A lazy automaton sees one byte at a time, which is only enough for ASCII words.
fn ascii_boundaries(hir: &Hir) -> Hir {
    let all = |parts: &[Hir]| parts.iter().map(ascii_boundaries).collect::<Vec<_>>();
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => hir.clone(),
        HirKind::Look(look) => Hir::look(ascii(*look)),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            min: repetition.min,
            max: repetition.max,
            greedy: repetition.greedy,
            sub: Box::new(ascii_boundaries(&repetition.sub)),
        }),
        HirKind::Capture(capture) => Hir::capture(Capture {
            index: capture.index,
            name: capture.name.clone(),
            sub: Box::new(ascii_boundaries(&capture.sub)),
        }),
        HirKind::Concat(parts) => Hir::concat(all(parts)),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)),
    }
}

const fn ascii(look: Look) -> Look {
    match look {
        Look::WordUnicode => Look::WordAscii,
        Look::WordUnicodeNegate => Look::WordAsciiNegate,
        Look::WordStartUnicode => Look::WordStartAscii,
        Look::WordEndUnicode => Look::WordEndAscii,
        Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
        Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
        other => other,
    }
}

/// The parser's message without its drawing.
fn syntax_message(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => error.kind().to_string(),
        regex_syntax::Error::Translate(error) => error.kind().to_string(),
        _ => "it cannot be read".into(),
    }
}

fn too_large() -> String {
    "it is too large; use smaller counts in braces".into()
}

fn gave_up() -> FileFault {
    FileFault::new(FileReason::GrepInvalidPattern, "the expression cannot be matched against this text")
}

const LONGEST_PATTERN: usize = 4096;
const DEEPEST_PATTERN: u32 = 100;
const LONGEST_GLOB: usize = 1000;

const LARGEST_AUTOMATON: usize = 1024 * 1024;
const CACHE: usize = 2 * 1024 * 1024;

/// A new state costs up to a fraction of a millisecond with the largest automaton.
const STEPS_BETWEEN_CHECKS: u32 = 256;
