use super::*;

#[test]
fn every_combination_has_its_own_counter() {
    let counts = CallCounters::new(Vec::new());
    let mut expected = Vec::new();
    let mut count = 0;
    for purpose in PURPOSES {
        for level in LEVELS {
            for reason in ends() {
                count += 1;
                expected.push(CallCount { purpose, level, reason, count });
                for _ in 0..count {
                    counts.ended(purpose, level, reason, Duration::from_millis(1));
                }
            }
        }
    }
    assert_eq!(counts.calls().collect::<Vec<_>>(), expected);
    let timed: u64 = counts.durations().flat_map(|durations| durations.counts).sum();
    assert_eq!(timed, (1..=count).sum::<u64>());
}

#[test]
fn unused_combinations_are_not_reported() {
    let counts = CallCounters::new(Vec::new());
    assert_eq!((counts.calls().count(), counts.durations().count()), (0, 0));
}

#[test]
fn bucket_bound_is_inclusive() {
    let counts = CallCounters::new(Vec::new());
    for milliseconds in [0, 1, 2, 3, 300_000, 300_001] {
        counts.ended(
            Purpose::Call,
            Some(RiskLevel::L2),
            Some(Reason::Timeout),
            Duration::from_millis(milliseconds),
        );
    }
    let found: Vec<Durations> = counts.durations().collect();
    let mut buckets = vec![0; BOUNDS.len() + 1];
    (buckets[0], buckets[1], buckets[2], buckets[15], buckets[16]) = (2, 1, 1, 1, 1);
    assert_eq!(
        found,
        [Durations {
            kind: CallOutcome::Failed,
            level: Some(RiskLevel::L2),
            counts: buckets,
            seconds: 600.007
        }]
    );
}

#[test]
fn bucket_bounds_increase() {
    assert!(BOUNDS.is_sorted_by(|left, right| left < right));
}
