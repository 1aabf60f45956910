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

use super::{Admin, AdminIdentity, Problem};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    state: Option<String>,
    limit: Option<usize>,
    /// The last one of the page before.
    before: Option<String>,
}

/// Newest first.
pub async fn list(
    _: AdminIdentity,
    State(admin): State<Admin>,
    filter: Result<Query<Filter>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let Query(filter) = filter?;
    let state = filter.state.as_deref().map(|name| ApprovalState::from_name(name).ok_or_else(no_such_state));
    let state = state.transpose()?;
    let limit = filter.limit.unwrap_or(USUAL_PAGE).clamp(1, LARGEST_PAGE);
    let before = filter.before.as_deref().map(parsed).transpose()?;
    // One more than is shown tells whether there are more.
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
) -> Result<Json<Value>, Problem> {
    let found = on_queue(&admin, move |queue| queue.get(&queue.find_id(&id)?, SystemTime::now())).await?;
    Ok(Json(shown(&found)))
}

/// All arguments, also those that the question hides. Recorded, and the precondition of approving such a question.
pub async fn reveal(
    by: AdminIdentity,
    State(admin): State<Admin>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
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
) -> Result<Json<Value>, Problem> {
    decide(&admin, by, &id, &body, ApprovalState::Approved).await
}

pub async fn deny(
    by: AdminIdentity,
    State(admin): State<Admin>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    decide(&admin, by, &id, &body, ApprovalState::Denied).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Decision {
    note: Option<String>,
}

async fn decide(
    admin: &Admin,
    by: AdminIdentity,
    id: &str,
    body: &[u8],
    state: ApprovalState,
) -> Result<Json<Value>, Problem> {
    let id = id.to_owned();
    let Decision { note } = if body.is_empty() {
        Decision::default()
    } else {
        let wanted = |_| Problem::bad_request("the body is neither empty nor `{\"note\": \"…\"}`");
        serde_json::from_slice(body).map_err(wanted)?
    };
    if note.as_ref().is_some_and(|note| note.len() > LONGEST_NOTE) {
        return Err(Problem::bad_request(format!("a note has at most {LONGEST_NOTE} bytes")));
    }
    let may_approve_own = admin.gate.approval_settings().self_approval;
    let decide = move |queue: &dyn ApprovalQueue| {
        let id = queue.find_id(&id)?;
        let by = Decider::Admin { subject: &by.name, may_approve_own };
        queue.decide(&id, state, &by, note.as_deref(), SystemTime::now())
    };
    Ok(Json(shown(&on_queue(admin, decide).await?)))
}

fn parsed(id: &str) -> Result<ApprovalId, Problem> {
    // What cannot be an id is not there either.
    ApprovalId::parse(id).ok_or_else(|| Problem::from(ApprovalError::Unknown))
}

fn no_such_state() -> Problem {
    let names: Vec<&str> = ApprovalState::ALL.iter().map(|state| state.name()).collect();
    Problem::bad_request(format!("`state` is one of `{}`", names.join("`, `")))
}

/// The queue is a database: it is asked beside the runtime's own threads.
async fn on_queue<T, F>(admin: &Admin, job: F) -> Result<T, Problem>
where
    T: Send + 'static,
    F: FnOnce(&dyn ApprovalQueue) -> Result<T, ApprovalError> + Send + 'static,
{
    let queue = Arc::clone(admin.gate.queue());
    let done = tokio::task::spawn_blocking(move || job(queue.as_ref())).await;
    let done =
        done.unwrap_or_else(|_| Err(ApprovalError::Unavailable("the queue's thread ended".to_owned())));
    done.map_err(Problem::from)
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

/// As RFC 3339, to the millisecond. `null` for a time that no calendar has.
fn time(at: SystemTime) -> Option<String> {
    let at = jiff::Timestamp::try_from(at).ok()?;
    let at = at.round(jiff::Unit::Millisecond).ok()?;
    Some(format!("{at:.3}"))
}

const USUAL_PAGE: usize = 50;
const LARGEST_PAGE: usize = 500;
const LONGEST_NOTE: usize = 1_000;
