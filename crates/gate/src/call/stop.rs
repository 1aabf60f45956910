//! Where a call stops short: the reason, and what is said to whom.

use crate::{
    approval::Approval,
    outcome::{Broken, Failed, Outcome, Pending, Refused},
    ports::RunReport,
    reason::{End, Reason},
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
    /// Texts about which somebody wants to be told, also of a call that goes no further.
    pub alerts: Vec<String>,
    report: Option<Box<RunReport>>,
}

impl Stop {
    /// Caller and operator are told the same.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            reason,
            to_operator: message.clone(),
            to_caller: message,
            remedy: None,
            asked: None,
            alerts: Vec::new(),
            report: None,
        }
    }

    #[must_use]
    pub fn for_operator(mut self, message: impl Into<String>) -> Self {
        self.to_operator = message.into();
        self
    }

    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    #[must_use]
    pub fn with_alerts(mut self, alerts: Vec<String>) -> Self {
        self.alerts = alerts;
        self
    }

    #[must_use]
    pub fn with_report(mut self, report: RunReport) -> Self {
        self.report = Some(Box::new(report));
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
        let Self { reason, to_caller, to_operator, remedy, asked, .. } = self;
        if let Some(approval) = asked {
            let (prompt, expires) = (approval.question.prompt, approval.question.expires);
            return Outcome::Pending(Pending { call_id, approval: approval.id, prompt, expires, to_caller });
        }
        match reason.end() {
            End::Refused => Outcome::Refused(Refused { call_id, reason, to_caller, to_operator, remedy }),
            End::Failed => Outcome::Failed(Failed { call_id, reason, to_caller, to_operator }),
            End::Broken => Outcome::Broken(Broken { call_id, reason, to_operator }),
        }
    }
}
