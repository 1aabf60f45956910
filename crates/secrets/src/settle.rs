//! Does the text read differently once its secrets are taken out, so that there are more?
//!
//! A mark brings together what the secret kept apart. Whatever would be found in the redacted text is taken out at once, so that
//! nobody finds more by looking again.

use std::ops::Range;

use crate::{
    finding::{Encoding, Tier},
    look::{Candidate, Looker, Scratch},
    marker::{line_ends, marker},
    rule::End,
    view::View,
    window::merged,
};

/// Adds what is found around the marks of what was decided. New findings begin within `scope`; what was decided before it is there
/// for what its marks bring together.
pub(crate) fn settle(
    looker: &Looker,
    hay: &[u8],
    decided: Vec<Candidate>,
    scope: &Range<usize>,
    at_least: Tier,
    scratch: &mut Scratch,
) -> Vec<Candidate> {
    let mut newest: Vec<Range<usize>> = decided.iter().map(|one| one.span.clone()).collect();
    let mut text = Settling { looker, hay, scope, at_least, decided, spent: 0 };
    // Where those begin that nothing but what touches them was looked at for.
    let mut since = Vec::new();
    let mut near = NEAR;
    loop {
        let more = text.look_again(&newest, near, scratch);
        if more.is_empty() && near == NEAR {
            return text.decided;
        }
        // One that lays the next one open and so on, as nobody writes who means well.
        if text.spent > MOST_LOOKS * hay.len() + FREE_LOOKS {
            return given_up(hay, text.decided, scope);
        }
        if more.is_empty() {
            newest = text.having(std::mem::take(&mut since));
            near = NEAR;
            continue;
        }
        let starts: Vec<usize> = more.iter().map(|one| one.span.start).collect();
        since.extend_from_slice(&starts);
        text.add(more);
        newest = text.having(starts);
        // The next of many stands right beside it; what is farther away is looked at once for all of them.
        near = BESIDE;
    }
}

struct Settling<'t> {
    looker: &'t Looker,
    hay: &'t [u8],
    scope: &'t Range<usize>,
    at_least: Tier,
    decided: Vec<Candidate>,
    /// How much was gone through so far.
    spent: usize,
}

impl Settling<'_> {
    fn look_again(&mut self, newest: &[Range<usize>], near: usize, scratch: &mut Scratch) -> Vec<Candidate> {
        let mut more = Vec::new();
        let mut view = View::default();
        for region in neighbourhoods(self.hay, &self.decided, newest, near) {
            render(self.looker, self.hay, &region, &self.decided, &mut view);
            self.spent += view.text.len();
            for mut found in self.looker.look(&view.text, scratch) {
                let Some(span) = view.origin(&found.span) else { continue };
                // At an edge that we cut ourselves words have borders that they do not have.
                let is_cut = (span.start == region.start && region.start > 0)
                    || (span.end == region.end && region.end < self.hay.len());
                let span = span.start.max(self.scope.start)..span.end;
                let is_here = !span.is_empty() && span.start < self.scope.end;
                if found.tier >= self.at_least && is_here && !is_cut && !self.is_covered(&span) {
                    found.span = span;
                    more.push(found);
                }
            }
        }
        more
    }

    fn is_covered(&self, span: &Range<usize>) -> bool {
        let (before, _) = split(&self.decided, span.start + 1);
        before.last().is_some_and(|one| span.end <= one.span.end)
    }

    fn add(&mut self, more: Vec<Candidate>) {
        let first = more.iter().map(|one| one.span.start).min().unwrap_or(0);
        // What ends before that stays as it is: there may be very many, and few that are new each time.
        let mut rest = self.decided.split_off(self.decided.partition_point(|one| one.span.end <= first));
        self.spent += rest.len();
        rest.extend(more);
        self.decided.extend(merged(rest));
    }

    /// Those of the decided that have something at one of `starts`.
    fn having(&self, mut starts: Vec<usize>) -> Vec<Range<usize>> {
        starts.sort_unstable();
        let spans = starts.iter().filter_map(|start| split(&self.decided, start + 1).0.last());
        let mut spans: Vec<Range<usize>> = spans.map(|one| one.span.clone()).collect();
        spans.dedup();
        spans
    }
}

/// Covers the rest of the text. Used when searching again would take too long.
pub(crate) fn given_up(hay: &[u8], mut decided: Vec<Candidate>, scope: &Range<usize>) -> Vec<Candidate> {
    let span = scope.start..hay.len();
    let surest = decided.iter().filter(|one| one.span.end > span.start).max_by_key(|one| one.tier);
    let Some(surest) = surest.cloned() else { return decided };
    decided.retain(|one| one.span.end <= span.start);
    decided.push(Candidate { span, end: End::Never, ..surest });
    decided
}

/// What is near to the newest once marks stand in place of what was decided.
fn neighbourhoods(
    hay: &[u8],
    decided: &[Candidate],
    newest: &[Range<usize>],
    near: usize,
) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for span in newest {
        let (before, rest) = split(decided, span.start);
        let (_, behind) = split(rest, span.end);
        let before = before.iter().rev().map(|one| span.start - one.span.end..span.start - one.span.start);
        let behind = behind.iter().map(|one| one.span.start - span.end..one.span.end - span.end);
        let region =
            span.start.saturating_sub(reach(before, near))..hay.len().min(span.end + reach(behind, near));
        match regions.last_mut() {
            Some(last) if region.start <= last.end => last.end = last.end.max(region.end),
            _ => regions.push(region),
        }
    }
    regions
}

/// How far it is to what is `near`, where `decided` stand at such distances. None of them is cut.
fn reach(decided: impl Iterator<Item = Range<usize>>, near: usize) -> usize {
    let (mut room, mut reached) = (near, 0);
    for one in decided {
        let between = one.start - reached;
        if room <= between {
            break;
        }
        room = (room - between).saturating_sub(SHORTEST_MARK);
        reached = one.end;
    }
    reached + room
}

fn render(looker: &Looker, hay: &[u8], region: &Range<usize>, decided: &[Candidate], view: &mut View) {
    view.clear();
    let mut at = region.start;
    let (_, rest) = split(decided, region.start);
    let (inside, _) = split(rest, region.end);
    for one in inside {
        let Some(rule) = looker.rules.get(one.rule) else { continue };
        view.keep(hay.get(at..one.span.start).unwrap_or_default(), at);
        let mut mark = marker(&rule.kind, &rule.provider);
        mark.extend(line_ends(hay.get(one.span.clone()).unwrap_or_default()));
        view.replace(&one.span, mark.as_bytes(), Encoding::Plain);
        at = one.span.end;
    }
    view.keep(hay.get(at..region.end).unwrap_or_default(), at);
}

/// Those that begin before `at`, and those that do not.
fn split(decided: &[Candidate], at: usize) -> (&[Candidate], &[Candidate]) {
    let count = decided.partition_point(|one| one.span.start < at);
    decided.split_at_checked(count).unwrap_or_default()
}

/// As far as a mark can change what is found: context, tokens that go on, words that are near.
const NEAR: usize = 4096;
/// `[REDACTED:a:b]`, and a little less.
const SHORTEST_MARK: usize = 12;
/// As far as the next one is that a mark lays open, nearly always.
const BESIDE: usize = 256;
/// How often a text is gone through at most, with a little for short ones. A mark brings what is behind it nearer to a word before
/// it, a few of them in turn.
const MOST_LOOKS: usize = 32;
const FREE_LOOKS: usize = 64 * 1024;
