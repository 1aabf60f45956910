//! Searches the redacted text again, until redaction reveals no further secrets.
//!
//! A marker brings text together that the secret kept apart. Secrets that appear in the redacted text are redacted at
//! once, so a second scan finds nothing new.

use std::ops::Range;

use crate::{
    finding::{Encoding, Tier},
    marker::{line_ends, marker},
    rule::MatchEnd,
    searcher::{Scratch, Searcher, SecretCandidate},
    view::TextView,
    window::merged,
};

/// Adds findings around the markers of `decided`. New findings begin within `scope`; earlier decided ones serve as
/// context.
pub(crate) fn settle(
    searcher: &Searcher,
    hay: &[u8],
    decided: Vec<SecretCandidate>,
    scope: &Range<usize>,
    at_least: Tier,
    scratch: &mut Scratch,
) -> Vec<SecretCandidate> {
    let mut newest: Vec<Range<usize>> = decided.iter().map(|one| one.span.clone()).collect();
    let mut text = Settling { searcher, hay, scope, at_least, decided, searched: 0 };
    // Starts of findings for which only the adjacent text was searched.
    let mut since = Vec::new();
    let mut near = NEAR;
    loop {
        let more = text.search_again(&newest, near, scratch);
        if more.is_empty() && near == NEAR {
            return text.decided;
        }
        // An endless chain of findings that reveal each other occurs only in attacks.
        if text.searched > MAX_SEARCHES * hay.len() + FREE_SEARCH_BYTES {
            return redact_rest(hay, text.decided, scope);
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
        // The next of many is usually adjacent. Text farther away is searched once for all of them.
        near = BESIDE;
    }
}

struct Settling<'t> {
    searcher: &'t Searcher,
    hay: &'t [u8],
    scope: &'t Range<usize>,
    at_least: Tier,
    decided: Vec<SecretCandidate>,
    /// The number of bytes searched so far.
    searched: usize,
}

impl Settling<'_> {
    fn search_again(
        &mut self,
        newest: &[Range<usize>],
        near: usize,
        scratch: &mut Scratch,
    ) -> Vec<SecretCandidate> {
        let mut more = Vec::new();
        let mut view = TextView::default();
        for region in neighbourhoods(self.hay, &self.decided, newest, near) {
            render(self.searcher, self.hay, &region, &self.decided, &mut view);
            self.searched += view.text.len();
            for mut found in self.searcher.search(&view.text, scratch) {
                let Some(span) = view.origin(&found.span) else { continue };
                // Cutting the region creates false word boundaries at its edges.
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

    fn add(&mut self, more: Vec<SecretCandidate>) {
        let first = more.iter().map(|one| one.span.start).min().unwrap_or(0);
        // Findings that end before that stay: there may be very many of them, and few new ones each time.
        let mut rest = self.decided.split_off(self.decided.partition_point(|one| one.span.end <= first));
        self.searched += rest.len();
        rest.extend(more);
        self.decided.extend(merged(rest));
    }

    /// The decided findings that contain one of `starts`.
    fn having(&self, mut starts: Vec<usize>) -> Vec<Range<usize>> {
        starts.sort_unstable();
        let spans = starts.iter().filter_map(|start| split(&self.decided, start + 1).0.last());
        let mut spans: Vec<Range<usize>> = spans.map(|one| one.span.clone()).collect();
        spans.dedup();
        spans
    }
}

/// Redacts the rest of the text. Used if searching again would take too long.
pub(crate) fn redact_rest(
    hay: &[u8],
    mut decided: Vec<SecretCandidate>,
    scope: &Range<usize>,
) -> Vec<SecretCandidate> {
    let span = scope.start..hay.len();
    let surest = decided.iter().filter(|one| one.span.end > span.start).max_by_key(|one| one.tier);
    let Some(surest) = surest.cloned() else { return decided };
    decided.retain(|one| one.span.end <= span.start);
    decided.push(SecretCandidate { span, end: MatchEnd::Never, ..surest });
    decided
}

/// The text near the newest findings, with markers in place of decided ones.
fn neighbourhoods(
    hay: &[u8],
    decided: &[SecretCandidate],
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

/// The distance that covers `near` bytes of text, given the positions of `decided`. Never cuts through one.
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

fn render(
    searcher: &Searcher,
    hay: &[u8],
    region: &Range<usize>,
    decided: &[SecretCandidate],
    view: &mut TextView,
) {
    view.clear();
    let mut at = region.start;
    let (_, rest) = split(decided, region.start);
    let (inside, _) = split(rest, region.end);
    for one in inside {
        let Some(rule) = searcher.rules.get(one.rule) else { continue };
        view.keep(hay.get(at..one.span.start).unwrap_or_default(), at);
        let mut mark = marker(&rule.kind, &rule.provider);
        mark.extend(line_ends(hay.get(one.span.clone()).unwrap_or_default()));
        view.replace(&one.span, mark.as_bytes(), Encoding::Plain);
        at = one.span.end;
    }
    view.keep(hay.get(at..region.end).unwrap_or_default(), at);
}

/// Those that begin before `at`, and the others.
fn split(decided: &[SecretCandidate], at: usize) -> (&[SecretCandidate], &[SecretCandidate]) {
    let count = decided.partition_point(|one| one.span.start < at);
    decided.split_at_checked(count).unwrap_or_default()
}

/// The range in which a marker can change findings: context, continued tokens, nearby keywords.
const NEAR: usize = 4096;
/// `[REDACTED:a:b]`, minus a margin.
const SHORTEST_MARK: usize = 12;
/// The usual distance to the next secret that a marker reveals.
const BESIDE: usize = 256;
/// How often a text is searched at most, plus an allowance for short texts. A few markers in a row bring text nearer to
/// a keyword before them.
const MAX_SEARCHES: usize = 32;
const FREE_SEARCH_BYTES: usize = 64 * 1024;
