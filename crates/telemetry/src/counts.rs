//! Counts calls by outcome and duration. Counting happens when a call ends, so a full queue loses nothing.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use toolgate_gate::{IsolationLayer, Purpose, Reason};
use toolgate_policy::RiskLevel;

use crate::summary::CallOutcome;

/// A counter for every possible combination. All labels come from closed enums, so clients cannot add series.
#[derive(Debug)]
pub struct CallCounters {
    calls: Vec<AtomicU64>,
    durations: Vec<Buckets>,
    /// Constant; stored here because it is sent with the counts.
    pub isolation: Vec<IsolationLayer>,
}

#[derive(Debug, Default)]
struct Buckets {
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanoseconds: AtomicU64,
}

/// The number of calls with the same labels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallCount {
    pub purpose: Purpose,
    pub level: Option<RiskLevel>,
    pub reason: Option<Reason>,
    pub count: u64,
}

/// The durations of calls with the same labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Durations {
    pub kind: CallOutcome,
    pub level: Option<RiskLevel>,
    pub counts: Vec<u64>,
    pub seconds: f64,
}

impl CallCounters {
    pub fn new(isolation: Vec<IsolationLayer>) -> Self {
        let calls = PURPOSES.len() * LEVELS.len() * ENDS;
        let durations = CallOutcome::ALL.len() * LEVELS.len();
        Self {
            calls: (0..calls).map(|_| AtomicU64::new(0)).collect(),
            durations: (0..durations).map(|_| Buckets::default()).collect(),
            isolation,
        }
    }

    pub fn ended(&self, purpose: Purpose, level: Option<RiskLevel>, reason: Option<Reason>, took: Duration) {
        let level = LEVELS.iter().position(|known| *known == level).unwrap_or_default();
        let purpose = PURPOSES.iter().position(|known| *known == purpose).unwrap_or_default();
        let end = reason.map_or(0, |reason| reason as usize + 1);
        if let Some(counter) = self.calls.get((purpose * LEVELS.len() + level) * ENDS + end) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let kind = CallOutcome::of(reason) as usize;
        if let Some(buckets) = self.durations.get(kind * LEVELS.len() + level) {
            buckets.add(took);
        }
    }

    /// Only combinations that occurred.
    pub fn calls(&self) -> impl Iterator<Item = CallCount> {
        let combinations = PURPOSES.into_iter().flat_map(|purpose| {
            LEVELS.into_iter().flat_map(move |level| ends().map(move |reason| (purpose, level, reason)))
        });
        combinations
            .zip(&self.calls)
            .map(|((purpose, level, reason), counter)| CallCount {
                purpose,
                level,
                reason,
                count: counter.load(Ordering::Relaxed),
            })
            .filter(|calls| calls.count > 0)
    }

    /// Only combinations that occurred.
    pub fn durations(&self) -> impl Iterator<Item = Durations> {
        let combinations =
            CallOutcome::ALL.into_iter().flat_map(|kind| LEVELS.into_iter().map(move |level| (kind, level)));
        combinations
            .zip(&self.durations)
            .map(|((kind, level), buckets)| buckets.read(kind, level))
            .filter(|durations| durations.counts.iter().any(|count| *count > 0))
    }
}

impl Buckets {
    fn add(&self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        if let Some(counter) = self.counts.get(bucket) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.nanoseconds.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn read(&self, kind: CallOutcome, level: Option<RiskLevel>) -> Durations {
        Durations {
            kind,
            level,
            counts: self.counts.iter().map(|counter| counter.load(Ordering::Relaxed)).collect(),
            seconds: Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed)).as_secs_f64(),
        }
    }
}

/// Success first, then the reasons in the order of `Reason::ALL`.
fn ends() -> impl Iterator<Item = Option<Reason>> {
    std::iter::once(None).chain(Reason::ALL.iter().copied().map(Some))
}

/// Upper bounds in seconds: fine-grained for the gateway's own work, up to the longest request.
pub const BOUNDS: [f64; 16] =
    [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0];

const ENDS: usize = Reason::ALL.len() + 1;
const PURPOSES: [Purpose; 2] = [Purpose::Call, Purpose::LocalPass];

/// `None`: the call named an unknown tool.
const LEVELS: [Option<RiskLevel>; 7] = [
    None,
    Some(RiskLevel::L0),
    Some(RiskLevel::L1),
    Some(RiskLevel::L2),
    Some(RiskLevel::L3),
    Some(RiskLevel::L4),
    Some(RiskLevel::L5),
];

#[cfg(test)]
mod tests;
