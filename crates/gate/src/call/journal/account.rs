//! Who writes a call's records and tells of its end, and in which order? Where a record waits for a disk, whoever waits for it
//! may be gone before it is written; what is due then is done all the same, by the thread that writes.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{CallRecord, Journal};
use crate::{
    gate::{Finished, Observer, OnJournalFailure},
    metrics::Metrics,
    open_calls::Place,
    reason::{Reason, Stage},
};

/// All that is known of a call, and who is to know it.
#[derive(Clone)]
pub(super) struct Account {
    pub journal: Arc<dyn Journal>,
    pub observer: Option<Arc<dyn Observer>>,
    pub metrics: Arc<Metrics>,
    pub on_failure: OnJournalFailure,
    /// Boxed, because the account moves several times.
    pub record: Box<CallRecord>,
    pub begun: SystemTime,
    pub started: Instant,
    pub stages: Vec<(Stage, Duration)>,
    /// The call is open as long as anybody still has to write of it.
    pub place: Option<Arc<Place>>,
}

impl Account {
    /// Writes the last record and tells of the end. Says what kept the record from being written.
    pub fn finish(&mut self, reason: Option<Reason>) -> Result<(), String> {
        let alerts = self.record.alerts.len();
        let mut written = self.journal.append(&self.record);
        // What the tool or the caller made too large or too deep must not cost the record itself.
        if written.is_err() && self.record.make_slim() {
            written = self.journal.append(&self.record);
        }
        if written.is_err() {
            let mut least = self.record.clone();
            least.make_least();
            written = self.journal.append(&least);
        }
        let is_refused = written.is_err() && self.on_failure == OnJournalFailure::Refuse;
        self.tell(if is_refused { Some(Reason::JournalFailed) } else { reason }, alerts);
        written
    }

    fn tell(&self, reason: Option<Reason>, alerts: usize) {
        self.metrics.ended(reason);
        self.metrics.alerted(alerts);
        let Some(observer) = &self.observer else { return };
        let finished = Finished {
            record: &self.record,
            reason,
            begun: self.begun,
            duration: self.started.elapsed(),
            stages: &self.stages,
        };
        // The code of whoever embeds the gateway: its panic is no fault of the call or of the journal. The panic hook has told
        // what it was.
        if catch_unwind(AssertUnwindSafe(|| observer.finished(&finished))).is_err() {
            self.metrics.observer_panicked();
        }
    }

    /// The end of a call that nobody waits for any more.
    fn finish_alone(mut self, begun: Begun) {
        match begun {
            // There is nobody left to tell when this fails; the opening record stays without its pair.
            Begun::Yes => drop(self.finish(Some(Reason::Cancelled))),
            Begun::No => self.metrics.ended(Some(Reason::JournalFailed)),
        }
    }
}

/// An opening record on its way to the disk. A call that ends meanwhile leaves its end here, to be written after it.
#[derive(Default)]
pub(super) struct Opening(Mutex<Way>);

#[derive(Default)]
enum Way {
    #[default]
    Writing,
    Ended(Box<Account>),
    Written(Begun),
}

/// Without an opening record nothing has begun, unless the operator chose otherwise, and nothing is closed.
#[derive(Clone, Copy)]
enum Begun {
    Yes,
    No,
}

impl Opening {
    pub fn write(&self, account: &Account) -> Result<(), String> {
        let written = account.journal.append(&account.record);
        let begun = match (&written, account.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => Begun::Yes,
            (Err(_), OnJournalFailure::Refuse) => Begun::No,
        };
        let before = mem::replace(&mut *self.way(), Way::Written(begun));
        if let Way::Ended(account) = before {
            account.finish_alone(begun);
        }
        written
    }

    /// For the end of a call that was dropped before it knew of its opening.
    pub fn leave(&self, account: Account) {
        let mut way = self.way();
        let Way::Written(begun) = *way else {
            *way = Way::Ended(Box::new(account));
            return;
        };
        drop(way);
        account.finish_alone(begun);
    }

    fn way(&self) -> MutexGuard<'_, Way> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
