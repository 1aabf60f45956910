//! What is known of a call that is still being decided? Kept beside it: a call that is dropped in the middle tells nothing itself.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Opinion;
use crate::{approval::ApprovalError, call::stop::Answered};

/// Written while people are asked; read once, by the record of a call that was dropped meanwhile.
#[derive(Debug, Default)]
pub struct Hearing(Mutex<Notes>);

#[derive(Debug, Default)]
pub struct Notes {
    pub opinions: Vec<Opinion>,
    /// The question, and what became of it so far.
    pub question: Option<Answered>,
    is_over: bool,
}

impl Hearing {
    pub fn heard(&self, opinions: &[Opinion]) {
        self.notes().opinions = opinions.to_vec();
    }

    pub fn asked(&self, question: impl Into<Answered>) {
        self.notes().question = Some(question.into());
    }

    /// Changes the queue on behalf of the call, and takes down for which question. Jobs of the queue end after the call that began
    /// them was dropped. So its end waits for the change, which takes one transaction, and after it nothing is changed any more.
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

    /// The call has ended, decided or not.
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

    /// The thread of a job may begin when the call is long gone.
    #[test]
    fn nothing_is_changed_for_a_call_that_has_ended() {
        let hearing = Hearing::default();
        drop(hearing.end());
        let changed = hearing.change::<()>(|| panic!("the yes is spent"), |()| None);
        assert!(matches!(changed, Err(ApprovalError::Unavailable(_))));
    }
}
