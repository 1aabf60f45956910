//! Is the caller still let in? Asked again of calls that have waited: a token may have been revoked or run out meanwhile, or
//! the operator may have edited who is let in.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::stop::Stop;
use crate::{gate::Call, ports::Standing, reason::Reason};

pub async fn still_let_in(call: &Call) -> Result<(), Stop> {
    match &call.standing {
        Some(standing) if !holds(standing).await => Err(lapsed()),
        _ => Ok(()),
    }
}

/// Ends, within a second or so, when the caller is no longer let in. Never, where nothing can end it.
pub async fn until_lapse(standing: Option<Arc<dyn Standing>>) {
    let Some(standing) = standing else { return std::future::pending().await };
    while holds(&standing).await {
        sleep(BETWEEN_LOOKS).await;
    }
}

pub fn lapsed() -> Stop {
    let message = "you are no longer let in as you were when the call was made; it was not run";
    Stop::new(Reason::CallerLapsed, message)
        .with_remedy("make the call again; where a token was revoked or has expired, get a new one first")
}

/// Whoever knows may have to ask a database: beside the runtime's own threads. No answer is a no.
async fn holds(standing: &Arc<dyn Standing>) -> bool {
    let standing = Arc::clone(standing);
    tokio::task::spawn_blocking(move || standing.holds()).await.unwrap_or(false)
}

const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
