//! J. What is written down of a call? A record before it starts and one when it ends, however it ends.

use std::{mem, sync::Arc, time::Instant};

use serde_json::{Map, Value};
use toolgate_secrets::Detector;

mod account;
mod blot;
mod parts;
mod record;
mod slim;

use self::account::{Account, Opening};
pub use self::{
    parts::{
        CallerEntry, ClientInfoEntry, DecisionEntry, RequestEntry, ResponseEntry, RunEntry, Shared,
        UsageEntry,
    },
    record::{CallRecord, Purpose},
};
use super::{
    admit::Admitted,
    bind::Bound,
    check::Checked,
    decide::Decided,
    execute::Executed,
    filter::Filtered,
    support::{personal::Held, stop::Stop},
};
use crate::{
    gate::{Call, Inner, OnJournalFailure},
    open_calls::{OpenCalls, STOPPED},
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
    /// Its place is given back after the last record, for fields are dropped after `drop`.
    account: Account,
    last: Instant,
    state: State,
    how: Writing,
    open_calls: Arc<OpenCalls>,
}

/// How values are written down.
#[derive(Debug)]
pub struct Writing {
    pub shows: Shows,
    pub secrets: Arc<Detector>,
}

enum State {
    Unopened,
    /// Its opening record waits for the disk.
    Opening(Arc<Opening>),
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
        let mut record = Box::new(CallRecord::opened(call, purpose, gate.on_journal_failure));
        record.debug = gate.shows == Shows::Everything;
        record.blot_opening(&gate.secrets, &gate.clean_texts);
        Self {
            account: Account {
                journal: Arc::clone(&gate.journal),
                observer: gate.observer.clone(),
                metrics: Arc::clone(&gate.metrics),
                on_failure: gate.on_journal_failure,
                record,
                begun: gate.clock.now(),
                started: now,
                stages: Vec::with_capacity(Stage::ALL.len()),
                place: None,
            },
            last: now,
            state: State::Unopened,
            how: Writing { shows: gate.shows, secrets: Arc::clone(&gate.secrets) },
            open_calls: Arc::clone(&gate.open_calls),
        }
    }

    /// Of the arguments as they came.
    pub fn arguments_digest(&self) -> &str {
        self.account.record.arguments_digest()
    }

    /// What personal fields of the arguments hold, once they are known.
    pub fn personal(&self) -> Option<Arc<Held>> {
        self.account.record.personal.clone()
    }

    pub fn call_id(&self) -> &str {
        &self.account.record.call_id
    }

    /// Without an opening record nothing starts.
    pub async fn open(&mut self) -> Result<(), Outcome> {
        self.account.place = self.open_calls.enter();
        if self.account.place.is_none() {
            self.account.metrics.ended(Some(Reason::JournalFailed));
            return Err(self.broken("the gateway has stopped and its journal is closed".to_owned()));
        }
        let written = if self.account.journal.waits_for_disk() {
            let (opening, account) = (Arc::new(Opening::default()), self.account.clone());
            // From here on, for a caller that goes away while the record is being written leaves a record behind.
            self.state = State::Opening(Arc::clone(&opening));
            aside(move || opening.write(&account)).await
        } else {
            self.account.journal.append(&self.account.record)
        };
        match (written, self.account.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => {
                self.state = State::Open;
                Ok(())
            }
            (Err(problem), OnJournalFailure::Refuse) => {
                self.state = State::Unopened;
                self.account.metrics.ended(Some(Reason::JournalFailed));
                Err(self.broken(problem))
            }
        }
    }

    /// Takes down what a stage found out, and how long it took.
    pub fn after<T: Noted>(&mut self, result: Result<T, Stop>) -> Result<T, Stop> {
        let now = Instant::now();
        self.account.stages.push((T::STAGE, now.duration_since(self.last)));
        self.last = now;
        match &result {
            Ok(ticket) => ticket.note(&mut self.account.record, &self.how),
            Err(stop) => {
                self.account.record.alert(&stop.for_journal.alerts);
                self.account.record.stopped(T::STAGE, stop);
            }
        }
        result
    }

    /// The gateway stops and waits no longer.
    pub fn cut(&mut self) -> Stop {
        self.broken_off(Reason::Cancelled, STOPPED)
    }

    /// The caller's own deadline has passed.
    pub fn late(&mut self) -> Stop {
        self.broken_off(Reason::Timeout, "the caller's deadline for this call has passed")
    }

    /// Our own code panicked in the middle of a stage. That is nobody's doing but ours.
    pub fn panicked(&mut self) -> Stop {
        self.broken_off(Reason::Panicked, PANICKED)
    }

    fn broken_off(&mut self, reason: Reason, message: &str) -> Stop {
        self.account.record.cut_off();
        self.account.record.message = Some(message.to_owned());
        Stop::new(reason, message)
    }

    /// Without a closing record nothing is released.
    pub async fn close(&mut self, outcome: Outcome) -> Outcome {
        let (account, reason) = (&mut self.account, outcome.reason());
        account.record.close(&outcome, account.started.elapsed());
        account.record.blot_closing(&self.how.secrets);
        // From here on: the record is on its way, and one more would contradict it.
        self.state = State::Closed;
        let written = if account.journal.waits_for_disk() {
            let mut account = account.clone();
            // A caller that goes away meanwhile keeps nobody from being told.
            aside(move || account.finish(reason)).await
        } else {
            account.finish(reason)
        };
        match (written, self.account.on_failure) {
            (Ok(()), _) | (Err(_), OnJournalFailure::Continue) => outcome,
            (Err(problem), OnJournalFailure::Refuse) => self.broken(problem),
        }
    }

    fn broken(&self, problem: String) -> Outcome {
        let call_id = self.account.record.call_id.clone();
        Outcome::Broken(Broken { call_id, reason: Reason::JournalFailed, to_operator: problem })
    }
}

/// Beside the runtime's own threads. Who waits for this may be dropped meanwhile; it is done all the same.
async fn aside(job: impl FnOnce() -> Result<(), String> + Send + 'static) -> Result<(), String> {
    let done = tokio::task::spawn_blocking(job).await;
    done.unwrap_or_else(|_| Err("the journal's thread ended".to_owned()))
}

impl Drop for Trail {
    fn drop(&mut self) {
        let opening = match mem::replace(&mut self.state, State::Closed) {
            State::Unopened | State::Closed => return,
            State::Opening(opening) => Some(opening),
            State::Open => None,
        };
        let account = &mut self.account;
        account.record.cancelled(account.started.elapsed());
        if self.open_calls.are_ended() {
            account.record.message = Some(STOPPED.to_owned());
        }
        account.record.blot_closing(&self.how.secrets);
        match opening {
            Some(opening) => opening.leave(account.clone()),
            // There is nobody left to tell when this fails; the opening record stays without its pair.
            None => drop(account.finish(Some(Reason::Cancelled))),
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
        record.admitted(&self.tool, self.in_force.set.policies_digest());
    }
}

impl Noted for Bound {
    const STAGE: Stage = Stage::Bind;

    fn note(&self, record: &mut CallRecord, how: &Writing) {
        let fields = &self.admitted.tool.spec.governance.pii_fields;
        if !fields.is_empty() {
            record.personal = Some(Arc::new(Held::in_arguments(fields, self.arguments.members())));
        }
        let shown = self.admitted.tool.journal_arguments(self.arguments.members(), how);
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
        record.executed(self);
    }
}

impl Noted for Filtered {
    const STAGE: Stage = Stage::Filter;

    fn note(&self, record: &mut CallRecord, _: &Writing) {
        record.filtered(self);
    }
}

/// What was said in panicking may be anything; it stays on standard error.
const PANICKED: &str = "the gateway's own code panicked; its standard error says where";

pub(crate) type Shown = Option<Map<String, Value>>;
