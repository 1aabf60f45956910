//! What is a client told besides the result? That its call goes on, and that the tools have changed.

use std::{convert::Infallible, future::Future, time::Duration};

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use tokio::time::{Instant, sleep};
use toolgate_gate::Gate;

/// Does the work, and tells of it where the client wants to know.
pub async fn with_progress<W: Future>(
    peer: &Peer<RoleServer>,
    token: Option<ProgressToken>,
    work: W,
) -> W::Output {
    let Some(token) = token else { return work.await };
    let begun = Instant::now();
    // Waited for: a call that takes no time would otherwise be answered before its own beginning is told.
    tell(peer, &token, begun).await;
    tokio::select! {
        output = work => output,
        never = keep_telling(peer, &token, begun) => match never {},
    }
}

/// Often at first, for people watch short calls more closely than long ones.
async fn keep_telling(peer: &Peer<RoleServer>, token: &ProgressToken, begun: Instant) -> Infallible {
    let mut pause = FIRST_PAUSE;
    loop {
        sleep(pause).await;
        tell(peer, token, begun).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// A client that is gone is found out elsewhere.
async fn tell(peer: &Peer<RoleServer>, token: &ProgressToken, begun: Instant) {
    let elapsed = begun.elapsed();
    let progress = ProgressNotificationParam::new(token.clone(), elapsed.as_secs_f64())
        .with_message(format!("at work for {} s", elapsed.as_secs()));
    drop(peer.notify_progress(progress).await);
}

/// Tells a client with a session whenever the tools have changed, until it is gone.
pub async fn tell_of_changes(gate: Gate, peer: Peer<RoleServer>) {
    let mut changes = gate.changes();
    while changes.changed().await.is_ok() {
        if peer.notify_tool_list_changed().await.is_err() {
            return;
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
