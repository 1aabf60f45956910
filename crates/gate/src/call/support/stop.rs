//! Where a call stops short: the reason, and what is said to whom.

use std::borrow::Cow;

use toolgate_spec::neutral;

use crate::call::decide::Decision;
use crate::{
    approval::{Approval, ApprovalId, ApprovalState, ConsumedApproval},
    outcome::{Broken, Failed, Outcome, Pending, Refused},
    ports::RunReport,
    reason::{EndKind, Reason},
};

/// Made by a stage, turned into an outcome in one place.
#[derive(Debug)]
pub struct Stop {
    pub reason: Reason,
    pub to_caller: String,
    pub to_operator: String,
    pub remedy: Option<String>,
    /// The question that waits for an answer.
    pub asked: Option<Box<Approval>>,
    /// May the client put that question to its user?
    pub client_may_answer: bool,
    pub for_journal: Box<ForJournal>,
    report: Option<Box<RunReport>>,
}

/// What nobody but the journal is told of a call that stopped.
#[derive(Debug, Default)]
pub struct ForJournal {
    /// The question that was answered or ran out of time.
    pub answered: Option<Answered>,
    pub decisions: Vec<Decision>,
    /// The approval that the call consumed before its run failed.
    pub consumed: Option<ConsumedApproval>,
    /// Texts about which somebody wants to be told, also of a call that goes no further.
    pub alerts: Vec<String>,
}

/// What became of a question whose call was not run all the same.
#[derive(Debug)]
pub struct Answered {
    pub id: ApprovalId,
    pub state: ApprovalState,
    pub by: Option<String>,
}

impl From<&Approval> for Answered {
    fn from(approval: &Approval) -> Self {
        Self { id: approval.id.clone(), state: approval.state, by: approval.decided_by.clone() }
    }
}

impl From<&ConsumedApproval> for Answered {
    fn from(spent: &ConsumedApproval) -> Self {
        Self { id: spent.id.clone(), state: ApprovalState::Used, by: Some(spent.decided_by.clone()) }
    }
}

impl Stop {
    /// Caller and operator are told the same. Whatever a message repeats of callers, tools and paths, what acts on its reader or
    /// is not seen is shown by its number.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let message = shown(message.into());
        Self {
            reason,
            to_operator: message.clone(),
            to_caller: message,
            remedy: None,
            asked: None,
            client_may_answer: false,
            for_journal: Box::default(),
            report: None,
        }
    }

    #[must_use]
    pub fn for_operator(mut self, message: impl Into<String>) -> Self {
        self.to_operator = shown(message.into());
        self
    }

    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(shown(remedy.into()));
        self
    }

    #[must_use]
    pub fn with_alerts(mut self, alerts: Vec<String>) -> Self {
        self.for_journal.alerts = alerts;
        self
    }

    #[must_use]
    pub fn with_report(mut self, report: RunReport) -> Self {
        self.report = Some(Box::new(report));
        self
    }

    #[must_use]
    pub fn with_answer(mut self, answered: impl Into<Answered>) -> Self {
        self.for_journal.answered = Some(answered.into());
        self
    }

    #[must_use]
    pub fn with_decisions(mut self, decisions: Vec<Decision>) -> Self {
        self.for_journal.decisions = decisions;
        self
    }

    #[must_use]
    pub fn with_consumed(mut self, consumed: Option<ConsumedApproval>) -> Self {
        self.for_journal.consumed = consumed;
        self
    }

    pub fn report(&self) -> Option<&RunReport> {
        self.report.as_deref()
    }

    pub fn take_report(&mut self) -> Option<RunReport> {
        self.report.take().map(|report| *report)
    }

    pub fn into_outcome(self, call_id: &str) -> Outcome {
        let call_id = call_id.to_owned();
        let Self { reason, to_caller, to_operator, remedy, asked, client_may_answer, .. } = self;
        if let Some(approval) = asked {
            return Outcome::Pending(Pending {
                call_id,
                prompt: approval.question.text(),
                expires: approval.question.expires,
                approval: approval.id,
                client_may_answer,
                to_caller,
            });
        }
        match reason.end() {
            EndKind::Refused => Outcome::Refused(Refused { call_id, reason, to_caller, to_operator, remedy }),
            EndKind::Failed => Outcome::Failed(Failed { call_id, reason, to_caller, to_operator, remedy }),
            EndKind::Broken => Outcome::Broken(Broken { call_id, reason, to_operator }),
        }
    }
}

fn shown(text: String) -> String {
    match neutral(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown,
    }
}
