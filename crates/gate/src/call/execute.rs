//! E. Runs the tool: reserves a run slot, checks again what may have changed, consumes the approval, runs.
//!
//! The approval comes after the slot, because a busy gateway must not cost a person a second answer.

mod approval;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::{Instant, timeout_at};
use toolgate_policy::OutputPolicy;

use super::{
    Purpose,
    bind::Bound,
    check::Checked,
    decide::{Consent, Decided},
    support::{console, disk, personal, recheck, secrets, stop::Stop},
};
use crate::{
    approval::Spent,
    gate::Inner,
    limiter::Slot,
    live::LiveTool,
    ports::{RunFailure, RunReport, RunRequest, StopFlag, Surveyed, Touch},
    reason::Reason,
};

/// A call whose tool ran and returned something.
#[derive(Debug)]
pub struct Executed {
    pub bound: Bound,
    /// The approval that this call consumed.
    pub approval: Option<Spent>,
    pub report: RunReport,
    /// Alarm texts found on the tool's console.
    pub alerts: Vec<String>,
    _sealed: (),
}

pub async fn execute(gate: &Inner, decided: Decided) -> Result<Executed, Stop> {
    let Decided { checked: Checked { bound, touches, agreed, call, notes, left, .. }, consent, .. } = decided;
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
        agreed: &agreed,
        left: &left,
        caller: &bound.admitted.call.caller.subject,
        purpose: bound.admitted.purpose,
        looks: &gate.looks,
    };
    let running = Running::new(gate);
    let report = call.run(request).await;
    drop((running, slot));
    finish(gate, bound, consumed, report)
}

/// A call that has all it needs to run.
struct Reserved {
    call: Box<dyn Surveyed>,
    slot: RunSlot,
}

/// A place among the running calls.
struct RunSlot {
    _slot: Slot,
    has_waited: bool,
}

/// Waits for a run slot and for what the handler needs, such as a worker.
async fn reserve(gate: &Inner, bound: &Bound, mut call: Box<dyn Surveyed>) -> Result<Reserved, Stop> {
    let admitted = &bound.admitted;
    let begun = Instant::now();
    let due = begun + gate.limiter.wait_timeout();
    let slot = gate.limiter.enter(&admitted.call.caller.quota()).await;
    let slot = slot.map_err(|busy| Stop::new(Reason::Busy, busy.to_string()).with_remedy(CALL_AGAIN))?;
    match admitted.purpose {
        Purpose::Call => {
            let reserved = timeout_at(due, call.reserve(&admitted.call.caller.subject)).await;
            reserved.map_err(|_| no_worker_in_time(gate))?.map_err(|failure| not_reserved(&failure))?;
        }
        // The run reserves by itself and reports a missing worker to the author of the draft.
        Purpose::LocalPass => {}
    }
    let has_waited = slot.has_waited || begun.elapsed() > SHORT_WAIT;
    Ok(Reserved { call, slot: RunSlot { _slot: slot, has_waited } })
}

/// Refuses the call if something that was true when it came no longer is. An approval is for what was shown, so the targets
/// of an approved call are checked as well: a symlink may have changed meanwhile. The run itself holds them open from here on.
async fn check_again(
    gate: &Inner,
    bound: &Bound,
    touches: &[Touch],
    consent: &Consent,
    reserved: Reserved,
) -> Result<Reserved, Stop> {
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

fn targets_changed() -> Stop {
    Stop::new(Reason::ApprovalInvalid, TARGETS_CHANGED).with_remedy("make the call again")
}

fn no_worker_in_time(gate: &Inner) -> Stop {
    let seconds = gate.limiter.wait_timeout().as_secs();
    let message = format!("no worker became free within {seconds} s (`limits.wait_timeout`)");
    Stop::new(Reason::Busy, message).with_remedy(CALL_AGAIN)
}

fn not_reserved(failure: &RunFailure) -> Stop {
    let stop = Stop::new(failure.reason, failure.message.as_str());
    if failure.reason == Reason::Busy { stop.with_remedy(CALL_AGAIN) } else { stop }
}

fn finish(
    gate: &Inner,
    bound: Bound,
    approval: Option<Spent>,
    mut report: RunReport,
) -> Result<Executed, Stop> {
    let tool = &bound.admitted.tool;
    let mut alerts = match bound.admitted.purpose {
        Purpose::Call => console::clean(gate, tool, &mut report),
        // The author of a draft sees the whole console.
        Purpose::LocalPass => Vec::new(),
    };
    let heard = report.outcome.as_mut().err().and_then(|failure| failure.heard.take());
    match &report.outcome {
        Ok(_) => Ok(Executed { bound, approval, report, alerts, _sealed: () }),
        Err(failure) => {
            let message = message_of(failure, gate, tool);
            let texts = [failure.message.as_str()].into_iter().chain(heard.as_deref());
            alerts.extend(tool.alarms_in(texts));
            let stop = match failure.reason {
                // The name of a missing secret is for the operator only.
                Reason::MissingSecret => Stop::new(failure.reason, MISSING).for_operator(message),
                reason => Stop::new(reason, message),
            };
            let stop = stop.with_alerts(alerts).with_report(report);
            Err(stop.with_consumed(approval))
        }
    }
}

/// The error message of a tool is output. Field rules cannot apply to a message, so a tool with such rules shows none:
/// otherwise it could leak by failing what its rules withhold.
fn message_of(failure: &RunFailure, gate: &Inner, tool: &LiveTool) -> String {
    let has_rules = OutputPolicy::of(&tool.spec.governance).exists();
    if has_rules && personal::can_repeat_tool(failure.reason) {
        return WITHHELD.to_owned();
    }
    secrets::without_secrets(&gate.secrets, &failure.message)
}

/// Counts a run until it ends or is dropped.
struct Running<'g>(&'g Inner);

impl<'g> Running<'g> {
    fn new(gate: &'g Inner) -> Self {
        gate.metrics.running.fetch_add(1, Ordering::Relaxed);
        Self(gate)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.metrics.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Only longer waits repeat the checks of token and program policy: these cost a thread.
const SHORT_WAIT: Duration = Duration::from_millis(100);
const CALL_AGAIN: &str = "wait a moment and call again";
const TARGETS_CHANGED: &str =
    "what the arguments lead to has changed since the question was asked; the call was not run";
const MISSING: &str = "a value that the tool needs is not set on the gateway; its operator can set it";
const WITHHELD: &str = "the tool failed; its message is withheld because this tool's `outputPolicy` has rules about fields; \
     `toolgate run` shows it to the tool's author";
