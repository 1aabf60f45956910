//! Counts sent and dropped spans, and keeps the last failure.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// The state of the export, for operators.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExportReport {
    /// Spans that the collector accepted.
    pub spans_sent: u64,
    /// Spans that were lost, for any cause.
    pub spans_dropped: u64,
    /// Metric exports that the collector accepted.
    pub metrics_sent: u64,
    /// Why the last export failed; cleared by a success.
    pub last_failure: Option<String>,
}

/// Why spans were lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// Calls ended faster than spans were sent.
    QueueFull,
    /// The collector was not reached in time, or rejected the request.
    NotDelivered,
    /// The collector accepted the request but not these spans.
    Rejected,
}

impl Cause {
    pub const ALL: [Self; 3] = [Self::QueueFull, Self::NotDelivered, Self::Rejected];

    /// Stable names: dashboards depend on them.
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

    /// Counts a request with this many spans, of which the collector rejected some.
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

    /// Counts spans in the queue or in flight as dropped when sending is given up.
    pub fn abandon_the_rest(&self) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let settled = load(&self.sent) + load(&self.not_delivered) + load(&self.rejected);
        self.dropped(Cause::NotDelivered, load(&self.queued).saturating_sub(settled));
    }

    pub fn drops(&self, cause: Cause) -> u64 {
        self.counter(cause).load(Ordering::Relaxed)
    }

    pub fn report(&self) -> ExportReport {
        ExportReport {
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
