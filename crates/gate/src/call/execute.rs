//! Stage E: reserves a run slot, checks again what may have changed, consumes the approval and runs the tool.
//!
//! The approval is consumed after the slot is reserved. Otherwise a busy gateway could waste an approval.

mod approval;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, timeout_at};
use toolgate_policy::OutputPolicy;

use super::{
    Purpose,
    bind::BoundCall,
    check::Checked,
    decide::{Consent, Decided},
    support::{console, disk, personal, recheck, secrets, stop::StoppedCall},
};
use crate::{
    approval::ConsumedApproval,
    gate::GateInner,
    limiter::Slot,
    live::LiveTool,
    ports::{RunFailure, RunReport, RunRequest, StopFlag, Surveyed, Touch},
    reason::Reason,
};

/// A call whose tool ran and returned something.
#[derive(Debug)]
pub struct Executed {
    pub bound: BoundCall,
    /// The approval that this call consumed.
    pub approval: Option<ConsumedApproval>,
    pub report: RunReport,
    /// `alertOn` texts found on the tool's console.
    pub alerts: Vec<String>,
    _sealed: (),
}

pub async fn execute(gate: &GateInner, decided: Decided) -> Result<Executed, StoppedCall> {
    let Decided {
        checked: Checked { bound, touches, approved_secrets, call, notes, unreported, .. },
        consent,
        ..
    } = decided;
    let ready = match reserve(gate, &bound, call).await {
        Ok(reserved) => check_again(gate, &bound, &touches, &consent, reserved).await,
        Err(stop) => Err(stop),
    };
    let Reserved { call, slot } = match ready {
        Ok(reserved) => reserved,
        Err(stop) => return Err(approval::with_state(gate, &consent, stop).await),
    };
    let consumed = approval::consume(gate, &bound, &notes, consent).await?;
    let request = RunRequest {
        arguments: bound.arguments.members(),
        approved_secrets: &approved_secrets,
        unreported: &unreported,
        caller: &bound.admitted.call.caller.subject,
        purpose: bound.admitted.purpose,
        disk_checks: &gate.disk_checks,
    };
    let running = RunningGauge::new(gate);
    let report = call.run(request).await;
    drop((running, slot));
    finish(gate, bound, consumed, report)
}

/// A call with everything it needs to run.
struct Reserved {
    call: Box<dyn Surveyed>,
    slot: RunSlot,
}

/// The right to run one call.
struct RunSlot {
    _slot: Slot,
    has_waited: bool,
}

/// Waits for a run slot and for what the handler needs, such as a worker.
async fn reserve(
    gate: &GateInner,
    bound: &BoundCall,
    mut call: Box<dyn Surveyed>,
) -> Result<Reserved, StoppedCall> {
    let admitted = &bound.admitted;
    let begun = Instant::now();
    let due = begun + gate.limiter.wait_timeout();
    let slot = gate.limiter.enter(&admitted.call.caller.quota()).await;
    let slot =
        slot.map_err(|busy| StoppedCall::new(Reason::Busy, busy.to_string()).with_remedy(CALL_AGAIN))?;
    match admitted.purpose {
        Purpose::Call => {
            let reserved = timeout_at(due, call.reserve(&admitted.call.caller.subject)).await;
            reserved.map_err(|_| no_worker_in_time(gate))?.map_err(|failure| not_reserved(&failure))?;
        }
        // The run of a draft reserves its worker itself, and reports a missing one to the author.
        Purpose::LocalPass => {}
    }
    let has_waited = slot.has_waited || begun.elapsed() > SHORT_WAIT;
    Ok(Reserved { call, slot: RunSlot { _slot: slot, has_waited } })
}

/// Refuses the call if its preconditions changed since it arrived. An approval covers what was shown, so the targets of
/// an approved call are checked as well: a symlink may have changed. From here on, the run keeps the targets open.
async fn check_again(
    gate: &GateInner,
    bound: &BoundCall,
    touches: &[Touch],
    consent: &Consent,
    reserved: Reserved,
) -> Result<Reserved, StoppedCall> {
    recheck::recheck(gate, bound, reserved.slot.has_waited).await?;
    if !matches!(consent, Consent::Approved(_)) {
        return Ok(reserved);
    }
    let Reserved { call, slot } = reserved;
    let runnable = &bound.admitted.tool.runnable;
    let (call, now) = if runnable.survey_waits_for_disk() {
        let arguments = Arc::clone(&bound.arguments);
        let job = move |stop: &StopFlag| {
            let now = call.recheck(arguments.members(), stop);
            (call, now)
        };
        let checked = disk::blocking(gate, &bound.admitted.call, job).await;
        checked
            .map_err(|stop| if stop.reason == Reason::ArgumentRefused { targets_changed() } else { stop })?
    } else {
        let now = call.recheck(bound.arguments.members(), &StopFlag::default());
        (call, now)
    };
    match now {
        Ok(now) if now == touches => {}
        Ok(_) => return Err(targets_changed()),
        Err(refusal) => {
            return Err(targets_changed().for_operator(format!("{TARGETS_CHANGED}: {}", refusal.message)));
        }
    }
    recheck::still_authenticated(&bound.admitted.call).await?;
    Ok(Reserved { call, slot })
}

fn targets_changed() -> StoppedCall {
    StoppedCall::new(Reason::ApprovalInvalid, TARGETS_CHANGED).with_remedy("make the call again")
}

fn no_worker_in_time(gate: &GateInner) -> StoppedCall {
    let seconds = gate.limiter.wait_timeout().as_secs();
    let message = format!("no worker became free within {seconds} s (`limits.wait_timeout`)");
    StoppedCall::new(Reason::Busy, message).with_remedy(CALL_AGAIN)
}

fn not_reserved(failure: &RunFailure) -> StoppedCall {
    let stop = StoppedCall::new(failure.reason, failure.message.as_str());
    if failure.reason == Reason::Busy { stop.with_remedy(CALL_AGAIN) } else { stop }
}

fn finish(
    gate: &GateInner,
    bound: BoundCall,
    approval: Option<ConsumedApproval>,
    mut report: RunReport,
) -> Result<Executed, StoppedCall> {
    let tool = &bound.admitted.tool;
    let mut alerts = match bound.admitted.purpose {
        Purpose::Call => console::clean(gate, tool, &mut report),
        // The author of a draft sees the whole console.
        Purpose::LocalPass => Vec::new(),
    };
    let unredacted = report.outcome.as_mut().err().and_then(|failure| failure.unredacted.take());
    match &report.outcome {
        Ok(_) => Ok(Executed { bound, approval, report, alerts, _sealed: () }),
        Err(failure) => {
            let message = message_of(failure, gate, tool);
            let texts = [failure.message.as_str()].into_iter().chain(unredacted.as_deref());
            alerts.extend(tool.alarms_in(texts));
            let stop = match failure.reason {
                // The name of a missing secret is for the operator only.
                Reason::MissingSecret => {
                    StoppedCall::new(failure.reason, MISSING_SECRET).for_operator(message)
                }
                reason => StoppedCall::new(reason, message),
            };
            let stop = stop.with_alerts(alerts).with_report(report);
            Err(stop.with_consumed(approval))
        }
    }
}

/// A tool's error message is output. Field rules cannot apply to a message, so it is withheld for tools with such
/// rules. Otherwise the tool could leak withheld fields through an error.
fn message_of(failure: &RunFailure, gate: &GateInner, tool: &LiveTool) -> String {
    let has_rules = OutputPolicy::of(&tool.spec.governance).exists();
    if has_rules && personal::can_repeat_tool(failure.reason) {
        return WITHHELD.to_owned();
    }
    secrets::without_secrets(&gate.secrets, &failure.message)
}

/// Counts a run until it ends or is dropped.
struct RunningGauge<'g>(&'g GateInner);

impl<'g> RunningGauge<'g> {
    fn new(gate: &'g GateInner) -> Self {
        gate.metrics.running.fetch_add(1, Ordering::Relaxed);
        Self(gate)
    }
}

impl Drop for RunningGauge<'_> {
    fn drop(&mut self) {
        self.0.metrics.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Only longer waits repeat the checks of the token and the program policy, because each costs a thread.
const SHORT_WAIT: Duration = Duration::from_millis(100);
const CALL_AGAIN: &str = "wait a moment and call again";
const TARGETS_CHANGED: &str =
    "the targets of the arguments changed after the question was asked; the call was not run";
const MISSING_SECRET: &str = "a value that the tool needs is not set on the gateway; its operator can set it";
const WITHHELD: &str = "the tool failed; its message is withheld because this tool's `outputPolicy` has rules about fields; \
     `toolgate run` shows it to the tool's author";
