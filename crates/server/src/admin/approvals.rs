//! Lists, reveals and decides questions about calls.

use std::{sync::Arc, time::SystemTime};

use axum::{
    Json,
    body::Bytes,
    extract::{Path, Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use serde_json::{Value, json};
use toolgate_gate::{Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, Decider};

use super::{Admin, AdminError, AdminIdentity};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalFilter {
    state: Option<String>,
    limit: Option<usize>,
    /// The last one of the page before.
    before: Option<String>,
}

/// Newest first.
pub async fn list(
    _: AdminIdentity,
    State(admin): State<Admin>,
    filter: Result<Query<ApprovalFilter>, QueryRejection>,
) -> Result<Json<Value>, AdminError> {
    let Query(filter) = filter?;
    let state = filter.state.as_deref().map(|name| ApprovalState::from_name(name).ok_or_else(no_such_state));
    let state = state.transpose()?;
    let limit = filter.limit.unwrap_or(USUAL_PAGE).clamp(1, LARGEST_PAGE);
    let before = filter.before.as_deref().map(parsed).transpose()?;
    // One more entry than shown, to detect a next page.
    let job = move |queue: &dyn ApprovalQueue| match &before {
        Some(before) => queue.list_before(state, before, limit + 1, SystemTime::now()),
        None => queue.list(state, limit + 1, SystemTime::now()),
    };
    let found = on_queue(&admin, job).await?;
    let page: Vec<Value> = found.iter().take(limit).map(shown).collect();
    let next = if found.len() > limit { found.get(limit - 1).map(|last| last.id.as_str()) } else { None };
    Ok(Json(json!({ "approvals": page, "next": next })))
}

pub async fn show(
    _: AdminIdentity,
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<Value>, AdminError> {
    let found = on_queue(&admin, move |queue| queue.get(&queue.find_id(&id)?, SystemTime::now())).await?;
    Ok(Json(shown(&found)))
}

/// Returns all arguments, including those hidden in the question. Recorded, and required before approving such a question.
pub async fn reveal(
    by: AdminIdentity,
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<Value>, AdminError> {
    let may_approve_own = admin.gate.approval_settings().self_approval;
    let reveal = move |queue: &dyn ApprovalQueue| {
        let id = queue.find_id(&id)?;
        let by = Decider::Admin { subject: &by.name, may_approve_own };
        let whole = queue.reveal(&id, &by, SystemTime::now())?;
        Ok((whole, queue.get(&id, SystemTime::now())?))
    };
    let (whole, mut found) = on_queue(&admin, reveal).await?;
    found.question.arguments = Some(whole);
    Ok(Json(shown(&found)))
}

pub async fn approve(
    by: AdminIdentity,
    State(admin): State<Admin>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, AdminError> {
    decide(&admin, by, &id, &body, ApprovalState::Approved).await
}

pub async fn deny(
    by: AdminIdentity,
    State(admin): State<Admin>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, AdminError> {
    decide(&admin, by, &id, &body, ApprovalState::Denied).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionBody {
    note: Option<String>,
}

async fn decide(
    admin: &Admin,
    by: AdminIdentity,
    id: &str,
    body: &[u8],
    state: ApprovalState,
) -> Result<Json<Value>, AdminError> {
    let id = id.to_owned();
    let DecisionBody { note } = if body.is_empty() {
        DecisionBody::default()
    } else {
        let wanted = |_| AdminError::bad_request("the body must be empty or `{\"note\": \"…\"}`");
        serde_json::from_slice(body).map_err(wanted)?
    };
    if note.as_ref().is_some_and(|note| note.len() > LONGEST_NOTE) {
        return Err(AdminError::bad_request(format!("a note has at most {LONGEST_NOTE} bytes")));
    }
    let may_approve_own = admin.gate.approval_settings().self_approval;
    let decide = move |queue: &dyn ApprovalQueue| {
        let id = queue.find_id(&id)?;
        let by = Decider::Admin { subject: &by.name, may_approve_own };
        queue.decide(&id, state, &by, note.as_deref(), SystemTime::now())
    };
    Ok(Json(shown(&on_queue(admin, decide).await?)))
}

fn parsed(id: &str) -> Result<ApprovalId, AdminError> {
    // A malformed id is reported as unknown.
    ApprovalId::parse(id).ok_or_else(|| AdminError::from(ApprovalError::Unknown))
}

fn no_such_state() -> AdminError {
    let names: Vec<&str> = ApprovalState::ALL.iter().map(|state| state.name()).collect();
    AdminError::bad_request(format!("`state` is one of `{}`", names.join("`, `")))
}

/// Runs on the blocking pool, because the queue is a database.
async fn on_queue<T, F>(admin: &Admin, job: F) -> Result<T, AdminError>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    let queue = Arc::clone(admin.gate.queue());
    let done = tokio::task::spawn_blocking(move || job(queue.as_ref())).await;
    let done =
        done.unwrap_or_else(|_| Err(ApprovalError::Unavailable("the queue's thread ended".to_owned())));
    done.map_err(AdminError::from)
}

fn shown(approval: &Approval) -> Value {
    let question = &approval.question;
    json!({
        "id": approval.id.as_str(),
        "state": approval.state.name(),
        "caller": question.binding.caller,
        "tool": question.binding.tool,
        "toolDigest": question.binding.tool_digest,
        "argumentsDigest": question.binding.arguments_digest,
        "policyDigest": question.binding.policy_digest,
        "prompt": question.prompt,
        "arguments": question.arguments,
        "hiddenBytes": question.hidden.bytes,
        "revealedTo": approval.revealed_to,
        "remembered": question.remembers.as_ref().map(|remembers| {
            json!({ "conversation": remembers.conversation, "until": time(remembers.until) })
        }),
        "because": question.because,
        "risk": question.risk,
        "created": time(question.created),
        "expires": time(question.expires),
        "decidedBy": approval.decided_by,
        "decidedAt": approval.decided_at.map(time),
        "note": approval.note,
    })
}

/// RFC 3339 with milliseconds. `None` if the time is out of range.
fn time(at: SystemTime) -> Option<String> {
    let at = jiff::Timestamp::try_from(at).ok()?;
    let at = at.round(jiff::Unit::Millisecond).ok()?;
    Some(format!("{at:.3}"))
}

const USUAL_PAGE: usize = 50;
const LARGEST_PAGE: usize = 500;
const LONGEST_NOTE: usize = 1_000;
