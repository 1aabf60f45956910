//! What stands where a secret stood, and where does such a mark already stand?
//!
//! A mark counts only if it is letter for letter one that this detector writes, so that nobody can hide a secret by
//! writing something similar around it. Marks are looked at for one purpose: what is redacted twice must read like what is
//! redacted once.

use std::{collections::HashSet, ops::Range};

use memchr::memmem;

pub(crate) struct Markers {
    known: HashSet<Box<[u8]>>,
    longest: usize,
}

/// The mark for a secret of this kind and provider.
pub(crate) fn marker(kind: &str, provider: &str) -> String {
    format!("[REDACTED:{kind}:{provider}]")
}

/// Line ends within what is taken out, so that the number of lines stays.
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
        Self { known, longest }
    }

    pub(crate) fn starts_at(&self, hay: &[u8], at: usize) -> bool {
        self.length_at(hay, at).is_some()
    }

    pub(crate) fn ends_at(&self, hay: &[u8], at: usize) -> bool {
        self.last_in(hay, at.saturating_sub(self.longest)..at).is_some_and(|mark| mark.end == at)
    }

    /// The mark that the byte at `at` is part of.
    pub(crate) fn around(&self, hay: &[u8], at: usize) -> Option<Range<usize>> {
        let until = hay.len().min(at + OPENING.len());
        self.last_in(hay, at.saturating_sub(self.longest)..until).filter(|mark| mark.contains(&at))
    }

    /// The last mark that begins in `range`; it may end behind it.
    pub(crate) fn last_in(&self, hay: &[u8], range: Range<usize>) -> Option<Range<usize>> {
        let mut end = range.end;
        loop {
            let at = range.start + memmem::rfind(hay.get(range.start..end)?, OPENING)?;
            if let Some(length) = self.length_at(hay, at) {
                return Some(at..at + length);
            }
            end = at;
        }
    }

    fn length_at(&self, hay: &[u8], at: usize) -> Option<usize> {
        let rest = hay.get(at..hay.len().min(at + self.longest))?;
        if !rest.starts_with(OPENING) {
            return None;
        }
        let length = memchr::memchr(b']', rest)? + 1;
        rest.get(..length).filter(|mark| self.known.contains(*mark)).map(<[u8]>::len)
    }
}

const OPENING: &[u8] = b"[REDACTED:";
