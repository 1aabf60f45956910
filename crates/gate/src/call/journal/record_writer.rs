//! Writes the records of a call and reports its end. Writing can outlast the call: the writing thread then does what is
//! left to do.

use std::{
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use super::{CallJournal, CallRecord};
use crate::{
    gate::{Finished, Observer, OnJournalFailure},
    metrics::Metrics,
    open_calls::OpenCall,
    reason::{CallStage, Reason},
};

/// The record of a call, and everyone who is notified of its end.
#[derive(Clone)]
pub(super) struct RecordWriter {
    pub journal: Arc<dyn CallJournal>,
    pub observer: Option<Arc<dyn Observer>>,
    pub metrics: Arc<Metrics>,
    pub on_failure: OnJournalFailure,
    /// Boxed, because the writer moves several times.
    pub record: Box<CallRecord>,
    pub begun: SystemTime,
    pub started: Instant,
    pub stages: Vec<(CallStage, Duration)>,
    /// The call counts as open until the last record is written.
    pub place: Option<Arc<OpenCall>>,
}

impl RecordWriter {
    /// Writes the closing record and reports the end. Returns the error if the record could not be written.
    pub fn finish(&mut self, reason: Option<Reason>) -> Result<(), String> {
        let alerts = self.record.alerts.len();
        let mut written = self.journal.append(&self.record);
        // A tool or caller that sends too much must not prevent the record.
        if written.is_err() && self.record.drop_large_parts() {
            written = self.journal.append(&self.record);
        }
        if written.is_err() {
            let mut least = self.record.clone();
            least.keep_only_end();
            written = self.journal.append(&least);
        }
        let is_refused = written.is_err() && self.on_failure == OnJournalFailure::Refuse;
        self.report_end(if is_refused { Some(Reason::JournalFailed) } else { reason }, alerts);
        written
    }

    fn report_end(&self, reason: Option<Reason>, alerts: usize) {
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
        // Observers are code of the embedding program: a panic there affects neither the call nor the journal. The
        // panic hook has already printed it.
        if catch_unwind(AssertUnwindSafe(|| observer.finished(&finished))).is_err() {
            self.metrics.observer_panicked();
        }
    }

    /// Ends a call that was dropped.
    fn finish_dropped(mut self, begun: OpeningResult) {
        match begun {
            // A failure here cannot be reported; the opening record then has no closing record.
            OpeningResult::Opened => drop(self.finish(Some(Reason::Cancelled))),
            OpeningResult::NotOpened => self.metrics.ended(Some(Reason::JournalFailed)),
        }
    }
}

/// An opening record that is being written. A call that ends meanwhile leaves its closing record here, to be written
/// next.
#[derive(Default)]
pub(super) struct OpeningRecord(Mutex<OpeningState>);

#[derive(Default)]
enum OpeningState {
    #[default]
    Writing,
    Ended(Box<RecordWriter>),
    Written(OpeningResult),
}

/// Whether the call counts as opened. Without an opening record nothing starts and nothing is closed, unless the
/// operator configured otherwise.
#[derive(Clone, Copy)]
enum OpeningResult {
    Opened,
    NotOpened,
}

impl OpeningRecord {
    pub fn write(&self, record_writer: &RecordWriter) -> Result<(), String> {
        let written = record_writer.journal.append(&record_writer.record);
        let begun = match (&written, record_writer.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => OpeningResult::Opened,
            (Err(_), OnJournalFailure::Refuse) => OpeningResult::NotOpened,
        };
        let before = mem::replace(&mut *self.state(), OpeningState::Written(begun));
        if let OpeningState::Ended(record_writer) = before {
            record_writer.finish_dropped(begun);
        }
        written
    }

    /// Ends a call that was dropped while its opening record was being written.
    pub fn end_dropped(&self, record_writer: RecordWriter) {
        let mut state = self.state();
        let OpeningState::Written(begun) = *state else {
            *state = OpeningState::Ended(Box::new(record_writer));
            return;
        };
        drop(state);
        record_writer.finish_dropped(begun);
    }

    fn state(&self) -> MutexGuard<'_, OpeningState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
