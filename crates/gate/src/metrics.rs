//! Counters for calls, reasons, alerts and secrets.

use std::sync::{
    OnceLock,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use toolgate_secrets::{SecretFinding, Tier};

use crate::reason::Reason;

#[derive(Debug, Default)]
pub struct Metrics {
    pub(crate) running: AtomicI64,
    released: AtomicU64,
    alerts: AtomicU64,
    observer_panics: AtomicU64,
    escape_attempts: AtomicU64,
    secrets: [AtomicU64; TIERS.len()],
    ends: ReasonCounters,
    isolation: OnceLock<Vec<IsolationLayer>>,
}

/// An isolation layer between a tool and the host, and how much of it the host enforces.
#[derive(Clone, Debug, PartialEq)]
pub struct IsolationLayer {
    /// The metric label, such as `jail_for_commands`.
    pub name: String,
    /// 1: enforced, 0.5: partly, 0: not.
    pub in_force: f64,
}

#[derive(Debug)]
struct ReasonCounters(Vec<AtomicU64>);

impl Default for ReasonCounters {
    fn default() -> Self {
        Self(Reason::ALL.iter().map(|_| AtomicU64::new(0)).collect())
    }
}

impl Metrics {
    pub(crate) fn ended(&self, reason: Option<Reason>) {
        let counter = match reason {
            None => Some(&self.released),
            Some(reason) => self.ends.0.get(reason as usize),
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn alerted(&self, count: usize) {
        self.alerts.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Matches of `alertOn` texts in arguments and results since the start.
    pub fn alerts(&self) -> u64 {
        self.alerts.load(Ordering::Relaxed)
    }

    pub(crate) fn observer_panicked(&self) {
        self.observer_panics.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls since the start for which the observer panicked.
    pub fn observer_panics(&self) -> u64 {
        self.observer_panics.load(Ordering::Relaxed)
    }

    /// Called by the supervisor of the workers, also while no call is running.
    pub fn escape_attempted(&self) {
        self.escape_attempts.fetch_add(1, Ordering::Relaxed);
    }

    /// Workers that were killed for a forbidden system call since the start.
    pub fn escape_attempts(&self) -> u64 {
        self.escape_attempts.load(Ordering::Relaxed)
    }

    pub(crate) fn found_secrets(&self, findings: &[SecretFinding]) {
        for finding in findings {
            let counters = TIERS.into_iter().zip(&self.secrets);
            for (_, counter) in counters.filter(|(tier, _)| *tier == finding.tier) {
                counter.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Secrets found in results since the start, by tier.
    pub fn secrets(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let counters = TIERS.into_iter().zip(&self.secrets);
        counters.map(|(tier, count)| (tier.name(), count.load(Ordering::Relaxed)))
    }

    /// Called once, at the start.
    pub fn set_isolation(&self, layers: Vec<IsolationLayer>) {
        let _ = self.isolation.set(layers);
    }

    /// Empty if the program that runs the gateway did not report its layers.
    pub fn isolation(&self) -> &[IsolationLayer] {
        self.isolation.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Calls whose tool is running.
    pub fn running(&self) -> i64 {
        self.running.load(Ordering::Relaxed)
    }

    pub fn released(&self) -> u64 {
        self.released.load(Ordering::Relaxed)
    }

    /// Every reason with its count since the start.
    pub fn ends(&self) -> impl Iterator<Item = (Reason, u64)> {
        Reason::ALL.iter().zip(&self.ends.0).map(|(reason, count)| (*reason, count.load(Ordering::Relaxed)))
    }
}

const TIERS: [Tier; 3] = [Tier::Definite, Tier::Probable, Tier::Possible];
