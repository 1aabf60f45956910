//! Shutdown: calls get a grace period, the rest is ended, and then the journal is closed.

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
    /// Waits for a request to stop. The second call waits for a request to stop at once.
    fn asked(&mut self) -> impl Future<Output = ()> + Send;

    fn was_asked(&self) -> bool;
}

/// Stops when a future of the program completes.
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
            // The program asks only once, so running calls keep their grace period.
            return std::future::pending().await;
        }
        self.done.as_mut().await;
        self.was_asked = true;
    }

    fn was_asked(&self) -> bool {
        self.was_asked
    }
}

/// Handlers for SIGINT and SIGTERM, and for SIGHUP in a terminal. Install them before the address is printed: an early signal must
/// stop the gateway and not kill it.
#[derive(Debug)]
pub struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    /// Set in a terminal. Elsewhere SIGHUP reloads.
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
            // The kernel and the shell may both send it when a terminal closes, so only the first one stops.
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

/// Whether this process belongs to a terminal and ends with it. A process in a new session has no `/dev/tty`.
pub fn in_terminal() -> bool {
    (io::stdin().is_terminal() || io::stderr().is_terminal()) && File::open("/dev/tty").is_ok()
}

/// Waits for SIGHUP. Without a handler, never returns.
pub async fn hung_up(signals: &mut Option<Signal>) {
    match signals {
        Some(signals) => drop(signals.recv().await),
        None => std::future::pending().await,
    }
}

/// Waits for a second request to stop. If the client closed its end, the first one may still come; it refuses new calls
/// and leaves running calls their grace period.
async fn asked_again(stop: &mut impl StopSource, gate: &Gate) {
    if !stop.was_asked() {
        stop.asked().await;
        gate.begin_shutdown();
    }
    stop.asked().await;
}

/// Waits for running calls. Ends the rest after the grace period or at a second signal.
pub async fn finish_calls(gate: &Gate, grace: Duration, stop: &mut impl StopSource, log: &ServeLog) {
    tokio::select! {
        () = gate.idle() => return,
        () = sleep(grace) => {}
        () = asked_again(stop, gate) => {}
    }
    log.warn(&format!("calls ended because they did not finish in time: {}", gate.open_calls()));
    gate.end_calls();
    // A call that ignores this ends with its connection.
    let _ = timeout(ENDING, gate.idle()).await;
}

/// Ends late calls before the journal is closed, so each has a closing record.
pub async fn seal(gate: &Gate, log: &ServeLog) {
    gate.seal();
    gate.end_calls();
    if timeout(ENDING, gate.idle()).await.is_err() {
        log.error(&format!("calls that did not end and have no closing record: {}", gate.open_calls()));
    }
}

/// Waits until every front has sent its last responses. Ends streams that clients keep open after a moment.
pub async fn close_fronts(mut serving: JoinSet<Drained>, streams: &CancellationToken, log: &ServeLog) {
    let _ = timeout(LAST_ANSWERS, fronts_end(&mut serving, log)).await;
    streams.cancel();
    fronts_end(&mut serving, log).await;
}

async fn fronts_end(serving: &mut JoinSet<Drained>, log: &ServeLog) {
    while let Some(ended) = serving.join_next().await {
        if let Ok(Drained::Cut(cut)) = ended {
            log.warn(&format!("connections closed because they did not finish in time: {cut}"));
        }
    }
}

/// How long connections may stay open: longer than the calls, so a call that was ended still gets its response.
pub fn connection_grace(grace: Duration) -> Duration {
    grace.saturating_add(ENDING).saturating_add(LAST_ANSWERS * 2)
}

/// Time for ended calls to write their closing records.
const ENDING: Duration = Duration::from_secs(3);
/// Time for responses to reach the clients.
const LAST_ANSWERS: Duration = Duration::from_secs(1);
