//! Runs checks that block on the disk on the blocking pool, with a permit and a deadline.

use std::{panic::resume_unwind, time::Duration};

use tokio::time::{Instant, timeout_at};

use super::{recheck, stop::StoppedCall};
use crate::{
    disk_checks::NO_DISK_CHECK_PERMIT,
    gate::{Call, GateInner},
    ports::StopFlag,
    reason::Reason,
};

/// The deadline covers the wait for a permit and the check.
pub async fn blocking<T: Send + 'static>(
    gate: &GateInner,
    call: &Call,
    job: impl FnOnce(&StopFlag) -> T + Send + 'static,
) -> Result<T, StoppedCall> {
    let begun = Instant::now();
    let due = begun + gate.disk_checks.timeout();
    let Some(permit) = gate.disk_checks.enter(&call.caller.quota(), due).await else {
        return Err(
            StoppedCall::new(Reason::Busy, NO_DISK_CHECK_PERMIT).with_remedy("wait a moment and call again")
        );
    };
    let stop = StopFlag::default();
    let waiting = stop.stop_on_drop();
    let checking = permit.spawn(move || job(&stop));
    let checked = timeout_at(due, checking).await;
    drop(waiting);
    let checked = match checked {
        Ok(Ok(checked)) => checked,
        Ok(Err(ended)) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => return Err(StoppedCall::new(Reason::Cancelled, "the gateway is stopping")),
        },
        Err(_) => return Err(too_long(gate.disk_checks.timeout())),
    };
    if begun.elapsed() > SHORT_WAIT {
        recheck::still_authenticated(call).await?;
    }
    Ok(checked)
}

fn too_long(timeout: Duration) -> StoppedCall {
    let seconds = timeout.as_secs();
    let message = format!("the paths in the arguments could not be checked within {seconds} seconds");
    StoppedCall::new(Reason::ArgumentRefused, message)
        .with_remedy("name a path on a disk that responds; avoid hard-linked files in very large directories")
}

/// After a longer wait the caller's token is checked again.
const SHORT_WAIT: Duration = Duration::from_secs(1);
