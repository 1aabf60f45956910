//! The early end of a call: its reason, and the messages for caller and operator.

use std::borrow::Cow;

use toolgate_spec::neutral;

use crate::call::decide::Decision;
use crate::{
    approval::{Approval, ApprovalId, ApprovalState, ConsumedApproval},
    outcome::{BrokenCall, FailedCall, Outcome, PendingCall, RefusedCall},
    ports::RunReport,
    reason::{EndKind, Reason},
};

/// Created by a stage; `into_outcome` turns it into an outcome.
#[derive(Debug)]
pub struct StoppedCall {
    pub reason: Reason,
    pub to_caller: String,
    pub to_operator: String,
    pub remedy: Option<String>,
    /// The question that is pending.
    pub asked: Option<Box<Approval>>,
    /// Whether the client may ask its user that question.
    pub client_may_answer: bool,
    pub for_journal: Box<StopRecord>,
    report: Option<Box<RunReport>>,
}

/// Facts about a stopped call that only the journal records.
#[derive(Debug, Default)]
pub struct StopRecord {
    /// The question that was answered or timed out.
    pub answered: Option<AnsweredQuestion>,
    pub decisions: Vec<Decision>,
    /// The approval that the call consumed before its run failed.
    pub consumed: Option<ConsumedApproval>,
    /// `alertOn` matches, also for a call that is refused.
    pub alerts: Vec<String>,
}

/// The state of a question whose call was not run.
#[derive(Debug)]
pub struct AnsweredQuestion {
    pub id: ApprovalId,
    pub state: ApprovalState,
    pub by: Option<String>,
}

impl From<&Approval> for AnsweredQuestion {
    fn from(approval: &Approval) -> Self {
        Self { id: approval.id.clone(), state: approval.state, by: approval.decided_by.clone() }
    }
}

impl From<&ConsumedApproval> for AnsweredQuestion {
    fn from(spent: &ConsumedApproval) -> Self {
        Self { id: spent.id.clone(), state: ApprovalState::Used, by: Some(spent.decided_by.clone()) }
    }
}

impl StoppedCall {
    /// Caller and operator get the same message. Control characters and invisible characters in it are escaped, because
    /// messages repeat text of callers, tools and paths.
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
    pub fn with_answer(mut self, answered: impl Into<AnsweredQuestion>) -> Self {
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
            return Outcome::Pending(PendingCall {
                call_id,
                prompt: approval.question.text(),
                expires: approval.question.expires,
                approval: approval.id,
                client_may_answer,
                to_caller,
            });
        }
        match reason.end() {
            EndKind::Refused => {
                Outcome::Refused(RefusedCall { call_id, reason, to_caller, to_operator, remedy })
            }
            EndKind::Failed => {
                Outcome::Failed(FailedCall { call_id, reason, to_caller, to_operator, remedy })
            }
            EndKind::Broken => Outcome::Broken(BrokenCall { call_id, reason, to_operator }),
        }
    }
}

fn shown(text: String) -> String {
    match neutral(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown,
    }
}
