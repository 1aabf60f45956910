//! What came of a call: released, pending, refused, failed or broken.

use std::time::SystemTime;

use serde_json::Value;

use crate::{
    approval::ApprovalId,
    reason::{Reason, Retry, Stage},
};

/// The end of a call. Every variant carries the call's id, which is also in the journal.
#[must_use]
#[derive(Clone, Debug)]
pub enum Outcome {
    Released(Released),
    /// Not run: a person has yet to say yes. The same call may be made again.
    Pending(Pending),
    Refused(Refused),
    Failed(Failed),
    Broken(Broken),
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

    /// `None` where a result was released.
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Released(_) => None,
            Self::Pending(_) => Some(Reason::ApprovalPending),
            Self::Refused(end) => Some(end.reason),
            Self::Failed(end) => Some(end.reason),
            Self::Broken(end) => Some(end.reason),
        }
    }

    /// What would help, where somebody knows and may say so.
    pub fn remedy(&self) -> Option<&str> {
        match self {
            Self::Refused(end) => end.remedy.as_deref(),
            Self::Failed(end) => end.remedy.as_deref(),
            Self::Released(_) | Self::Pending(_) | Self::Broken(_) => None,
        }
    }

    pub fn stage(&self) -> Option<Stage> {
        self.reason().and_then(Reason::stage)
    }
}

/// A result that passed every stage.
#[derive(Clone, Debug)]
pub struct Released {
    pub call_id: String,
    /// What the tool returned, filtered. A tool that returned nothing released the text `undefined`.
    pub value: Value,
    /// Does the tool declare an output schema, and does the value still fit it, so that it is structured content?
    pub is_structured: bool,
    /// What its reader should know of it.
    pub warnings: Vec<Warning>,
}

/// Something about a result that did not keep it from being released.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Warning {
    /// Stable: `secret.probable`, `secret.possible` or `output.unstructured`.
    pub code: &'static str,
    pub message: String,
}

/// The call waits for a person.
#[derive(Clone, Debug)]
pub struct Pending {
    pub call_id: String,
    pub approval: ApprovalId,
    /// What the person is asked; safe to show.
    pub prompt: String,
    pub expires: SystemTime,
    /// May the client put the question to its user? Otherwise only the queue answers.
    pub client_may_answer: bool,
    pub to_caller: String,
}

/// We said no.
#[derive(Clone, Debug)]
pub struct Refused {
    pub call_id: String,
    pub reason: Reason,
    pub to_caller: String,
    pub to_operator: String,
    /// What would make the call legal, where saying so leaks nothing.
    pub remedy: Option<String>,
}

/// The tool ran and failed, or was stopped.
#[derive(Clone, Debug)]
pub struct Failed {
    pub call_id: String,
    pub reason: Reason,
    /// Filtered like any output.
    pub to_caller: String,
    pub to_operator: String,
    /// The gateway's own word, not the tool's.
    pub remedy: Option<String>,
}

/// We are ill.
#[derive(Clone, Debug)]
pub struct Broken {
    pub call_id: String,
    pub reason: Reason,
    pub to_operator: String,
}

impl Broken {
    /// All that a caller is told.
    pub fn to_caller(&self) -> String {
        format!(
            "the gateway could not carry out call `{}`; its operator can look it up by this id",
            self.call_id
        )
    }
}

impl Refused {
    pub const fn retry(&self) -> Retry {
        self.reason.retry()
    }
}
