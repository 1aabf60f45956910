//! Redacts a text that arrives in pieces.

use std::{fmt, sync::Arc};

use crate::{
    detector::Detector,
    finding::{SecretFinding, Tier},
    window::{BEHIND, Carry, CoveredPart, Follows, WINDOW, write},
};

/// Accepts pieces and returns the text that is safe to release. Holds back at most 513 KiB and the last piece.
pub struct Stream {
    detector: Arc<Detector>,
    at_least: Tier,
    carry: Carry,
    /// Text that is not released yet, and some context before it.
    held: Vec<u8>,
    /// The start of the unreleased text in `held`.
    from: usize,
    /// The number of bytes dropped before `held`.
    dropped: usize,
    findings: Vec<SecretFinding>,
}

impl Stream {
    pub(crate) fn new(detector: Arc<Detector>, at_least: Tier) -> Self {
        let (carry, held) = (Carry::default(), Vec::new());
        Self { detector, at_least, carry, held, from: 0, dropped: 0, findings: Vec::new() }
    }

    /// Accepts a piece and returns the text that can be released now, possibly none. A piece may end within a
    /// character: if all pieces together are UTF-8, so is each returned part.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.held.extend_from_slice(piece);
        while self.held.len() - self.from > WINDOW {
            self.step(self.from + WINDOW, Follows::More, &mut out);
        }
        self.forget();
        out
    }

    /// The findings in the returned text, at most ten thousand.
    pub fn findings(&self) -> &[SecretFinding] {
        &self.findings
    }

    /// Returns the rest and the first ten thousand findings, with spans of the original text.
    pub fn finish(mut self) -> (Vec<u8>, Vec<SecretFinding>) {
        let mut out = Vec::new();
        self.step(self.held.len(), Follows::Nothing, &mut out);
        (out, self.findings)
    }

    fn step(&mut self, until: usize, follows: Follows, out: &mut Vec<u8>) {
        let base = self.from.saturating_sub(BEHIND);
        let hay = self.held.get(base..until).unwrap_or_default();
        let searcher = self.detector.searcher();
        let step = self.carry.step(searcher, hay, self.from - base, follows, self.at_least);
        write(searcher, hay, self.from - base..step.next, &step.covered, out);
        for mut covered in step.covered {
            let base = self.dropped + base;
            covered.span = base + covered.span.start..base + covered.span.end;
            if self.findings.len() < MAX_FINDINGS || covered.part == CoveredPart::Rest {
                self.detector.add(covered, &mut self.findings);
            }
        }
        self.from = base + step.next;
    }

    fn forget(&mut self) {
        let keep = self.from.saturating_sub(BEHIND);
        self.held.drain(..keep);
        self.dropped += keep;
        self.from -= keep;
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

/// Further secrets are redacted, but not listed.
const MAX_FINDINGS: usize = 10_000;
