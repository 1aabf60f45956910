//! Checks again, after a call has waited, what was true when it came: the token is valid, the tool is live, its policy and
//! the operator's policies are the same.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use toolgate_policy::Ruling;

use super::stop::Stop;
use crate::{
    call::{Purpose, admit::Admitted, bind::Bound},
    gate::{Call, Inner},
    ports::AuthStatus,
    reason::Reason,
    registry::InForce,
};

/// For a call that is about to run. No policy applies to the draft of a Local Pass.
pub async fn recheck(gate: &Inner, bound: &Bound, has_waited: bool) -> Result<(), Stop> {
    let admitted = &bound.admitted;
    if admitted.purpose == Purpose::LocalPass {
        return Ok(());
    }
    is_unchanged(gate, admitted)?;
    if has_waited {
        if let Some(why) = denied_by_program(gate, bound) {
            return Err(forbidden_by_program(&why));
        }
        still_authenticated(&admitted.call).await?;
    }
    Ok(())
}

/// Why the policy of an embedding program denies the call. Its answer may change while the call waits.
pub fn denied_by_program(gate: &Inner, bound: &Bound) -> Option<String> {
    let admitted = &bound.admitted;
    match gate.policy.check(&admitted.call.caller, &admitted.tool.wire_name, &bound.arguments) {
        Ruling::Deny { reason } => Some(reason),
        Ruling::Allow => None,
    }
}

pub fn forbidden_by_program(why: &str) -> Stop {
    Stop::new(Reason::PolicyForbids, format!("a policy forbids this call: {why}"))
}

/// Refuses the call if the tool, its policy, the operator's policies or the default for approvals changed since it came.
pub fn is_unchanged(gate: &Inner, admitted: &Admitted) -> Result<(), Stop> {
    let (then, now) = (&admitted.in_force, gate.in_force());
    if Arc::ptr_eq(then, &now) {
        return Ok(());
    }
    let policies = |in_force: &InForce| in_force.set.policies().map(|cedar| cedar.digest().to_owned());
    let is_same_tool = now.set.get(&admitted.tool.wire_name).is_some_and(|tool| {
        tool.digest == admitted.tool.digest && tool.policy_digest == admitted.tool.policy_digest
    });
    let asks_the_same = now.approvals.ask_from == then.approvals.ask_from;
    if is_same_tool && asks_the_same && policies(&now) == policies(then) { Ok(()) } else { Err(changed()) }
}

pub fn changed() -> Stop {
    let message = "the tool or the policies changed while the call waited; it was not run";
    Stop::new(Reason::ToolChanged, message).with_remedy("make the call again")
}

pub async fn still_authenticated(call: &Call) -> Result<(), Stop> {
    match &call.auth_status {
        Some(auth_status) if !is_valid(auth_status).await => Err(lapsed()),
        _ => Ok(()),
    }
}

/// Ends within a second or so after the caller's token stops being valid. Never ends for a caller without one.
pub async fn until_lapse(auth_status: Option<Arc<dyn AuthStatus>>) {
    let Some(auth_status) = auth_status else { return std::future::pending().await };
    while is_valid(&auth_status).await {
        sleep(BETWEEN_CHECKS).await;
    }
}

pub fn lapsed() -> Stop {
    let message = "your token was revoked or expired after this call started; it was not run";
    Stop::new(Reason::CallerLapsed, message).with_remedy("get a new token, then make the call again")
}

/// The lookup may read a database, so it runs on the blocking pool. No answer means no.
async fn is_valid(auth_status: &Arc<dyn AuthStatus>) -> bool {
    let auth_status = Arc::clone(auth_status);
    tokio::task::spawn_blocking(move || auth_status.is_valid()).await.unwrap_or(false)
}

const BETWEEN_CHECKS: Duration = Duration::from_secs(1);
