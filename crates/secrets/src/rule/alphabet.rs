//! The bytes that a match can contain, and a search for runs of them.

use std::ops::Range;

use regex_syntax::hir::{Class, Hir, HirKind};

pub(super) struct Alphabet([bool; 256]);

impl Alphabet {
    pub(super) fn of(hir: &Hir) -> Self {
        let mut alphabet = Self([false; 256]);
        alphabet.add(hir);
        alphabet
    }

    /// Returns the start of the first run of `length` such bytes that begins within `starts`. Checks the end of a run
    /// first, which skips text of short words quickly.
    pub(super) fn first_run(&self, hay: &[u8], starts: Range<usize>, length: usize) -> Option<usize> {
        let mut from = starts.start;
        while from < starts.end {
            let run = hay.get(from..from + length)?;
            match run.iter().rposition(|byte| !self.has(*byte)) {
                None => return Some(from),
                Some(at) => from += at + 1,
            }
        }
        None
    }

    fn has(&self, byte: u8) -> bool {
        self.0.get(usize::from(byte)).copied().unwrap_or(true)
    }

    fn add(&mut self, hir: &Hir) {
        match hir.kind() {
            HirKind::Empty | HirKind::Look(_) => {}
            HirKind::Literal(literal) => literal.0.iter().for_each(|byte| self.add_range(*byte, *byte)),
            HirKind::Class(Class::Bytes(class)) => {
                for range in class.ranges() {
                    self.add_range(range.start(), range.end());
                }
            }
            HirKind::Class(Class::Unicode(_)) => self.add_range(0, u8::MAX),
            HirKind::Repetition(repetition) => self.add(&repetition.sub),
            HirKind::Capture(capture) => self.add(&capture.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                for part in parts {
                    self.add(part);
                }
            }
        }
    }

    fn add_range(&mut self, from: u8, until: u8) {
        for byte in from..=until {
            if let Some(has) = self.0.get_mut(usize::from(byte)) {
                *has = true;
            }
        }
    }
}
