//! Scans a text of any length in bounded memory. The result does not depend on how the text arrives.
//!
//! The text is scanned in windows whose positions depend only on the text. A window decides about its front part; the
//! next window decides about the rest, which it sees with more context. Secrets shorter than this overlap are never
//! missed at a boundary. A key block may be longer: it stays open, and everything that looks like it is redacted until
//! it ends. The next window sees the markers of the previous one, so both read the text behind them alike.

use std::ops::Range;

use crate::{
    check::body_end,
    finding::{Encoding, Tier},
    known_values::KnownValues,
    marker::{line_ends, marker},
    rescan::{redact_rest, settle},
    rule::MatchEnd,
    searcher::{Scratch, Searcher, SecretCandidate},
};

/// A span to redact.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Covered {
    pub rule: usize,
    pub tier: Tier,
    pub span: Range<usize>,
    pub encoding: Encoding,
    pub part: CoveredPart,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CoveredPart {
    Whole,
    /// Continues the finding of the previous window.
    Rest,
}

/// The decisions of a window about everything before `next`.
pub(crate) struct WindowStep {
    pub covered: Vec<Covered>,
    /// The number of candidates below the requested tier.
    pub less_sure: usize,
    pub next: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Follows {
    More,
    Nothing,
}

/// State that one window passes to the next.
#[derive(Default)]
pub(crate) struct Carry {
    open: Option<SecretCandidate>,
    /// Findings shortly before, with spans of the whole text: their markers are context for the next window.
    behind: Vec<SecretCandidate>,
    /// The number of bytes decided so far.
    decided: usize,
    /// Values found so far, also in earlier texts. All their repeats are redacted.
    known: KnownValues,
    scratch: Scratch,
}

/// Scans a whole text and reports the covered spans. Returns the number of findings below the tier.
pub(crate) fn walk(
    searcher: &Searcher,
    text: &[u8],
    at_least: Tier,
    known: &mut KnownValues,
    mut each: impl FnMut(Covered),
) -> usize {
    let mut carry = Carry { known: std::mem::take(known), ..Carry::default() };
    let mut less_sure = 0;
    let mut from: usize = 0;
    loop {
        let base = from.saturating_sub(BEHIND);
        let follows = if text.len() - from > WINDOW { Follows::More } else { Follows::Nothing };
        let hay = text.get(base..text.len().min(from + WINDOW)).unwrap_or_default();
        let step = carry.step(searcher, hay, from - base, follows, at_least);
        for mut covered in step.covered {
            covered.span = base + covered.span.start..base + covered.span.end;
            each(covered);
        }
        less_sure += step.less_sure;
        if follows == Follows::Nothing {
            *known = carry.known;
            return less_sure;
        }
        from = base + step.next;
    }
}

/// Whether a known value occurs outside the covered spans, or whether there are too many values to tell.
pub(crate) fn has_repeats(text: &[u8], covered: &[Covered], at_least: Tier, known: &mut KnownValues) -> bool {
    let mut repeats = false;
    let is_complete = known.find(text, &(0..text.len()), |one| {
        let behind = covered.partition_point(|other| other.span.end <= one.span.start);
        let overlaps = covered.get(behind).is_some_and(|other| other.span.start < one.span.end);
        repeats |= one.tier >= at_least && !overlaps;
    });
    repeats || !is_complete
}

/// Appends `range` of a text with markers for the covered spans.
pub(crate) fn write(
    searcher: &Searcher,
    hay: &[u8],
    range: Range<usize>,
    covered: &[Covered],
    out: &mut Vec<u8>,
) {
    let mut at = range.start;
    for one in covered {
        out.extend_from_slice(hay.get(at..one.span.start).unwrap_or_default());
        if one.part == CoveredPart::Whole
            && let Some(rule) = searcher.rules.get(one.rule)
        {
            out.extend_from_slice(marker(&rule.kind, &rule.provider).as_bytes());
        }
        let secret = hay.get(one.span.clone()).unwrap_or_default();
        line_ends(secret).for_each(|end| out.extend_from_slice(end.as_bytes()));
        at = one.span.end;
    }
    out.extend_from_slice(hay.get(at..range.end).unwrap_or_default());
}

impl Carry {
    /// Decides about the front of `hay` from `from` on; the text before it is context.
    pub(crate) fn step(
        &mut self,
        searcher: &Searcher,
        hay: &[u8],
        from: usize,
        follows: Follows,
        at_least: Tier,
    ) -> WindowStep {
        let base = self.decided - from;
        let mut covered = Vec::new();
        let from = match self.open.take() {
            Some(open) => self.go_on(open, hay, from, &mut covered),
            None => from,
        };
        let limit = match follows {
            Follows::Nothing => hay.len(),
            Follows::More => character_start(hay, hay.len().saturating_sub(OVERLAP)).max(from),
        };
        let mut candidates = searcher.search(hay, &mut self.scratch);
        let begins_here = |found: &&SecretCandidate| (from..limit).contains(&found.span.start);
        let less_sure = candidates.iter().filter(begins_here).filter(|found| found.tier < at_least).count();
        candidates.retain(|found| found.tier >= at_least && found.span.end > from);
        for found in &mut candidates {
            found.span.start = character_start(hay, found.span.start).max(from);
            found.span.end = character_end(hay, found.span.end);
        }
        // Keep candidates behind the boundary that overlap an earlier one: they may be more certain.
        let reached = candidates.iter().filter(|found| found.span.start < limit).map(|found| found.span.end);
        let reached = reached.max().unwrap_or(limit).max(limit);
        candidates.retain(|found| found.span.start < reached);
        let mut decided = self.behind(base);
        decided.extend(merged(candidates));
        let decided = settle(searcher, hay, decided, &(from..limit), at_least, &mut self.scratch);
        let mut decided = self.repeated(searcher, hay, decided, &(from..limit), at_least);
        let next = decided.last().map_or(limit, |last| last.span.end.max(limit));
        self.remember(&decided, base, next);
        decided.retain(|found| found.span.end > from);
        if let Some(last) = decided.last()
            && last.end != MatchEnd::Closed
            && last.span.end >= limit
        {
            self.open = Some(last.clone());
        }
        covered.extend(decided.into_iter().map(|found| Covered {
            rule: found.rule,
            tier: found.tier,
            span: found.span,
            encoding: found.encoding,
            part: CoveredPart::Whole,
        }));
        WindowStep { covered, less_sure, next }
    }

    /// Adds further occurrences of known values. Their markers may reveal more findings, which may be repeated, too.
    fn repeated(
        &mut self,
        searcher: &Searcher,
        hay: &[u8],
        mut decided: Vec<SecretCandidate>,
        scope: &Range<usize>,
        at_least: Tier,
    ) -> Vec<SecretCandidate> {
        for _ in 0..MAX_ROUNDS {
            self.known.learn(hay, decided.iter().filter(|one| one.span.end > scope.start));
            let mut more = Vec::new();
            let is_complete = self.known.find(hay, scope, |one| {
                // A match that overlaps a finding would reveal that it matches a part of it.
                let behind = decided.partition_point(|other| other.span.end <= one.span.start);
                let overlaps = decided.get(behind).is_some_and(|other| other.span.start < one.span.end);
                if one.tier >= at_least && !overlaps {
                    more.push(one);
                }
            });
            if !is_complete {
                break;
            }
            if more.is_empty() {
                return decided;
            }
            decided.extend(more);
            decided = settle(searcher, hay, merged(decided), scope, at_least, &mut self.scratch);
        }
        redact_rest(hay, decided, scope)
    }

    /// Findings shortly before, with spans relative to `base`.
    fn behind(&self, base: usize) -> Vec<SecretCandidate> {
        let shifted =
            |one: &SecretCandidate| one.span.start.saturating_sub(base)..one.span.end.saturating_sub(base);
        self.behind.iter().map(|one| SecretCandidate { span: shifted(one), ..one.clone() }).collect()
    }

    fn remember(&mut self, decided: &[SecretCandidate], base: usize, next: usize) {
        let shifted = |one: &SecretCandidate| base + one.span.start..base + one.span.end;
        let is_near = |one: &&SecretCandidate| one.span.end + BEHIND > next;
        self.behind = decided
            .iter()
            .filter(is_near)
            .map(|one| SecretCandidate { span: shifted(one), ..one.clone() })
            .collect();
        self.decided = base + next;
    }

    fn go_on(&mut self, open: SecretCandidate, hay: &[u8], from: usize, covered: &mut Vec<Covered>) -> usize {
        let rest = hay.get(from..).unwrap_or_default();
        let (length, end) =
            if open.end == MatchEnd::Never { (rest.len(), MatchEnd::Never) } else { body_end(rest) };
        let SecretCandidate { rule, tier, encoding, .. } = open;
        if length > 0 {
            covered.push(Covered {
                rule,
                tier,
                span: from..from + length,
                encoding,
                part: CoveredPart::Rest,
            });
        }
        if let Some(last) = self.behind.last_mut() {
            last.span.end += length;
        }
        if end != MatchEnd::Closed {
            self.open = Some(open);
        }
        from + length
    }
}

/// Merges overlapping candidates under the most certain one, so no part of a secret remains.
pub(crate) fn merged(mut candidates: Vec<SecretCandidate>) -> Vec<SecretCandidate> {
    candidates.sort_by(|a, b| {
        let order = a.span.start.cmp(&b.span.start).then(b.tier.cmp(&a.tier));
        order.then(b.span.end.cmp(&a.span.end)).then(a.rule.cmp(&b.rule))
    });
    let mut merged: Vec<SecretCandidate> = Vec::new();
    for found in candidates {
        match merged.last_mut() {
            Some(last) if found.span.start < last.span.end => {
                // If one of them is still open at the end of the text, the merged one is, too.
                let end = if found.end == MatchEnd::Closed { last.end } else { found.end };
                let span = last.span.start..last.span.end.max(found.span.end);
                if found.tier > last.tier {
                    *last = found;
                }
                (last.span, last.end) = (span, end);
            }
            _ => merged.push(found),
        }
    }
    merged
}

fn character_start(hay: &[u8], at: usize) -> usize {
    let before = hay.get(at.saturating_sub(3)..=at).unwrap_or_default();
    at - before.iter().rev().take_while(|byte| is_inside_character(**byte)).count().min(at).min(3)
}

fn character_end(hay: &[u8], at: usize) -> usize {
    let after = hay.get(at..hay.len().min(at + 3)).unwrap_or_default();
    at + after.iter().take_while(|byte| is_inside_character(**byte)).count()
}

fn is_inside_character(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// The bytes scanned at once; also the most that a stream holds back.
pub(crate) const WINDOW: usize = 512 * 1024;
/// The part that a window leaves to the next; longer than any disguised secret except an open key block.
const OVERLAP: usize = 32 * 1024;
/// How often values are searched that were found behind the markers of others.
const MAX_ROUNDS: usize = 16;
/// Decided text that is scanned again as context.
pub(crate) const BEHIND: usize = 1024;

#[cfg(test)]
mod tests;
