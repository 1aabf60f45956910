//! E. Run it, jailed, under a deadline.

use std::sync::atomic::Ordering;

use toolgate_spec::neutral;

use super::{Purpose, console, decide::Decided, secrets, standing, stop::Stop};
use crate::{
    gate::{Call, Inner},
    limiter::Slot,
    ports::{RunReport, RunRequest},
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

/// A place among the running calls, for a caller who is still let in when there is one.
pub async fn enter(gate: &Inner, call: &Call) -> Result<Slot, Stop> {
    let slot = gate.limiter.enter(&call.caller.subject).await.map_err(|busy| {
        Stop::new(Reason::Busy, busy.to_string()).with_remedy("wait a moment and call again")
    })?;
    if slot.has_waited {
        standing::still_let_in(call).await?;
    }
    Ok(slot)
}

pub async fn execute(gate: &Inner, mut decided: Decided) -> Result<Executed, Stop> {
    let held = decided.slot.take();
    let bound = &decided.checked.bound;
    let caller = &bound.admitted.call.caller.subject;
    let _slot = match held {
        Some(slot) => slot,
        None => enter(gate, &bound.admitted.call).await?,
    };
    gate.metrics.running.fetch_add(1, Ordering::Relaxed);
    let running = Running(gate);
    let request = RunRequest {
        arguments: &bound.arguments,
        survey: &decided.checked.survey,
        caller,
        purpose: bound.admitted.purpose,
    };
    let mut report = bound.admitted.tool.runnable.run(request).await;
    drop(running);
    let mut alerts = match bound.admitted.purpose {
        Purpose::Call => console::clean(gate, &bound.admitted.tool, &mut report),
        // The author of a draft reads all of it.
        Purpose::LocalPass => Vec::new(),
    };
    match &report.outcome {
        Ok(_) => Ok(Executed { decided, report, alerts, _sealed: () }),
        Err(failure) => {
            // What a tool says in failing is output like any other, and in the same order.
            let message = secrets::without_secrets(&gate.secrets, &failure.message);
            alerts.extend(bound.admitted.tool.alarms_in([failure.message.as_str()]));
            Err(Stop::new(failure.reason, neutral(&message)).with_alerts(alerts).with_report(report))
        }
    }
}

/// Counts a run until it ends, also by being dropped.
struct Running<'g>(&'g Inner);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.metrics.running.fetch_sub(1, Ordering::Relaxed);
    }
}
