//! Does the text read differently once its secrets are taken out, so that there are more?
//!
//! A mark brings together what the secret kept apart. Whatever would be found in the redacted text is taken out at once, so that
//! nobody finds more by looking again.

use std::ops::Range;

use crate::{
    finding::{Encoding, Tier},
    join::is_token,
    look::{Candidate, Looker, Scratch},
    marker::{line_ends, marker},
    view::View,
    window::merged,
};

/// Adds what is found around the marks of what was decided. New findings begin within `scope`.
pub(crate) fn settle(
    looker: &Looker,
    hay: &[u8],
    mut decided: Vec<Candidate>,
    scope: &Range<usize>,
    at_least: Tier,
    scratch: &mut Scratch,
) -> Vec<Candidate> {
    let mut newest: Vec<Range<usize>> = decided.iter().map(|one| one.span.clone()).collect();
    for _ in 0..MAX_ROUNDS {
        let more = look_again(looker, hay, &decided, &newest, scope, at_least, scratch);
        if more.is_empty() {
            return decided;
        }
        newest = add(&mut decided, more);
    }
    // One that touches the next and so on, as nobody writes who means well: none of that run is left to be found.
    let mut floor = scope.start;
    for one in &mut decided {
        if newest.binary_search_by_key(&one.span.start, |span| span.start).is_ok() {
            one.span = token_run(hay, &one.span, floor.min(one.span.start));
        }
        floor = one.span.end;
    }
    merged(decided)
}

/// Adds what was found, and tells which of the decided are other than before.
fn add(decided: &mut Vec<Candidate>, more: Vec<Candidate>) -> Vec<Range<usize>> {
    let mut starts: Vec<usize> = more.iter().map(|one| one.span.start).collect();
    starts.sort_unstable();
    decided.extend(more);
    *decided = merged(std::mem::take(decided));
    let is_new = |span: &Range<usize>| {
        let next = starts.partition_point(|start| *start < span.start);
        starts.get(next).is_some_and(|start| *start < span.end)
    };
    decided.iter().map(|one| one.span.clone()).filter(is_new).collect()
}

/// The characters of tokens around `span`, not before `floor`.
fn token_run(hay: &[u8], span: &Range<usize>, floor: usize) -> Range<usize> {
    let before = hay.get(floor..span.start).unwrap_or_default();
    let behind = hay.get(span.end..).unwrap_or_default();
    let before = before.iter().rev().take_while(|byte| is_token(**byte)).count();
    let behind = behind.iter().take_while(|byte| is_token(**byte)).count();
    span.start - before..span.end + behind
}

fn look_again(
    looker: &Looker,
    hay: &[u8],
    decided: &[Candidate],
    newest: &[Range<usize>],
    scope: &Range<usize>,
    at_least: Tier,
    scratch: &mut Scratch,
) -> Vec<Candidate> {
    let mut more = Vec::new();
    let mut view = View::default();
    for region in neighbourhoods(hay, newest) {
        render(looker, hay, &region, decided, &mut view);
        for mut found in looker.look(&view.text, scratch) {
            let Some(span) = view.origin(&found.span) else { continue };
            // At an edge that we cut ourselves words have borders that they do not have.
            let is_cut = (span.start == region.start && region.start > 0)
                || (span.end == region.end && region.end < hay.len());
            let before = decided.partition_point(|one| one.span.start <= span.start);
            let covers = before.checked_sub(1).and_then(|last| decided.get(last));
            let is_covered = covers.is_some_and(|one| span.end <= one.span.end);
            if found.tier >= at_least && scope.contains(&span.start) && !is_cut && !is_covered {
                found.span = span;
                more.push(found);
            }
        }
    }
    more
}

fn neighbourhoods(hay: &[u8], spans: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for span in spans {
        let region = span.start.saturating_sub(NEAR)..hay.len().min(span.end + NEAR);
        match regions.last_mut() {
            Some(last) if region.start <= last.end => last.end = last.end.max(region.end),
            _ => regions.push(region),
        }
    }
    regions
}

fn render(looker: &Looker, hay: &[u8], region: &Range<usize>, decided: &[Candidate], view: &mut View) {
    view.clear();
    let mut at = region.start;
    let inside = decided.iter().filter(|one| region.start <= one.span.start && one.span.end <= region.end);
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

/// As far as a mark can change what is found: context, tokens that go on, words that are near.
const NEAR: usize = 4096;
/// Each round finds something or is the last. A mark brings what is behind it nearer to a word before it, a few of them in turn.
const MAX_ROUNDS: usize = 16;
