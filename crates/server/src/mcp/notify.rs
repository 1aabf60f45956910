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
    tokio::select! {
        biased;
        output = work => output,
        never = keep_telling(peer, Pace::new(Some(token))) => match never {},
    }
}

async fn keep_telling(peer: &Peer<RoleServer>, mut pace: Pace) -> Infallible {
    let mut pause = pace.pause();
    loop {
        sleep(pause).await;
        if let Some(progress) = pace.progress() {
            // A client that is gone is found out elsewhere.
            drop(peer.notify_progress(progress).await);
        }
        pause = pace.next();
    }
}

/// When is a client told of a call that goes on, and what? A call that takes no time is answered and nothing else.
#[derive(Debug)]
pub struct Pace {
    /// `None`: it wants no progress, and is only to know that somebody is there.
    token: Option<ProgressToken>,
    begun: Instant,
    pause: Duration,
}

impl Pace {
    pub fn new(token: Option<ProgressToken>) -> Self {
        let pause = if token.is_some() { FIRST_PAUSE } else { SILENCE };
        Self { token, begun: Instant::now(), pause }
    }

    /// Before it is told for the first time.
    pub const fn pause(&self) -> Duration {
        self.pause
    }

    /// The pause after that. Short at first, for people watch short calls more closely than long ones.
    pub fn next(&mut self) -> Duration {
        if self.token.is_some() {
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        }
        self.pause
    }

    pub fn progress(&self) -> Option<ProgressNotificationParam> {
        let elapsed = self.begun.elapsed();
        let progress = ProgressNotificationParam::new(self.token.clone()?, elapsed.as_secs_f64());
        Some(progress.with_message(format!("at work for {} s", elapsed.as_secs())))
    }
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

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Without progress. Proxies cut a connection on which nothing is said for half a minute or more.
const SILENCE: Duration = Duration::from_secs(10);
