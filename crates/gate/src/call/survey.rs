//! How is a call looked at without keeping the others waiting? What waits for a disk is done beside the runtime's own threads,
//! by so many at once, and no longer than somebody waits.

use std::{panic::resume_unwind, sync::Arc, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{bind::Bound, standing, stop::Stop};
use crate::{
    gate::Inner,
    looks::NO_PLACE,
    ports::{Refusal, StopFlag, Survey},
    reason::Reason,
};

pub async fn of(gate: &Inner, bound: &Bound) -> Result<Survey, Stop> {
    let runnable = &bound.admitted.tool.runnable;
    let surveyed = if runnable.survey_waits_for_disk() {
        // Boxed: most calls have no need of it.
        Box::pin(aside(gate, bound)).await?
    } else {
        runnable.survey(bound.arguments.members(), &StopFlag::default())
    };
    surveyed.map_err(|refusal| Stop::new(refusal.reason, refusal.message).with_remedy(refusal.remedy))
}

async fn aside(gate: &Inner, bound: &Bound) -> Result<Result<Survey, Refusal>, Stop> {
    let call = &bound.admitted.call;
    let begun = Instant::now();
    // The turn and the look together.
    let due = begun + gate.looks.longest();
    let Some(place) = gate.looks.enter(&call.caller.quota(), due).await else {
        return Err(Stop::new(Reason::Busy, NO_PLACE).with_remedy("wait a moment and call again"));
    };
    let (runnable, arguments) = (Arc::clone(&bound.admitted.tool.runnable), Arc::clone(&bound.arguments));
    let stop = StopFlag::default();
    let waiting = stop.waiting();
    let looking = place.spawn(move || runnable.survey(arguments.members(), &stop));
    let looked = timeout_at(due, looking).await;
    drop(waiting);
    let surveyed = match looked {
        Ok(Ok(surveyed)) => surveyed,
        Ok(Err(ended)) => match ended.try_into_panic() {
            // As if it had been done here.
            Ok(panic) => resume_unwind(panic),
            Err(_) => return Err(Stop::new(Reason::Cancelled, "the gateway is stopping")),
        },
        Err(_) => return Err(too_long(gate.looks.longest())),
    };
    if begun.elapsed() > SHORT {
        standing::still_let_in(call).await?;
    }
    Ok(surveyed)
}

/// As for every other path that cannot be looked at.
fn too_long(longest: Duration) -> Stop {
    let seconds = longest.as_secs();
    let message = format!("what the arguments name could not be looked at within {seconds} seconds");
    Stop::new(Reason::ArgumentRefused, message)
        .with_remedy("name a path that can be used; the disk may not answer, or a file with several names may lie among too many others")
}

/// Whoever waits longer than this is asked for again.
const SHORT: Duration = Duration::from_secs(1);
