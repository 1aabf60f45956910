//! The call flow: admit → bind → check → decide → execute → filter, with the journal around it.

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
use self::support::{console, stop::StoppedCall};
pub use self::{
    bind::fitted,
    journal::{
        CallJournal, CallRecord, CallerEntry, ClientInfoEntry, DecisionEntry, JournalDetail, PreparedJson,
        Purpose, RequestEntry, ResponseEntry, RunEntry, UsageEntry,
    },
    support::{catch_panic, text_for_journal, until_lapse},
};
pub(crate) use self::{journal::RecordFormat, support::secrets};
use crate::{
    gate::{Call, GateInner},
    live::LiveTool,
    outcome::Outcome,
    ports::RunReport,
};

/// Runs a call and records its end in the journal. Also returns the console lines of the tool that its caller may read.
pub(crate) async fn run(
    gate: &GateInner,
    call: Call,
    deadline: Option<Instant>,
) -> (Outcome, Vec<(&'static str, String)>) {
    let trail = Trail::new(gate, &call, Purpose::Call);
    let (outcome, report) = run_with_journal(gate, trail, call, None, deadline).await;
    let console = console::released(&outcome, report);
    (outcome, console)
}

/// The Local Pass: runs a draft through the same stages without asking for approval, and returns the report for its
/// author.
pub(crate) async fn run_draft(
    gate: &GateInner,
    call: Call,
    draft: Arc<LiveTool>,
) -> (Outcome, Option<RunReport>) {
    let trail = Trail::new(gate, &call, Purpose::LocalPass);
    run_with_journal(gate, trail, call, Some(draft), None).await
}

/// Starts nothing before the opening record is written, and releases nothing before the closing record is.
async fn run_with_journal(
    gate: &GateInner,
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
        ended = catch_panic(run_stages(gate, call, draft, &mut trail)) => ended,
        () = gate.open_calls.ended() => Some(Err(trail.end_by_shutdown())),
        () = deadline_passed(deadline) => Some(Err(trail.end_by_deadline())),
    };
    let (outcome, report) = match ended.unwrap_or_else(|| Err(trail.end_by_panic())) {
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

async fn deadline_passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn run_stages(
    gate: &GateInner,
    call: Call,
    draft: Option<Arc<LiveTool>>,
    trail: &mut Trail,
) -> Result<filter::Filtered, StoppedCall> {
    let admitted = trail.after(admit::admit(gate, call, draft))?;
    let bound = trail.after(bind::bind(admitted, trail.arguments_digest()))?;
    let checked = trail.after(check::check(gate, bound).await)?;
    let decided = trail.after(decide::decide(gate, checked).await)?;
    let executed = trail.after(execute::execute(gate, decided).await)?;
    trail.after(filter::filter(gate, executed, trail.personal()).await)
}
