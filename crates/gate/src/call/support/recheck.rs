//! Repeats checks after a call has waited: the token is valid, the tool is live, and its policy and the operator's
//! policies are the same.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use toolgate_policy::Ruling;

use super::stop::StoppedCall;
use crate::{
    call::{Purpose, admit::Admitted, bind::BoundCall},
    gate::{Call, GateInner},
    ports::AuthStatus,
    reason::Reason,
    registry::LiveConfig,
};

/// For a call that is about to run. No policy applies to the draft of a Local Pass.
pub async fn recheck(gate: &GateInner, bound: &BoundCall, has_waited: bool) -> Result<(), StoppedCall> {
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
pub fn denied_by_program(gate: &GateInner, bound: &BoundCall) -> Option<String> {
    let admitted = &bound.admitted;
    match gate.policy.check(&admitted.call.caller, &admitted.tool.wire_name, &bound.arguments) {
        Ruling::Deny { reason } => Some(reason),
        Ruling::Allow => None,
    }
}

pub fn forbidden_by_program(why: &str) -> StoppedCall {
    StoppedCall::new(Reason::PolicyForbids, format!("a policy forbids this call: {why}"))
}

/// Refuses the call if the tool, its policy, the operator's policies or the approval threshold changed since the call
/// arrived.
pub fn is_unchanged(gate: &GateInner, admitted: &Admitted) -> Result<(), StoppedCall> {
    let (then, now) = (&admitted.live_config, gate.live_config());
    if Arc::ptr_eq(then, &now) {
        return Ok(());
    }
    let policies =
        |live_config: &LiveConfig| live_config.set.policies().map(|cedar| cedar.digest().to_owned());
    let is_same_tool = now.set.get(&admitted.tool.wire_name).is_some_and(|tool| {
        tool.digest == admitted.tool.digest && tool.policy_digest == admitted.tool.policy_digest
    });
    let asks_the_same = now.approvals.ask_from == then.approvals.ask_from;
    if is_same_tool && asks_the_same && policies(&now) == policies(then) { Ok(()) } else { Err(changed()) }
}

pub fn changed() -> StoppedCall {
    let message = "the tool or the policies changed while the call waited; it was not run";
    StoppedCall::new(Reason::ToolChanged, message).with_remedy("make the call again")
}

pub async fn still_authenticated(call: &Call) -> Result<(), StoppedCall> {
    match &call.auth_status {
        Some(auth_status) if !is_valid(auth_status).await => Err(lapsed()),
        _ => Ok(()),
    }
}

/// Ends about a second after the caller's token stops being valid. Never ends for a caller without one.
pub async fn until_lapse(auth_status: Option<Arc<dyn AuthStatus>>) {
    let Some(auth_status) = auth_status else { return std::future::pending().await };
    while is_valid(&auth_status).await {
        sleep(BETWEEN_CHECKS).await;
    }
}

pub fn lapsed() -> StoppedCall {
    let message = "your token was revoked or expired after this call started; it was not run";
    StoppedCall::new(Reason::CallerLapsed, message).with_remedy("get a new token, then make the call again")
}

/// The lookup may read a database, so it runs on the blocking pool. A failed lookup counts as invalid.
async fn is_valid(auth_status: &Arc<dyn AuthStatus>) -> bool {
    let auth_status = Arc::clone(auth_status);
    tokio::task::spawn_blocking(move || auth_status.is_valid()).await.unwrap_or(false)
}

const BETWEEN_CHECKS: Duration = Duration::from_secs(1);
