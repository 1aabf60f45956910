//! How is a call looked at without keeping the others waiting? What waits for a disk is done beside the runtime's own threads,
//! by so many at once, and no longer than somebody waits.

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use tokio::{
    task::spawn_blocking,
    time::{Instant, timeout_at},
};

use super::{bind::Bound, standing, stop::Stop};
use crate::{
    gate::Inner,
    ports::{Refusal, StopFlag, Survey},
    reason::Reason,
};

pub async fn of(gate: &Inner, bound: &Bound) -> Result<Survey, Stop> {
    let runnable = &bound.admitted.tool.runnable;
    let surveyed = if runnable.survey_waits_for_disk() {
        // Boxed: most calls have no need of it.
        Box::pin(aside(gate, bound)).await?
    } else {
        runnable.survey(&bound.arguments, &StopFlag::default())
    };
    surveyed.map_err(|refusal| Stop::new(refusal.reason, refusal.message).with_remedy(refusal.remedy))
}

async fn aside(gate: &Inner, bound: &Bound) -> Result<Result<Survey, Refusal>, Stop> {
    let call = &bound.admitted.call;
    let begun = Instant::now();
    let due = begun + LONGEST;
    let Ok(Ok(place)) = timeout_at(due, gate.looks.enter(&call.caller.subject)).await else {
        let message = "too many calls look at files; none of them ended while this one waited";
        return Err(Stop::new(Reason::Busy, message).with_remedy("wait a moment and call again"));
    };
    let (runnable, arguments) = (Arc::clone(&bound.admitted.tool.runnable), bound.arguments.clone());
    let stop = StopFlag::default();
    let waiting = stop.waiting();
    let looking = spawn_blocking(move || {
        let surveyed = runnable.survey(&arguments, &stop);
        drop(place);
        surveyed
    });
    let looked = timeout_at(due, looking).await;
    drop(waiting);
    let surveyed = match looked {
        Ok(Ok(surveyed)) => surveyed,
        Ok(Err(ended)) => match ended.try_into_panic() {
            // As if it had been done here.
            Ok(panic) => resume_unwind(panic),
            Err(_) => return Err(Stop::new(Reason::Cancelled, "the gateway is stopping")),
        },
        Err(_) => return Err(too_long()),
    };
    if begun.elapsed() > SHORT {
        standing::still_let_in(call).await?;
    }
    Ok(surveyed)
}

/// As for every other path that cannot be looked at.
fn too_long() -> Stop {
    let seconds = LONGEST.as_secs();
    let message = format!("what the arguments name could not be looked at within {seconds} seconds");
    Stop::new(Reason::ArgumentRefused, message)
        .with_remedy("name a path that can be used; the disk may not answer, or a file with several names may lie among too many others")
}

/// The turn and the look together. Most clients have given up by then.
const LONGEST: Duration = Duration::from_secs(30);
/// Whoever waits longer than this is asked for again.
const SHORT: Duration = Duration::from_secs(1);
