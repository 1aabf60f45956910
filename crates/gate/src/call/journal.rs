//! The journal around a call: one record before it starts and one when it ends, however it ends.

use std::{mem, sync::Arc, time::Instant};

use serde_json::{Map, Value};
use toolgate_secrets::Detector;

mod parts;
mod record;
mod record_writer;
mod redaction;
mod size_limits;

use self::record_writer::{OpeningRecord, RecordWriter};
pub use self::{
    parts::{
        CallerEntry, ClientInfoEntry, DecisionEntry, PreparedJson, RequestEntry, ResponseEntry, RunEntry,
        UsageEntry,
    },
    record::{CallRecord, Purpose},
};
use super::{
    admit::Admitted,
    bind::BoundCall,
    check::Checked,
    decide::Decided,
    execute::Executed,
    filter::Filtered,
    support::{personal::PersonalData, stop::StoppedCall},
};
use crate::{
    gate::{Call, GateInner, OnJournalFailure},
    open_calls::{OpenCalls, STOPPED},
    outcome::{BrokenCall, Outcome},
    reason::{CallStage, Reason},
};

/// The destination of records. An error means that the record was not written.
pub trait CallJournal: Send + Sync {
    fn append(&self, record: &CallRecord) -> Result<(), String>;

    /// Whether appending blocks on the disk. It then runs on the blocking pool.
    fn waits_for_disk(&self) -> bool;
}

/// Records one call. If it is dropped before the end, it records that the caller went away or that the gateway stopped.
pub(crate) struct Trail {
    /// Holds the call open until after the last record, because fields are dropped after `drop`.
    record_writer: RecordWriter,
    last: Instant,
    state: TrailState,
    how: RecordFormat,
    open_calls: Arc<OpenCalls>,
}

/// How values are recorded.
#[derive(Debug)]
pub struct RecordFormat {
    pub journal_detail: JournalDetail,
    pub secrets: Arc<Detector>,
}

enum TrailState {
    Unopened,
    /// The opening record is being written.
    Opening(Arc<OpeningRecord>),
    Open,
    Closed,
}

/// Whether arguments and outputs are recorded masked, for debugging, or only their digests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JournalDetail {
    Digests,
    Everything,
}

impl Trail {
    pub fn new(gate: &GateInner, call: &Call, purpose: Purpose) -> Self {
        let now = Instant::now();
        let mut record = Box::new(CallRecord::opened(call, purpose, gate.on_journal_failure));
        record.debug = gate.journal_detail == JournalDetail::Everything;
        record.redact_opening(&gate.secrets, &gate.clean_texts);
        Self {
            record_writer: RecordWriter {
                journal: Arc::clone(&gate.journal),
                observer: gate.observer.clone(),
                metrics: Arc::clone(&gate.metrics),
                on_failure: gate.on_journal_failure,
                record,
                begun: gate.clock.now(),
                started: now,
                stages: Vec::with_capacity(CallStage::ALL.len()),
                place: None,
            },
            last: now,
            state: TrailState::Unopened,
            how: RecordFormat { journal_detail: gate.journal_detail, secrets: Arc::clone(&gate.secrets) },
            open_calls: Arc::clone(&gate.open_calls),
        }
    }

    /// The digest of the arguments before binding.
    pub fn arguments_digest(&self) -> &str {
        self.record_writer.record.arguments_digest()
    }

    /// The values of personal fields of the arguments, once they are known.
    pub fn personal(&self) -> Option<Arc<PersonalData>> {
        self.record_writer.record.personal.clone()
    }

    pub fn call_id(&self) -> &str {
        &self.record_writer.record.call_id
    }

    /// Writes the opening record. Without it, nothing starts.
    pub async fn open(&mut self) -> Result<(), Outcome> {
        self.record_writer.place = self.open_calls.enter();
        if self.record_writer.place.is_none() {
            self.record_writer.metrics.ended(Some(Reason::JournalFailed));
            return Err(self.broken("the gateway has stopped and its journal is closed".to_owned()));
        }
        let written = if self.record_writer.journal.waits_for_disk() {
            let (opening, record_writer) = (Arc::new(OpeningRecord::default()), self.record_writer.clone());
            // Set before the write: a caller that goes away during the write must leave a closing record.
            self.state = TrailState::Opening(Arc::clone(&opening));
            on_blocking_pool(move || opening.write(&record_writer)).await
        } else {
            self.record_writer.journal.append(&self.record_writer.record)
        };
        match (written, self.record_writer.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => {
                self.state = TrailState::Open;
                Ok(())
            }
            (Err(problem), OnJournalFailure::Refuse) => {
                self.state = TrailState::Unopened;
                self.record_writer.metrics.ended(Some(Reason::JournalFailed));
                Err(self.broken(problem))
            }
        }
    }

    /// Records what a stage found and how long it took.
    pub fn after<T: JournalNote>(&mut self, result: Result<T, StoppedCall>) -> Result<T, StoppedCall> {
        let now = Instant::now();
        self.record_writer.stages.push((T::STAGE, now.duration_since(self.last)));
        self.last = now;
        match &result {
            Ok(ticket) => ticket.note(&mut self.record_writer.record, &self.how),
            Err(stop) => {
                self.record_writer.record.alert(&stop.for_journal.alerts);
                self.record_writer.record.stopped(T::STAGE, stop);
            }
        }
        result
    }

    /// The gateway stops and waits no longer.
    pub fn end_by_shutdown(&mut self) -> StoppedCall {
        self.end_early(Reason::Cancelled, STOPPED)
    }

    /// The caller's deadline has passed.
    pub fn end_by_deadline(&mut self) -> StoppedCall {
        self.end_early(Reason::Timeout, "the caller's deadline for this call has passed")
    }

    /// The gateway's code panicked in a stage.
    pub fn end_by_panic(&mut self) -> StoppedCall {
        self.end_early(Reason::Panicked, PANICKED)
    }

    fn end_early(&mut self, reason: Reason, message: &str) -> StoppedCall {
        self.record_writer.record.cut_off();
        self.record_writer.record.message = Some(message.to_owned());
        StoppedCall::new(reason, message)
    }

    /// Writes the closing record. Without it, nothing is released.
    pub async fn close(&mut self, outcome: Outcome) -> Outcome {
        let (record_writer, reason) = (&mut self.record_writer, outcome.reason());
        record_writer.record.close(&outcome, record_writer.started.elapsed());
        record_writer.record.redact_closing(&self.how.secrets);
        // Set before the write: a second closing record would contradict this one.
        self.state = TrailState::Closed;
        let written = if record_writer.journal.waits_for_disk() {
            let mut record_writer = record_writer.clone();
            // If the caller goes away meanwhile, the observer is notified nevertheless.
            on_blocking_pool(move || record_writer.finish(reason)).await
        } else {
            record_writer.finish(reason)
        };
        match (written, self.record_writer.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => outcome,
            (Err(problem), OnJournalFailure::Refuse) => self.broken(problem),
        }
    }

    fn broken(&self, problem: String) -> Outcome {
        let call_id = self.record_writer.record.call_id.clone();
        Outcome::Broken(BrokenCall { call_id, reason: Reason::JournalFailed, to_operator: problem })
    }
}

/// Runs on the blocking pool, and finishes even if the caller of this function is dropped.
async fn on_blocking_pool(job: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), String> {
    let done = tokio::task::spawn_blocking(job).await;
    done.unwrap_or_else(|_| Err("the journal's thread ended".to_owned()))
}

impl Drop for Trail {
    fn drop(&mut self) {
        let opening = match mem::replace(&mut self.state, TrailState::Closed) {
            TrailState::Unopened | TrailState::Closed => return,
            TrailState::Opening(opening) => Some(opening),
            TrailState::Open => None,
        };
        let record_writer = &mut self.record_writer;
        record_writer.record.cancelled(record_writer.started.elapsed());
        if self.open_calls.are_ended() {
            record_writer.record.message = Some(STOPPED.to_owned());
        }
        record_writer.record.redact_closing(&self.how.secrets);
        match opening {
            Some(opening) => opening.end_dropped(record_writer.clone()),
            // A failure here cannot be reported; the opening record then has no closing record.
            None => drop(record_writer.finish(Some(Reason::Cancelled))),
        }
    }
}

/// The result of a stage, which adds its findings to the record.
pub(crate) trait JournalNote {
    const STAGE: CallStage;

    fn note(&self, record: &mut CallRecord, how: &RecordFormat);
}

impl JournalNote for Admitted {
    const STAGE: CallStage = CallStage::Admit;

    fn note(&self, record: &mut CallRecord, _: &RecordFormat) {
        record.admitted(&self.tool, self.live_config.set.policies_digest());
    }
}

impl JournalNote for BoundCall {
    const STAGE: CallStage = CallStage::Bind;

    fn note(&self, record: &mut CallRecord, how: &RecordFormat) {
        let fields = &self.admitted.tool.spec.governance.pii_fields;
        if !fields.is_empty() {
            record.personal = Some(Arc::new(PersonalData::in_arguments(fields, self.arguments.members())));
        }
        let shown = self.admitted.tool.journal_arguments(self.arguments.members(), how);
        record.bound(&self.arguments_digest, fields, &self.coercions, shown);
    }
}

impl JournalNote for Checked {
    const STAGE: CallStage = CallStage::Check;

    fn note(&self, record: &mut CallRecord, _: &RecordFormat) {
        record.checked(self);
    }
}

impl JournalNote for Decided {
    const STAGE: CallStage = CallStage::Decide;

    fn note(&self, record: &mut CallRecord, _: &RecordFormat) {
        record.decided(self);
    }
}

impl JournalNote for Executed {
    const STAGE: CallStage = CallStage::Execute;

    fn note(&self, record: &mut CallRecord, _: &RecordFormat) {
        record.executed(self);
    }
}

impl JournalNote for Filtered {
    const STAGE: CallStage = CallStage::Filter;

    fn note(&self, record: &mut CallRecord, _: &RecordFormat) {
        record.filtered(self);
    }
}

/// A panic message may contain anything, so it is written to standard error only.
const PANICKED: &str = "the gateway panicked; see its standard error";

pub(crate) type LoggedArguments = Option<Map<String, Value>>;
