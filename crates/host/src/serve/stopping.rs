//! How does a gateway stop? Calls finish within the grace, the rest is ended, and only then is the journal closed.

use std::{
    fs::File,
    future::Future,
    io::{self, IsTerminal},
    pin::Pin,
    time::Duration,
};

use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Gate;
use toolgate_server::Drained;

use super::log::ServeLog;

/// A source of requests to stop: the process's signals, or a future of the program.
pub trait StopSource: Send {
    /// Waits until the gateway is to stop. Called again, until it is to stop at once.
    fn asked(&mut self) -> impl Future<Output = ()> + Send;

    fn was_asked(&self) -> bool;
}

/// Stops when a future of the program is done.
pub struct StopFuture {
    done: Pin<Box<dyn Future<Output = ()> + Send>>,
    was_asked: bool,
}

impl StopFuture {
    pub fn new(done: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { done: Box::pin(done), was_asked: false }
    }
}

impl StopSource for StopFuture {
    async fn asked(&mut self) {
        if self.was_asked {
            // The program asks once; running calls keep their grace.
            return std::future::pending().await;
        }
        self.done.as_mut().await;
        self.was_asked = true;
    }

    fn was_asked(&self) -> bool {
        self.was_asked
    }
}

/// SIGINT and SIGTERM, and SIGHUP in a terminal, heard from when this is made: before the address is printed, because an early signal must stop the gateway and not kill it.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Only in a terminal. Elsewhere SIGHUP reloads.
    hangup: Option<Signal>,
    was_asked: bool,
}

impl StopSignals {
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: in_terminal().then(|| signal(SignalKind::hangup())).transpose()?,
            was_asked: false,
        })
    }

    /// Waits for a signal to stop.
    pub async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            // The kernel and the shell may both send it when a terminal closes, so only the first counts.
            () = hung_up(&mut self.hangup) => self.hangup = None,
        }
        self.was_asked = true;
    }
}

impl StopSource for StopSignals {
    async fn asked(&mut self) {
        Self::asked(self).await;
    }

    fn was_asked(&self) -> bool {
        self.was_asked
    }
}

/// Whether this process was started in a terminal and ends with it. A process that started a new session has no `/dev/tty`.
pub fn in_terminal() -> bool {
    (io::stdin().is_terminal() || io::stderr().is_terminal()) && File::open("/dev/tty").is_ok()
}

/// Waits for SIGHUP; forever where it is not heard.
pub async fn hung_up(signals: &mut Option<Signal>) {
    match signals {
        Some(signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}

/// Waits for a second request to stop. After a client closed its end there may have been no first one: that one lets no new
/// call in and leaves the running ones their grace.
async fn asked_again(stop: &mut impl StopSource, gate: &Gate) {
    if !stop.was_asked() {
        stop.asked().await;
        gate.begin_shutdown();
    }
    stop.asked().await;
}

/// Waits for the calls that run. When the grace is over, or on a second signal, the rest is ended.
pub async fn finish_calls(gate: &Gate, grace: Duration, stop: &mut impl StopSource, log: &ServeLog) {
    tokio::select! {
        () = gate.idle() => return,
        () = sleep(grace) => {}
        () = asked_again(stop, gate) => {}
    }
    log.warn(&format!("{} calls did not finish in time and were ended", gate.open_calls()));
    gate.end_calls();
    // A call that does not heed this ends with its connection.
    let _ = timeout(ENDING, gate.idle()).await;
}

/// The last look before the journal is closed: a call that came late has its closing record too.
pub async fn seal(gate: &Gate, log: &ServeLog) {
    gate.seal();
    gate.end_calls();
    if timeout(ENDING, gate.idle()).await.is_err() {
        log.error(&format!("{} calls do not end and have no closing record", gate.open_calls()));
    }
}

/// Waits until every front has sent its last answers. Streams that clients keep open are ended after a moment.
pub async fn close_fronts(mut serving: JoinSet<Drained>, streams: &CancellationToken, log: &ServeLog) {
    let _ = timeout(LAST_ANSWERS, fronts_end(&mut serving, log)).await;
    streams.cancel();
    fronts_end(&mut serving, log).await;
}

async fn fronts_end(serving: &mut JoinSet<Drained>, log: &ServeLog) {
    while let Some(ended) = serving.join_next().await {
        if let Ok(Drained::Cut(cut)) = ended {
            log.warn(&format!("{cut} connections did not finish in time and were cut"));
        }
    }
}

/// How long a front lets its connections live: longer than the calls, so that a call that was ended is still answered.
pub fn connection_grace(grace: Duration) -> Duration {
    grace.saturating_add(ENDING).saturating_add(LAST_ANSWERS * 2)
}

/// For calls that were ended to write their closing records.
const ENDING: Duration = Duration::from_secs(3);
/// For answers to reach their clients.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
