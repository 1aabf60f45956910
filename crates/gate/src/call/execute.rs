//! E. Run it, jailed, under a deadline.

use std::sync::atomic::Ordering;

use toolgate_policy::OutputPolicy;

use super::{Purpose, admit::Admitted, console, decide::Decided, personal, secrets, standing, stop::Stop};
use crate::{
    gate::{Call, Inner},
    limiter::Slot,
    live::LiveTool,
    ports::{Room, RunFailure, RunReport, RunRequest},
    reason::Reason,
};

/// A call whose tool has run and returned something.
#[derive(Debug)]
pub struct Executed {
    pub decided: Decided,
    pub report: RunReport,
    /// Texts on its console about which somebody wants to be told.
    pub alerts: Vec<String>,
    _sealed: (),
}

/// All that a call needs to be run in: a place among the running ones, and what its handler keeps for it.
#[derive(Debug)]
pub struct Place {
    _slot: Slot,
    room: Room,
}

/// For a call that has yet to spend its yes: whatever could be refused for want of a place is refused here.
pub async fn make_place(gate: &Inner, admitted: &Admitted) -> Result<Place, Stop> {
    let slot = enter(gate, &admitted.call).await?;
    let room = admitted.tool.runnable.make_room(&admitted.call.caller.subject).await;
    Ok(Place { _slot: slot, room: room.map_err(|failure| without_room(&failure))? })
}

fn without_room(failure: &RunFailure) -> Stop {
    let stop = Stop::new(failure.reason, failure.message.as_str());
    if failure.reason == Reason::Busy { stop.with_remedy(CALL_AGAIN) } else { stop }
}

/// A place among the running calls, for a caller who is still let in when there is one.
async fn enter(gate: &Inner, call: &Call) -> Result<Slot, Stop> {
    let entered = gate.limiter.enter(&call.caller.subject).await;
    let slot = entered.map_err(|busy| Stop::new(Reason::Busy, busy.to_string()).with_remedy(CALL_AGAIN))?;
    if slot.has_waited {
        standing::still_let_in(call).await?;
    }
    Ok(slot)
}

pub async fn execute(gate: &Inner, mut decided: Decided) -> Result<Executed, Stop> {
    let held = decided.place.take();
    let bound = &decided.checked.bound;
    let caller = &bound.admitted.call.caller.subject;
    let place = match held {
        Some(place) => place,
        None => Place { _slot: enter(gate, &bound.admitted.call).await?, room: Room::default() },
    };
    gate.metrics.running.fetch_add(1, Ordering::Relaxed);
    let running = Running(gate);
    let request = RunRequest {
        arguments: &bound.arguments,
        survey: &decided.checked.survey,
        caller,
        purpose: bound.admitted.purpose,
        room: Some(&place.room),
        looks: &gate.looks,
    };
    let mut report = bound.admitted.tool.runnable.run(request).await;
    drop(running);
    let mut alerts = match bound.admitted.purpose {
        Purpose::Call => console::clean(gate, &bound.admitted.tool, &mut report),
        // The author of a draft reads all of it.
        Purpose::LocalPass => Vec::new(),
    };
    let heard = report.outcome.as_mut().err().and_then(|failure| failure.heard.take());
    match &report.outcome {
        Ok(_) => Ok(Executed { decided, report, alerts, _sealed: () }),
        Err(failure) => {
            let message = told_of(failure, gate, &bound.admitted.tool);
            let said = [failure.message.as_str()].into_iter().chain(heard.as_deref());
            alerts.extend(bound.admitted.tool.alarms_in(said));
            Err(Stop::new(failure.reason, message).with_alerts(alerts).with_report(report))
        }
    }
}

/// What a tool says in failing is output like any other. Rules about fields cannot be applied to words, which have none: where there
/// are such rules the words stay here, or a tool would say by failing what no rule lets leave.
fn told_of(failure: &RunFailure, gate: &Inner, tool: &LiveTool) -> String {
    let has_rules = OutputPolicy::of(&tool.spec.governance).exists();
    if has_rules && personal::can_repeat_tool(failure.reason) {
        return WITHHELD.to_owned();
    }
    secrets::without_secrets(&gate.secrets, &failure.message)
}

/// Counts a run until it ends, also by being dropped.
struct Running<'g>(&'g Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.metrics.running.fetch_sub(1, Ordering::Relaxed);
    }
}

const CALL_AGAIN: &str = "wait a moment and call again";
const WITHHELD: &str = "what was said of it is withheld, for this tool's `outputPolicy` has rules about fields and a message \
     has none; `toolgate run` shows it to the tool's author";
