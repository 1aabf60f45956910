//! Notifications about running calls (progress) and about changes of the tool list.

use std::{convert::Infallible, future::Future, time::Duration};

use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::Peer,
};
use tokio::time::{Instant, sleep};
use toolgate_gate::Gate;

/// Does the work. Sends progress meanwhile if the client gave a token for it.
pub async fn with_progress<W: Future>(
    peer: &Peer<RoleServer>,
    token: Option<ProgressToken>,
    work: W,
) -> W::Output {
    let Some(token) = token else { return work.await };
    tokio::select! {
        biased;
        output = work => output,
        never = send_progress(peer, ProgressSchedule::new(Some(token))) => match never {},
    }
}

async fn send_progress(peer: &Peer<RoleServer>, mut schedule: ProgressSchedule) -> Infallible {
    let mut pause = schedule.pause();
    loop {
        sleep(pause).await;
        if let Some(progress) = schedule.progress() {
            // The SDK notices by itself if the client is gone.
            drop(peer.notify_progress(progress).await);
        }
        pause = schedule.next();
    }
}

/// When to send progress of a running call, and what. A call that finishes before the first pause sends none.
#[derive(Debug)]
pub struct ProgressSchedule {
    /// `None` if the client asked for no progress. Then only the connection is kept alive.
    token: Option<ProgressToken>,
    begun: Instant,
    pause: Duration,
}

impl ProgressSchedule {
    pub fn new(token: Option<ProgressToken>) -> Self {
        let pause = if token.is_some() { FIRST_PAUSE } else { KEEP_ALIVE };
        Self { token, begun: Instant::now(), pause }
    }

    /// The pause before the first notification.
    pub const fn pause(&self) -> Duration {
        self.pause
    }

    /// The pause before the next notification. Pauses grow, because users watch short calls more closely.
    pub fn next(&mut self) -> Duration {
        if self.token.is_some() {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        self.pause
    }

    pub fn progress(&self) -> Option<ProgressNotificationParam> {
        let elapsed = self.begun.elapsed();
        let progress = ProgressNotificationParam::new(self.token.clone()?, elapsed.as_secs_f64());
        Some(progress.with_message(format!("running for {} s", elapsed.as_secs())))
    }
}

/// Notifies a client with a session whenever the tool list changes, until the client is gone.
pub async fn notify_of_changes(gate: Gate, peer: Peer<RoleServer>) {
    let mut changes = gate.changes();
    while changes.changed().await.is_ok() {
        if peer.notify_tool_list_changed().await.is_err() {
            return;
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Without progress. Proxies cut a connection that is silent for half a minute or more.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
