//! Records answers and reveals in the journal before they take effect.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};

use serde_json::{Value, json};
use tokio::sync::watch;
use toolgate_config::Config;
use toolgate_gate::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, ApprovalStore, Binding,
    ConsumedApproval, Decider, NewApproval, Trust, text_for_journal,
};
use toolgate_secrets::Detector;
use toolgate_store::StateDb;

use crate::{
    detector::open_detector,
    journal::FileJournal,
    journals::note_command,
    open::{OpenError, open_state},
};

#[cfg(test)]
mod tests;

/// The approval queue for a CLI command. It records in the journal of commands.
pub fn open_queue(config: &Config) -> Result<RecordedQueue, OpenError> {
    let state = open_state(config)?;
    let (config, rules) = (config.clone(), config.clone());
    // Only answers with a note need the detector, so its rules are read then.
    let redact = move |text: &str| -> Result<String, OpenError> {
        Ok(text_for_journal(&*open_detector(&rules)?, text.to_owned()))
    };
    Ok(RecordedQueue::new(state, move |entry| note_command(&config, entry), redact))
}

/// The approval queue of a gateway. It records in the gateway's journal.
pub fn recorded_queue(
    journal: &FileJournal,
    state: &Arc<StateDb>,
    secrets: &Arc<Detector>,
) -> Arc<dyn ApprovalQueue> {
    let (journal, secrets) = (journal.clone(), Arc::clone(secrets));
    let note = move |entry: &Value| -> Result<(), OpenError> { Ok(journal.write(entry)?) };
    let redact = move |text: &str| Ok(text_for_journal(&secrets, text.to_owned()));
    Arc::new(RecordedQueue::new(Arc::clone(state), note, redact))
}

/// The queue of approvals, with a journal record for each decision. Rows are deleted after some weeks; the records stay.
pub struct RecordedQueue {
    queue: Arc<StateDb>,
    note: Box<WriteRecord>,
    redact: Box<RedactText>,
    /// Held while an answer is checked, recorded and stored. Of two answers, only the effective one is recorded.
    deciding: Mutex<()>,
}

type WriteRecord = dyn Fn(&Value) -> Result<(), OpenError> + Send + Sync;
/// Redacts secrets in notes of people.
type RedactText = dyn Fn(&str) -> Result<String, OpenError> + Send + Sync;

impl RecordedQueue {
    pub(crate) fn new(
        queue: Arc<StateDb>,
        note: impl Fn(&Value) -> Result<(), OpenError> + Send + Sync + 'static,
        redact: impl Fn(&str) -> Result<String, OpenError> + Send + Sync + 'static,
    ) -> Self {
        Self { queue, note: Box::new(note), redact: Box::new(redact), deciding: Mutex::new(()) }
    }
}

impl ApprovalStore for RecordedQueue {
    fn open(&self, question: NewApproval, now: SystemTime) -> Result<Approval, ApprovalError> {
        self.queue.open(question, now)
    }

    fn get(&self, id: &ApprovalId, now: SystemTime) -> Result<Approval, ApprovalError> {
        self.queue.get(id, now)
    }

    fn consume(
        &self,
        binding: &Binding,
        id: Option<&ApprovalId>,
        now: SystemTime,
    ) -> Result<Option<ConsumedApproval>, ApprovalError> {
        self.queue.consume(binding, id, now)
    }

    fn is_approved(&self, binding: &Binding, now: SystemTime) -> Result<bool, ApprovalError> {
        self.queue.is_approved(binding, now)
    }

    fn denial(
        &self,
        binding: &Binding,
        conversation: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Approval>, ApprovalError> {
        self.queue.denial(binding, conversation, now)
    }

    fn is_trusted(&self, trust: &Trust, now: SystemTime) -> Result<bool, ApprovalError> {
        self.queue.is_trusted(trust, now)
    }

    fn remember(&self, trust: &Trust) -> Result<(), ApprovalError> {
        self.queue.remember(trust)
    }
}

impl ApprovalQueue for RecordedQueue {
    fn ids_beginning(&self, prefix: &str, limit: usize) -> Result<Vec<ApprovalId>, ApprovalError> {
        self.queue.ids_beginning(prefix, limit)
    }

    fn list(
        &self,
        state: Option<ApprovalState>,
        limit: usize,
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError> {
        self.queue.list(state, limit, now)
    }

    fn list_before(
        &self,
        state: Option<ApprovalState>,
        before: &ApprovalId,
        limit: usize,
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError> {
        self.queue.list_before(state, before, limit, now)
    }

    fn decide(
        &self,
        id: &ApprovalId,
        verdict: ApprovalState,
        by: &Decider<'_>,
        note: Option<&str>,
        now: SystemTime,
    ) -> Result<Approval, ApprovalError> {
        let _one_at_a_time = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self.queue.get(id, now)?;
        let note = match note {
            Some(text) => Some((self.redact)(text).map_err(unavailable)?),
            None => None,
        };
        match asked.check_decision(verdict, by, now) {
            Ok(()) => {
                let remembers = asked.question.remembers.as_ref();
                let remembers = remembers.filter(|_| verdict == ApprovalState::Approved).map(|remembers| {
                    let remembered =
                        json!({ "conversation": remembers.conversation, "until": remembers.until_text() });
                    ("remembered", remembered)
                });
                let more = [("state", verdict.name().into()), ("note", json!(note))];
                let entry = entry("approval.decided", &asked, by, more.into_iter().chain(remembers));
                // Record first: a decision that cannot be recorded is not made.
                (self.note)(&entry).map_err(unavailable)?;
            }
            Err(refusal @ (ApprovalError::OwnCall | ApprovalError::Unrevealed(_))) => {
                let entry = entry("approval.refused", &asked, by, [("why", refusal.to_string().into())]);
                (self.note)(&entry).map_err(unavailable)?;
                return Err(refusal);
            }
            // Not recorded. `decide` below returns the error.
            Err(_) => {}
        }
        self.queue.decide(id, verdict, by, note.as_deref(), now)
    }

    fn reveal(&self, id: &ApprovalId, by: &Decider<'_>, now: SystemTime) -> Result<String, ApprovalError> {
        let _one_at_a_time = self.deciding.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = self.queue.get(id, now)?;
        asked.check_open(by, now)?;
        (self.note)(&entry("approval.revealed", &asked, by, [])).map_err(unavailable)?;
        self.queue.reveal(id, by, now)
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.queue.changes()
    }
}

fn entry(
    kind: &str,
    asked: &Approval,
    by: &Decider<'_>,
    more: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let binding = &asked.question.binding;
    let common = [
        ("kind", kind),
        ("approval", asked.id.as_str()),
        ("by", by.name()),
        ("caller", binding.caller.as_str()),
        ("tool", binding.tool.as_str()),
    ];
    let common = common.into_iter().map(|(name, value)| (name, Value::from(value)));
    common.chain(more).map(|(name, value)| (name.to_owned(), value)).collect()
}

#[expect(clippy::needless_pass_by_value, reason = "passed to `map_err`")]
fn unavailable(error: OpenError) -> ApprovalError {
    ApprovalError::Unavailable(error.to_string())
}

impl fmt::Debug for RecordedQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordedQueue").finish_non_exhaustive()
    }
}
