//! A call: admit → bind → check → decide → execute → filter, and the journal around it.

mod admit;
mod bind;
mod check;
mod decide;
mod execute;
mod filter;
mod journal;
mod support;

use std::sync::Arc;

use tokio::time::{Instant, sleep_until};

use self::journal::Trail;
use self::support::{console, stop::Stop};
pub use self::{
    bind::fitted,
    journal::{
        CallRecord, CallerEntry, ClientInfoEntry, DecisionEntry, Journal, Purpose, RequestEntry,
        ResponseEntry, RunEntry, Shared, Shows, UsageEntry,
    },
    support::{caught, text_for_journal, until_lapse},
};
pub(crate) use self::{journal::Writing, support::secrets};
use crate::{
    gate::{Call, Inner},
    live::LiveTool,
    outcome::Outcome,
    ports::RunReport,
};

/// Every call that comes through a door ends here, and every end is in the journal. With it goes what the tool wrote to its
/// console, as far as its caller may read it.
pub(crate) async fn run(
    gate: &Inner,
    call: Call,
    deadline: Option<Instant>,
) -> (Outcome, Vec<(&'static str, String)>) {
    let trail = Trail::new(gate, &call, Purpose::Call);
    let (outcome, report) = around(gate, trail, call, None, deadline).await;
    let console = console::released(&outcome, report);
    (outcome, console)
}

/// The Local Pass: the same stages for a draft, asked of nobody, with what its author needs to know.
pub(crate) async fn run_draft(
    gate: &Inner,
    call: Call,
    draft: Arc<LiveTool>,
) -> (Outcome, Option<RunReport>) {
    let trail = Trail::new(gate, &call, Purpose::LocalPass);
    around(gate, trail, call, Some(draft), None).await
}

/// Nothing starts before the opening record is written, and nothing is released before the closing one is.
async fn around(
    gate: &Inner,
    mut trail: Trail,
    call: Call,
    draft: Option<Arc<LiveTool>>,
    deadline: Option<Instant>,
) -> (Outcome, Option<RunReport>) {
    if let Err(broken) = trail.open().await {
        return (broken, None);
    }
    let ended = tokio::select! {
        biased;
        ended = caught(through_the_stages(gate, call, draft, &mut trail)) => ended,
        () = gate.open_calls.ended() => Some(Err(trail.cut())),
        () = passed(deadline) => Some(Err(trail.late())),
    };
    let (outcome, report) = match ended.unwrap_or_else(|| Err(trail.panicked())) {
        Ok(filtered) => {
            let (released, report) = filtered.into_released(trail.call_id());
            (Outcome::Released(released), Some(report))
        }
        Err(mut stop) => {
            let report = stop.take_report();
            (stop.into_outcome(trail.call_id()), report)
        }
    };
    (trail.close(outcome).await, report)
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn through_the_stages(
    gate: &Inner,
    call: Call,
    draft: Option<Arc<LiveTool>>,
    trail: &mut Trail,
) -> Result<filter::Filtered, Stop> {
    let admitted = trail.after(admit::admit(gate, call, draft))?;
    let bound = trail.after(bind::bind(admitted, trail.arguments_digest()))?;
    let checked = trail.after(check::check(gate, bound).await)?;
    let decided = trail.after(decide::decide(gate, checked).await)?;
    let executed = trail.after(execute::execute(gate, decided).await)?;
    trail.after(filter::filter(gate, executed, trail.personal()).await)
}
