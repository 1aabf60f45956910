//! What became of the spans, and what went wrong last?

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// How sending goes, for an operator who asks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// Spans that the collector has taken.
    pub spans_sent: u64,
    /// Spans that are lost, for whatever cause.
    pub spans_dropped: u64,
    /// Sendings of metrics that the collector has taken.
    pub metrics_sent: u64,
    /// Why the last sending failed; nothing once one has succeeded again.
    pub last_failure: Option<String>,
}

/// Why are spans lost?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// Calls ended faster than spans could be sent.
    QueueFull,
    /// The collector was not reached in time, or had no use for them.
    NotDelivered,
    /// The collector took the request, but not these spans.
    Rejected,
}

impl Cause {
    pub const ALL: [Self; 3] = [Self::QueueFull, Self::NotDelivered, Self::Rejected];

    /// Stable: dashboards depend on these words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::NotDelivered => "not_delivered",
            Self::Rejected => "rejected",
        }
    }
}

#[derive(Debug, Default)]
pub struct Tally {
    queued: AtomicU64,
    sent: AtomicU64,
    queue_full: AtomicU64,
    not_delivered: AtomicU64,
    rejected: AtomicU64,
    metrics_sent: AtomicU64,
    last_failure: Mutex<Option<String>>,
}

impl Tally {
    pub fn queued(&self, spans: u64) {
        self.queued.fetch_add(spans, Ordering::Relaxed);
    }

    /// Of the spans in a request, the collector rejected so many.
    pub fn sent(&self, spans: u64, rejected: u64) {
        let rejected = rejected.min(spans);
        self.sent.fetch_add(spans - rejected, Ordering::Relaxed);
        self.dropped(Cause::Rejected, rejected);
        self.succeeded();
    }

    pub fn metrics_sent(&self) {
        self.metrics_sent.fetch_add(1, Ordering::Relaxed);
        self.succeeded();
    }

    pub fn dropped(&self, cause: Cause, spans: u64) {
        self.counter(cause).fetch_add(spans, Ordering::Relaxed);
    }

    pub fn failed(&self, why: String) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }

    /// What is in the queue or on its way when sending is given up.
    pub fn abandon_the_rest(&self) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let settled = load(&self.sent) + load(&self.not_delivered) + load(&self.rejected);
        self.dropped(Cause::NotDelivered, load(&self.queued).saturating_sub(settled));
    }

    pub fn drops(&self, cause: Cause) -> u64 {
        self.counter(cause).load(Ordering::Relaxed)
    }

    pub fn report(&self) -> Report {
        Report {
            spans_sent: self.sent.load(Ordering::Relaxed),
            spans_dropped: Cause::ALL.into_iter().map(|cause| self.drops(cause)).sum(),
            metrics_sent: self.metrics_sent.load(Ordering::Relaxed),
            last_failure: self.last_failure.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn succeeded(&self) {
        *self.last_failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    const fn counter(&self, cause: Cause) -> &AtomicU64 {
        match cause {
            Cause::QueueFull => &self.queue_full,
            Cause::NotDelivered => &self.not_delivered,
            Cause::Rejected => &self.rejected,
        }
    }
}
