//! Calls the approval queue on the blocking pool, because it is a database, and turns its errors into refusals.

use std::{fmt, sync::Arc};

use super::stop::Stop;
use crate::{
    approval::{ApprovalError, ApprovalQueue},
    gate::Inner,
    reason::Reason,
};

pub async fn on_queue<T, F>(gate: &Inner, job: F) -> Result<T, Stop>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    on_queue_raw(gate, job).await.map_err(|problem| invalid(&problem))
}

pub async fn on_queue_raw<T, F>(gate: &Inner, job: F) -> Result<T, ApprovalError>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    let queue = Arc::clone(&gate.queue);
    tokio::task::spawn_blocking(move || job(queue.as_ref()))
        .await
        .unwrap_or_else(|_| Err(ApprovalError::Unavailable("the queue's thread ended".to_owned())))
}

pub fn invalid(problem: &ApprovalError) -> Stop {
    match problem {
        ApprovalError::Unavailable(why) => {
            Stop::new(Reason::ApprovalsUnavailable, "approvals cannot be read").for_operator(why.clone())
        }
        ApprovalError::QueueFull(_) | ApprovalError::DeniedTooOften(_) => queue_full(problem),
        _ => Stop::new(Reason::ApprovalInvalid, format!("{problem}; the call was not run"))
            .with_remedy("make the call again without an answer, to be asked again"),
    }
}

/// The call needs a person, and too many questions wait. Calls that need none are not affected.
pub fn queue_full(problem: &dyn fmt::Display) -> Stop {
    Stop::new(Reason::QueueFull, problem.to_string()).with_remedy(
        "call again when some of the waiting calls have been answered: `toolgate approvals watch`",
    )
}
