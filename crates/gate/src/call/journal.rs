//! J. What is written down of a call? A record before it starts and one when it ends, however it ends.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Map, Value};
use toolgate_secrets::Detector;

mod blot;
mod record;

pub use self::record::{CallRecord, Purpose, Shared};
use super::{
    admit::Admitted, bind::Bound, check::Checked, decide::Decided, execute::Executed, filter::Filtered,
    personal::Held, stop::Stop,
};
use crate::{
    gate::{Call, Finished, Inner, Observer, OnJournalFailure},
    metrics::Metrics,
    open_calls::{OpenCalls, Place, STOPPED},
    outcome::{Broken, Outcome},
    reason::{Reason, Stage},
};

/// Where records go. An error means that the record is not there.
pub trait Journal: Send + Sync {
    fn append(&self, record: &CallRecord) -> Result<(), String>;

    /// Does appending wait for a disk? Then it is done beside the runtime's own threads.
    fn waits_for_disk(&self) -> bool;
}

/// The way of one call. Dropped in the middle, it writes that the caller went away, or that the gateway stopped.
pub(crate) struct Trail {
    journal: Arc<dyn Journal>,
    observer: Option<Arc<dyn Observer>>,
    metrics: Arc<Metrics>,
    on_failure: OnJournalFailure,
    record: CallRecord,
    begun: SystemTime,
    started: Instant,
    last: Instant,
    stages: Vec<(Stage, Duration)>,
    state: State,
    how: Writing,
    open_calls: Arc<OpenCalls>,
    /// Given back after the last record, for fields are dropped after `drop`.
    place: Option<Arc<Place>>,
}

/// How values are written down.
#[derive(Debug)]
pub struct Writing {
    pub shows: Shows,
    pub secrets: Arc<Detector>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum State {
    Unopened,
    Open,
    Closed,
}

/// Are arguments and outputs written in clear, masked, because the operator is looking for something?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shows {
    Digests,
    Everything,
}

impl Trail {
    pub fn new(gate: &Inner, call: &Call, purpose: Purpose) -> Self {
        let now = Instant::now();
        let mut record = CallRecord::opened(call, purpose, gate.on_journal_failure);
        record.debug = gate.shows == Shows::Everything;
        Self {
            journal: Arc::clone(&gate.journal),
            observer: gate.observer.clone(),
            metrics: Arc::clone(&gate.metrics),
            on_failure: gate.on_journal_failure,
            record,
            begun: gate.clock.now(),
            started: now,
            last: now,
            stages: Vec::with_capacity(Stage::ALL.len()),
            state: State::Unopened,
            how: Writing { shows: gate.shows, secrets: Arc::clone(&gate.secrets) },
            open_calls: Arc::clone(&gate.open_calls),
            place: None,
        }
    }

    /// Of the arguments as they came.
    pub fn arguments_digest(&self) -> &str {
        self.record.arguments_digest()
    }

    pub fn call_id(&self) -> &str {
        &self.record.call_id
    }

    /// Without an opening record nothing starts.
    pub async fn open(&mut self) -> Result<(), Outcome> {
        self.place = self.open_calls.enter();
        if self.place.is_none() {
            self.metrics.ended(Some(Reason::JournalFailed));
            return Err(self.broken("the gateway has stopped and its journal is closed".to_owned()));
        }
        // From here on, for a caller that goes away while the record is being written leaves a record behind.
        self.state = State::Open;
        self.record.blot_opening(&self.how.secrets);
        match (self.write().await, self.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => Ok(()),
            (Err(problem), OnJournalFailure::Refuse) => {
                self.state = State::Unopened;
                self.metrics.ended(Some(Reason::JournalFailed));
                Err(self.broken(problem))
            }
        }
    }

    /// Takes down what a stage found out, and how long it took.
    pub fn after<T: Noted>(&mut self, result: Result<T, Stop>) -> Result<T, Stop> {
        let now = Instant::now();
        self.stages.push((T::STAGE, now.duration_since(self.last)));
        self.last = now;
        match &result {
            Ok(ticket) => ticket.note(&mut self.record, &self.how),
            Err(stop) => {
                self.record.alert(&stop.for_journal.alerts);
                self.record.stopped(T::STAGE, stop);
            }
        }
        result
    }

    /// The gateway stops and waits no longer.
    pub fn cut(&mut self) -> Stop {
        self.record.message = Some(STOPPED.to_owned());
        Stop::new(Reason::Cancelled, STOPPED)
    }

    /// Without a closing record nothing is released.
    pub async fn close(&mut self, outcome: Outcome) -> Outcome {
        self.record.close(&outcome, self.started.elapsed());
        self.record.blot_closing(&self.how.secrets);
        // From here on: the record is on its way, and one more would contradict it.
        self.state = State::Closed;
        let mut written = self.write().await;
        if written.is_err() && self.record.make_slim() {
            // What the tool or the caller made too large or too deep must not cost the record itself.
            written = self.write().await;
        }
        let outcome = match (written, self.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => outcome,
            (Err(problem), OnJournalFailure::Refuse) => self.broken(problem),
        };
        self.tell(outcome.reason());
        outcome
    }

    fn tell(&self, reason: Option<Reason>) {
        self.metrics.ended(reason);
        self.metrics.alerted(self.record.alerts.len());
        if let Some(observer) = &self.observer {
            observer.finished(&Finished {
                record: &self.record,
                reason,
                begun: self.begun,
                duration: self.started.elapsed(),
                stages: &self.stages,
            });
        }
    }

    async fn write(&self) -> Result<(), String> {
        if !self.journal.waits_for_disk() {
            return self.journal.append(&self.record);
        }
        let (journal, record) = (Arc::clone(&self.journal), self.record.clone());
        // Who waits for this may be dropped meanwhile; the call is open until it is written.
        let place = self.place.clone();
        tokio::task::spawn_blocking(move || {
            let written = journal.append(&record);
            drop(place);
            written
        })
        .await
        .unwrap_or_else(|_| Err("the journal's thread ended".to_owned()))
    }

    fn broken(&self, problem: String) -> Outcome {
        let call_id = self.record.call_id.clone();
        Outcome::Broken(Broken { call_id, reason: Reason::JournalFailed, to_operator: problem })
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if self.state == State::Open {
            self.record.cancelled(self.started.elapsed());
            if self.open_calls.are_ended() {
                self.record.message = Some(STOPPED.to_owned());
            }
            self.record.blot_closing(&self.how.secrets);
            if self.journal.append(&self.record).is_err() && self.record.make_slim() {
                // There is nobody left to tell when this fails too; the opening record stays without its pair.
                let _ = self.journal.append(&self.record);
            }
            self.tell(Some(Reason::Cancelled));
        }
    }
}

/// A ticket that tells the journal what its stage found out.
pub(crate) trait Noted {
    const STAGE: Stage;

    fn note(&self, record: &mut CallRecord, how: &Writing);
}

impl Noted for Admitted {
    const STAGE: Stage = Stage::Admit;

    fn note(&self, record: &mut CallRecord, _: &Writing) {
        record.admitted(&self.tool);
    }
}

impl Noted for Bound {
    const STAGE: Stage = Stage::Bind;

    fn note(&self, record: &mut CallRecord, how: &Writing) {
        let fields = &self.admitted.tool.spec.governance.pii_fields;
        if !fields.is_empty() {
            record.personal = Some(Arc::new(Held::in_arguments(fields, &self.arguments)));
        }
        let shown = self.admitted.tool.journal_arguments(&self.arguments, how);
        record.bound(&self.arguments_digest, fields, &self.coercions, shown);
    }
}

impl Noted for Checked {
    const STAGE: Stage = Stage::Check;

    fn note(&self, record: &mut CallRecord, _: &Writing) {
        record.checked(self);
    }
}

impl Noted for Decided {
    const STAGE: Stage = Stage::Decide;

    fn note(&self, record: &mut CallRecord, _: &Writing) {
        record.decided(self);
    }
}

impl Noted for Executed {
    const STAGE: Stage = Stage::Execute;

    fn note(&self, record: &mut CallRecord, _: &Writing) {
        record.ran(&self.report);
        record.alert(&self.alerts);
    }
}

impl Noted for Filtered {
    const STAGE: Stage = Stage::Filter;

    fn note(&self, record: &mut CallRecord, how: &Writing) {
        let shown = self.for_journal(how, record.personal.as_deref());
        record.filtered(self, shown);
    }
}

pub(crate) type Shown = Option<Map<String, Value>>;
