//! What is known about a call while it is decided and approved, kept for the record of a call that is dropped meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Decision;
use crate::{approval::ApprovalError, call::support::stop::Answered};

/// Shared between the call and its record. Read once, when the call ends.
#[derive(Debug, Default)]
pub struct DecisionNotes(Mutex<Notes>);

#[derive(Debug, Default)]
pub struct Notes {
    pub decisions: Vec<Decision>,
    /// The question and its state so far.
    pub question: Option<Answered>,
    is_over: bool,
}

impl DecisionNotes {
    pub fn decided(&self, decisions: &[Decision]) {
        self.notes().decisions = decisions.to_vec();
    }

    pub fn asked(&self, question: impl Into<Answered>) {
        self.notes().question = Some(question.into());
    }

    /// Changes the queue on behalf of the call and notes the question. A queue job can outlive its dropped call. The end
    /// of the call therefore waits for a running change (one transaction) and prevents later ones.
    pub fn change<T>(
        &self,
        job: impl FnOnce() -> Result<T, ApprovalError>,
        question: impl FnOnce(&T) -> Option<Answered>,
    ) -> Result<T, ApprovalError> {
        let mut notes = self.notes();
        if notes.is_over {
            return Err(ApprovalError::Unavailable("the call has ended".to_owned()));
        }
        let changed = job()?;
        if let Some(question) = question(&changed) {
            notes.question = Some(question);
        }
        Ok(changed)
    }

    /// Called when the call ends, decided or not.
    pub fn end(&self) -> Notes {
        std::mem::replace(&mut *self.notes(), Notes { is_over: true, ..Notes::default() })
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread of a queue job may start after the call ended.
    #[test]
    fn nothing_is_changed_for_a_call_that_has_ended() {
        let notes = DecisionNotes::default();
        drop(notes.end());
        let changed = notes.change::<()>(|| panic!("the approval is consumed"), |()| None);
        assert!(matches!(changed, Err(ApprovalError::Unavailable(_))));
    }
}
