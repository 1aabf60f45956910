//! How is a text redacted that arrives in pieces?

use std::{fmt, sync::Arc};

use crate::{
    detector::Detector,
    finding::{Finding, Tier},
    window::{BEHIND, Carry, Follows, Part, WINDOW, write},
};

/// Takes pieces, gives back what is safe to release. Holds back at most 513 KiB and the last piece.
pub struct Stream {
    detector: Arc<Detector>,
    at_least: Tier,
    carry: Carry,
    /// What is not released yet, and a little before it.
    held: Vec<u8>,
    /// Where in `held` that begins.
    from: usize,
    /// How much of the text was dropped before `held`.
    dropped: usize,
    findings: Vec<Finding>,
}

impl Stream {
    pub(crate) fn new(detector: Arc<Detector>, at_least: Tier) -> Self {
        let (carry, held) = (Carry::default(), Vec::new());
        Self { detector, at_least, carry, held, from: 0, dropped: 0, findings: Vec::new() }
    }

    /// Takes a piece; gives back what can be released now, which may be nothing. Characters may be cut in two: if all
    /// pieces together are UTF-8, so is all that is given back, each time.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        self.held.extend_from_slice(piece);
        while self.held.len() - self.from > WINDOW {
            self.step(self.from + WINDOW, Follows::More, &mut out);
        }
        self.forget();
        out
    }

    /// What was found in what was given back so far, the first ten thousand of them.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The rest, and the first ten thousand findings; spans are those of the text as it arrived.
    pub fn finish(mut self) -> (Vec<u8>, Vec<Finding>) {
        let mut out = Vec::new();
        self.step(self.held.len(), Follows::Nothing, &mut out);
        (out, self.findings)
    }

    fn step(&mut self, until: usize, follows: Follows, out: &mut Vec<u8>) {
        let base = self.from.saturating_sub(BEHIND);
        let hay = self.held.get(base..until).unwrap_or_default();
        let looker = self.detector.looker();
        let step = self.carry.step(looker, hay, self.from - base, follows, self.at_least);
        write(looker, hay, self.from - base..step.next, &step.covered, out);
        for mut covered in step.covered {
            let base = self.dropped + base;
            covered.span = base + covered.span.start..base + covered.span.end;
            if self.findings.len() < MAX_FINDINGS || covered.part == Part::Rest {
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

/// What is found is taken out all the same; only the list ends.
const MAX_FINDINGS: usize = 10_000;
