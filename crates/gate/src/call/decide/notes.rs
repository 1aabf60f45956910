//! Notes about the decision and the approval of a call, for the record of a call that is dropped before the stage ends.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Decision;
use crate::{approval::ApprovalError, call::support::stop::AnsweredQuestion};

/// Shared between the call and its record. Read once, when the call ends.
#[derive(Debug, Default)]
pub struct DecisionNotes(Mutex<NotedDecisions>);

#[derive(Debug, Default)]
pub struct NotedDecisions {
    pub decisions: Vec<Decision>,
    /// The question and its state so far.
    pub question: Option<AnsweredQuestion>,
    is_over: bool,
}

impl DecisionNotes {
    pub fn decided(&self, decisions: &[Decision]) {
        self.notes().decisions = decisions.to_vec();
    }

    pub fn asked(&self, question: impl Into<AnsweredQuestion>) {
        self.notes().question = Some(question.into());
    }

    /// Changes the queue for the call and notes the question. A queue job can outlive its dropped call. The end of the
    /// call therefore waits for a running change (one transaction) and prevents later ones.
    pub fn change<T>(
        &self,
        job: impl FnOnce() -> Result<T, ApprovalError>,
        question: impl FnOnce(&T) -> Option<AnsweredQuestion>,
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
    pub fn end(&self) -> NotedDecisions {
        std::mem::replace(&mut *self.notes(), NotedDecisions { is_over: true, ..NotedDecisions::default() })
    }

    fn notes(&self) -> MutexGuard<'_, NotedDecisions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread of a queue job may start after the call ended.
    #[test]
    fn queue_is_not_changed_after_the_call_ended() {
        let notes = DecisionNotes::default();
        drop(notes.end());
        let changed = notes.change::<()>(|| panic!("the approval is consumed"), |()| None);
        assert!(matches!(changed, Err(ApprovalError::Unavailable(_))));
    }
}
