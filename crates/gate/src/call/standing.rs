//! Checks again, after a call has waited, what was true when it came: the token is valid, the tool is live, its policy and
//! the operator's policies are the same.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{Purpose, admit::Admitted, check::Checked, decide, stop::Stop};
use crate::{
    gate::{Call, Inner},
    ports::Standing,
    reason::Reason,
    registry::InForce,
};

/// For a call that is about to run. A Local Pass runs a draft, which no policy is about.
pub async fn recheck(gate: &Inner, checked: &Checked, has_waited: bool) -> Result<(), Stop> {
    let admitted = &checked.bound.admitted;
    if admitted.purpose == Purpose::LocalPass {
        return Ok(());
    }
    is_unchanged(gate, admitted)?;
    if has_waited {
        decide::policy_in_code_permits(gate, checked)?;
        still_let_in(&admitted.call).await?;
    }
    Ok(())
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

pub async fn still_let_in(call: &Call) -> Result<(), Stop> {
    match &call.standing {
        Some(standing) if !holds(standing).await => Err(lapsed()),
        _ => Ok(()),
    }
}

/// Ends within a second or so after the caller's token stops being valid. Never ends for a caller without one.
pub async fn until_lapse(standing: Option<Arc<dyn Standing>>) {
    let Some(standing) = standing else { return std::future::pending().await };
    while holds(&standing).await {
        sleep(BETWEEN_LOOKS).await;
    }
}

pub fn lapsed() -> Stop {
    let message = "you are no longer let in as you were when the call was made; it was not run";
    Stop::new(Reason::CallerLapsed, message)
        .with_remedy("make the call again; where a token was revoked or has expired, get a new one first")
}

/// Whoever knows may have to ask a database: beside the runtime's own threads. No answer is a no.
async fn holds(standing: &Arc<dyn Standing>) -> bool {
    let standing = Arc::clone(standing);
    tokio::task::spawn_blocking(move || standing.holds()).await.unwrap_or(false)
}

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
