//! How is a text of any length looked at in bounded memory, with the same result however it arrives?
//!
//! In windows that lie at places which depend on the text alone. A window decides about its front part; its last part is
//! decided about by the next one, which sees it with what follows. Nothing shorter than that overlap can be missed at a border.
//! A key block may be longer: it stays open, and what still looks like it is taken out until it ends. A mark is what it was for the
//! window before, too: what stands behind it reads alike in both.

use std::ops::Range;

use crate::{
    check::body_end,
    finding::{Encoding, Tier},
    known::KnownValues,
    look::{Candidate, Looker, Scratch},
    marker::{line_ends, marker},
    rule::End,
    settle::{given_up, settle},
};

/// Something to take out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Covered {
    pub rule: usize,
    pub tier: Tier,
    pub span: Range<usize>,
    pub encoding: Encoding,
    pub part: Part,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Whole,
    /// Goes on from what the window before covered.
    Rest,
}

/// What a window decided: everything before `next`.
pub(crate) struct Step {
    pub covered: Vec<Covered>,
    /// How many candidates are less sure than what was asked for.
    pub less_sure: usize,
    pub next: usize,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Follows {
    More,
    Nothing,
}

/// What one window leaves to the next.
#[derive(Default)]
pub(crate) struct Carry {
    open: Option<Candidate>,
    /// What was taken out a little before, with spans of the whole text: its marks are what the next one stands behind.
    behind: Vec<Candidate>,
    /// How much of the text was decided about.
    decided: usize,
    /// Values found so far, also in earlier texts. They are redacted wherever they are repeated.
    known: KnownValues,
    scratch: Scratch,
}

/// Looks at a whole text and tells what each window covered, with spans of the text; and how much there is that is less sure.
pub(crate) fn walk(
    looker: &Looker,
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
        let step = carry.step(looker, hay, from - base, follows, at_least);
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

/// Appends `range` of a text without what is covered there.
pub(crate) fn write(
    looker: &Looker,
    hay: &[u8],
    range: Range<usize>,
    covered: &[Covered],
    out: &mut Vec<u8>,
) {
    let mut at = range.start;
    for one in covered {
        out.extend_from_slice(hay.get(at..one.span.start).unwrap_or_default());
        if one.part == Part::Whole
            && let Some(rule) = looker.rules.get(one.rule)
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
    /// Decides about the front of `hay`, from `from` on; what lies before is there for context.
    pub(crate) fn step(
        &mut self,
        looker: &Looker,
        hay: &[u8],
        from: usize,
        follows: Follows,
        at_least: Tier,
    ) -> Step {
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
        let mut candidates = looker.look(hay, &mut self.scratch);
        let begins_here = |found: &&Candidate| (from..limit).contains(&found.span.start);
        let less_sure = candidates.iter().filter(begins_here).filter(|found| found.tier < at_least).count();
        candidates.retain(|found| found.tier >= at_least && found.span.end > from);
        for found in &mut candidates {
            found.span.start = character_start(hay, found.span.start).max(from);
            found.span.end = character_end(hay, found.span.end);
        }
        // What begins behind the border stays where it overlaps one from before it, for it may be the surer of the two.
        let reached = candidates.iter().filter(|found| found.span.start < limit).map(|found| found.span.end);
        let reached = reached.max().unwrap_or(limit).max(limit);
        candidates.retain(|found| found.span.start < reached);
        let mut decided = self.behind(base);
        decided.extend(merged(candidates));
        let decided = settle(looker, hay, decided, &(from..limit), at_least, &mut self.scratch);
        let mut decided = self.repeated(looker, hay, decided, &(from..limit), at_least);
        let next = decided.last().map_or(limit, |last| last.span.end.max(limit));
        self.remember(&decided, base, next);
        decided.retain(|found| found.span.end > from);
        if let Some(last) = decided.last()
            && last.end != End::Closed
            && last.span.end >= limit
        {
            self.open = Some(last.clone());
        }
        covered.extend(decided.into_iter().map(|found| Covered {
            rule: found.rule,
            tier: found.tier,
            span: found.span,
            encoding: found.encoding,
            part: Part::Whole,
        }));
        Step { covered, less_sure, next }
    }

    /// Adds further occurrences of values that were found here or before. Their markers may let more be found, which
    /// may be repeated in its turn.
    fn repeated(
        &mut self,
        looker: &Looker,
        hay: &[u8],
        mut decided: Vec<Candidate>,
        scope: &Range<usize>,
        at_least: Tier,
    ) -> Vec<Candidate> {
        for _ in 0..MOST_ROUNDS {
            self.known.learn(hay, decided.iter().filter(|one| one.span.end > scope.start));
            let mut more = Vec::new();
            let is_complete = self.known.find(hay, scope, |one| {
                // One that overlaps a finding would show, by what disappears beside it, that it matches a part of it.
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
            decided = settle(looker, hay, merged(decided), scope, at_least, &mut self.scratch);
        }
        given_up(hay, decided, scope)
    }

    /// What was taken out a little before, with spans of a text that begins at `base`.
    fn behind(&self, base: usize) -> Vec<Candidate> {
        let place = |one: &Candidate| one.span.start.saturating_sub(base)..one.span.end.saturating_sub(base);
        self.behind.iter().map(|one| Candidate { span: place(one), ..one.clone() }).collect()
    }

    fn remember(&mut self, decided: &[Candidate], base: usize, next: usize) {
        let place = |one: &Candidate| base + one.span.start..base + one.span.end;
        let is_near = |one: &&Candidate| one.span.end + BEHIND > next;
        self.behind =
            decided.iter().filter(is_near).map(|one| Candidate { span: place(one), ..one.clone() }).collect();
        self.decided = base + next;
    }

    fn go_on(&mut self, open: Candidate, hay: &[u8], from: usize, covered: &mut Vec<Covered>) -> usize {
        let rest = hay.get(from..).unwrap_or_default();
        let (length, end) = if open.end == End::Never { (rest.len(), End::Never) } else { body_end(rest) };
        let Candidate { rule, tier, encoding, .. } = open;
        if length > 0 {
            covered.push(Covered { rule, tier, span: from..from + length, encoding, part: Part::Rest });
        }
        if let Some(last) = self.behind.last_mut() {
            last.span.end += length;
        }
        if end != End::Closed {
            self.open = Some(open);
        }
        from + length
    }
}

/// What overlaps becomes one, under the name of the surest: no end of a secret is left standing.
pub(crate) fn merged(mut candidates: Vec<Candidate>) -> Vec<Candidate> {
    candidates.sort_by(|a, b| {
        let order = a.span.start.cmp(&b.span.start).then(b.tier.cmp(&a.tier));
        order.then(b.span.end.cmp(&a.span.end)).then(a.rule.cmp(&b.rule))
    });
    let mut merged: Vec<Candidate> = Vec::new();
    for found in candidates {
        match merged.last_mut() {
            Some(last) if found.span.start < last.span.end => {
                // What has not ended where the text stops goes on, whatever else ends there.
                let end = if found.end == End::Closed { last.end } else { found.end };
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

/// How much is looked at together; also the most that a stream holds back.
pub(crate) const WINDOW: usize = 512 * 1024;
/// What a window leaves to the next; longer than any secret in any disguise but an open key block.
const OVERLAP: usize = 32 * 1024;
/// How often values are searched for that were found behind the markers of others.
const MOST_ROUNDS: usize = 16;
/// What was decided already and is looked at again as context.
pub(crate) const BEHIND: usize = 1024;

#[cfg(test)]
mod tests;
