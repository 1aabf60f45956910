//! The outcome of a call: released, pending, refused, failed or broken.

use std::time::SystemTime;

use serde_json::Value;

use crate::{
    approval::ApprovalId,
    reason::{CallStage, Reason, Retry},
};

/// The outcome of a call. Every variant has the call's id, which is also in the journal.
#[must_use]
#[derive(Clone, Debug)]
pub enum Outcome {
    Released(ReleasedCall),
    /// Not run, because a person must approve it first. The same call may be made again.
    Pending(PendingCall),
    Refused(RefusedCall),
    Failed(FailedCall),
    Broken(BrokenCall),
}

impl Outcome {
    pub fn call_id(&self) -> &str {
        match self {
            Self::Released(end) => &end.call_id,
            Self::Pending(end) => &end.call_id,
            Self::Refused(end) => &end.call_id,
            Self::Failed(end) => &end.call_id,
            Self::Broken(end) => &end.call_id,
        }
    }

    /// `None` if a result was released.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Released(_) => None,
            Self::Pending(_) => Some(Reason::ApprovalPending),
            Self::Refused(end) => Some(end.reason),
            Self::Failed(end) => Some(end.reason),
            Self::Broken(end) => Some(end.reason),
        }
    }

    /// Advice for the caller, if there is any that leaks nothing.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Refused(end) => end.remedy.as_deref(),
            Self::Failed(end) => end.remedy.as_deref(),
            Self::Released(_) | Self::Pending(_) | Self::Broken(_) => None,
        }
    }

    pub fn stage(&self) -> Option<CallStage> {
        self.reason().and_then(Reason::stage)
    }
}

/// A result that passed every stage.
#[derive(Clone, Debug)]
pub struct ReleasedCall {
    pub call_id: String,
    /// The filtered result. A tool that returns nothing releases the text `undefined`.
    pub value: Value,
    /// Whether the tool declares an output schema and the filtered value still fits it.
    pub is_structured: bool,
    /// Warnings for the reader of the result.
    pub warnings: Vec<Warning>,
}

/// A problem of a result that was released nevertheless.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// Stable: `secret.probable`, `secret.possible` or `output.unstructured`.
    pub code: &'static str,
    pub message: String,
}

/// The call waits for a person.
#[derive(Clone, Debug)]
pub struct PendingCall {
    pub call_id: String,
    pub approval: ApprovalId,
    /// The approval question; safe to show.
    pub prompt: String,
    pub expires: SystemTime,
    /// Whether the client may ask its user. Otherwise only the queue answers.
    pub client_may_answer: bool,
    pub to_caller: String,
}

/// The gateway refused the call.
#[derive(Clone, Debug)]
pub struct RefusedCall {
    pub call_id: String,
    pub reason: Reason,
    pub to_caller: String,
    pub to_operator: String,
    /// A change that would make the call acceptable, if naming it leaks nothing.
    pub remedy: Option<String>,
}

/// The tool ran and failed, or was stopped.
#[derive(Clone, Debug)]
pub struct FailedCall {
    pub call_id: String,
    pub reason: Reason,
    /// Filtered like any output.
    pub to_caller: String,
    pub to_operator: String,
    /// Written by the gateway, not by the tool.
    pub remedy: Option<String>,
}

/// Internal error of the gateway.
#[derive(Clone, Debug)]
pub struct BrokenCall {
    pub call_id: String,
    pub reason: Reason,
    pub to_operator: String,
}

impl BrokenCall {
    /// The only text that the caller sees.
    pub fn to_caller(&self) -> String {
        format!("the gateway failed to run call `{}`; the operator can look it up by this id", self.call_id)
    }
}

impl RefusedCall {
    pub const fn retry(&self) -> Retry {
        self.reason.retry()
    }
}
