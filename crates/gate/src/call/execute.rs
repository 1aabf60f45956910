//! E. Run it, jailed, under a deadline.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::time::{Instant, timeout_at};
use toolgate_policy::OutputPolicy;

use super::{Purpose, check::Checked, console, decide::Decided, personal, secrets, standing, stop::Stop};
use crate::{
    gate::Inner,
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

/// Everything that a call needs to run: a slot among the running calls, and the room that its handler keeps for it.
#[derive(Debug)]
pub struct Place {
    _slot: Slot,
    room: Room,
}

/// Waits for a slot and a worker, then checks again what may have changed meanwhile. A call that has a yes to spend does
/// this first, so a busy gateway does not cost the yes.
pub async fn make_place(gate: &Inner, checked: &Checked) -> Result<Place, Stop> {
    let admitted = &checked.bound.admitted;
    let caller = &admitted.call.caller.subject;
    let begun = Instant::now();
    let due = begun + gate.limiter.wait_timeout();
    let slot = gate.limiter.enter(&admitted.call.caller.quota()).await;
    let slot = slot.map_err(|busy| Stop::new(Reason::Busy, busy.to_string()).with_remedy(CALL_AGAIN))?;
    let room = match admitted.purpose {
        Purpose::Call => {
            let room = timeout_at(due, admitted.tool.runnable.make_room(caller)).await;
            room.map_err(|_| no_worker_in_time(gate))?.map_err(|none| without_room(&none))?
        }
        // The author of a draft gets a report also where there is no worker; the run makes it.
        Purpose::LocalPass => Room::default(),
    };
    let has_waited = slot.has_waited || begun.elapsed() > SHORT_WAIT;
    standing::recheck(gate, checked, has_waited).await?;
    Ok(Place { _slot: slot, room })
}

fn no_worker_in_time(gate: &Inner) -> Stop {
    let seconds = gate.limiter.wait_timeout().as_secs();
    let message = format!("no worker became free within {seconds} s (`limits.wait_timeout`)");
    Stop::new(Reason::Busy, message).with_remedy(CALL_AGAIN)
}

fn without_room(failure: &RunFailure) -> Stop {
    let stop = Stop::new(failure.reason, failure.message.as_str());
    if failure.reason == Reason::Busy { stop.with_remedy(CALL_AGAIN) } else { stop }
}

pub async fn execute(gate: &Inner, mut decided: Decided) -> Result<Executed, Stop> {
    let place = match decided.place.take() {
        Some(place) => place,
        None => make_place(gate, &decided.checked).await?,
    };
    let bound = &decided.checked.bound;
    let caller = &bound.admitted.call.caller.subject;
    gate.metrics.running.fetch_add(1, Ordering::Relaxed);
    let running = Running(gate);
    let request = RunRequest {
        arguments: bound.arguments.members(),
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

/// The token and the policy in code are checked again after longer waits only: that costs a thread.
const SHORT_WAIT: Duration = Duration::from_millis(100);
const CALL_AGAIN: &str = "wait a moment and call again";
const WITHHELD: &str = "what was said of it is withheld, for this tool's `outputPolicy` has rules about fields and a message \
     has none; `toolgate run` shows it to the tool's author";
