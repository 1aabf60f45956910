//! Calls the approval queue on the blocking pool, because it is a database, and turns its answers into refusals.

use std::{fmt, sync::Arc, time::SystemTime};

use super::stop::StoppedCall;
use crate::{
    approval::{Approval, ApprovalError, ApprovalId, ApprovalQueue, NewApproval},
    call::decide::DecisionNotes,
    gate::{ApprovalSettings, GateInner},
    reason::Reason,
};

pub async fn on_queue<T, F>(gate: &GateInner, job: F) -> Result<T, StoppedCall>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    on_queue_raw(gate, job).await.map_err(|problem| invalid(&problem))
}

pub async fn on_queue_raw<T, F>(gate: &GateInner, job: F) -> Result<T, ApprovalError>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    let queue = Arc::clone(&gate.queue);
    tokio::task::spawn_blocking(move || job(queue.as_ref()))
        .await
        .unwrap_or_else(|_| Err(ApprovalError::Unavailable("the queue's thread ended".to_owned())))
}

pub fn invalid(problem: &ApprovalError) -> StoppedCall {
    match problem {
        ApprovalError::Unavailable(why) => {
            StoppedCall::new(Reason::ApprovalsUnavailable, "approvals cannot be read")
                .for_operator(why.clone())
        }
        ApprovalError::QueueFull(_) | ApprovalError::DeniedTooOften(_) => queue_full(problem),
        _ => StoppedCall::new(Reason::ApprovalInvalid, format!("{problem}; the call was not run"))
            .with_remedy("make the call again without an answer to get a new question"),
    }
}

/// The call needs an approval, and too many questions are pending. Other calls are not affected.
pub fn queue_full(problem: &dyn fmt::Display) -> StoppedCall {
    StoppedCall::new(Reason::QueueFull, problem.to_string()).with_remedy(
        "call again when some of the waiting calls have been answered: `toolgate approvals watch`",
    )
}

/// Puts the question into the queue, and notes it for the record of the call.
pub async fn open(
    gate: &GateInner,
    notes: &Arc<DecisionNotes>,
    question: NewApproval,
    now: SystemTime,
) -> Result<Approval, StoppedCall> {
    let notes = Arc::clone(notes);
    on_queue(gate, move |queue| notes.change(|| queue.open(question, now), |approval| Some(approval.into())))
        .await
}

/// A client cannot reveal hidden arguments, so a question that hides some goes to the queue only.
pub const fn may_ask_client(settings: ApprovalSettings, question: &NewApproval) -> bool {
    settings.client_may_answer && question.hidden.bytes == 0
}

pub fn pending(approval: Approval, client_may_answer: bool) -> StoppedCall {
    let remedy = how_to_approve(&approval.id);
    let message = format!("a person has to approve this call first; {remedy}, then make the same call again");
    let mut stop = StoppedCall::new(Reason::ApprovalPending, message).with_remedy(remedy);
    stop.asked = Some(Box::new(approval));
    stop.client_may_answer = client_may_answer;
    stop
}

pub fn how_to_approve(id: &ApprovalId) -> String {
    format!("an operator can approve it with `toolgate approvals approve {id}`")
}
