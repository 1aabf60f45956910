//! Overlapping findings, also at window boundaries, and character boundaries.

use super::*;
use crate::detector::Detector;

fn candidate(span: Range<usize>, tier: Tier, rule: usize) -> SecretCandidate {
    SecretCandidate { rule, tier, span, encoding: Encoding::Plain, end: MatchEnd::Closed }
}

#[track_caller]
fn check(candidates: &[(Range<usize>, Tier)], expect: &[(Range<usize>, Tier, usize)]) {
    let candidates =
        candidates.iter().enumerate().map(|(rule, (span, tier))| candidate(span.clone(), *tier, rule));
    let merged = merged(candidates.collect());
    let merged: Vec<_> = merged.into_iter().map(|found| (found.span, found.tier, found.rule)).collect();
    assert_eq!(merged, expect);
}

#[test]
fn overlapping_candidates_merge_under_the_most_certain() {
    check(&[(0..10, Tier::Possible), (5..15, Tier::Definite)], &[(0..15, Tier::Definite, 1)]);
    check(&[(0..10, Tier::Definite), (2..5, Tier::Probable)], &[(0..10, Tier::Definite, 0)]);
    check(
        &[(5..9, Tier::Probable), (0..6, Tier::Probable), (8..12, Tier::Possible)],
        &[(0..12, Tier::Probable, 1)],
    );
}

#[test]
fn adjacent_candidates_stay_separate() {
    check(
        &[(0..5, Tier::Definite), (5..9, Tier::Definite)],
        &[(0..5, Tier::Definite, 0), (5..9, Tier::Definite, 1)],
    );
}

/// The token alone would begin in the next window, and its context in this one: it must be found all the same.
#[test]
fn overlap_at_a_window_boundary_keeps_the_most_certain() {
    let detector = Detector::shipped().unwrap();
    let token = format!("{}_{}", "ghp", "zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17");
    let command = format!("\ncurl -u a:{token} https://x.example/\n");
    let filler = "lorem ipsum dolor\n".repeat(40_000);
    let limit = WINDOW - OVERLAP;
    for at in limit - 2..limit + 62 {
        let before = &filler[..at - command.find(&token).unwrap()];
        let text = format!("{before}{command}{}", &filler[..2 * OVERLAP]);
        let found = detector.scan(&text);
        let [one] = &found[..] else { panic!("at {at}: {found:?}") };
        assert_eq!((one.tier, &*one.provider), (Tier::Definite, "github"), "at {at}");
        assert_eq!(one.span.end, at + token.len(), "at {at}");
    }
}

#[test]
fn spans_grow_to_whole_characters() {
    let text = "a–b".as_bytes();
    assert_eq!([0, 1, 2, 3, 4, 5].map(|at| character_start(text, at)), [0, 1, 1, 1, 4, 5]);
    assert_eq!([0, 1, 2, 3, 4, 5].map(|at| character_end(text, at)), [0, 1, 4, 4, 4, 5]);
    assert_eq!(character_start(&[0x80; 8], 6), 3, "bytes that are no text do not run away");
}
