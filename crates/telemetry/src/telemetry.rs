//! Observes calls: counts each one and queues its summary, without delaying it.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    task::JoinHandle,
    time::{Instant, timeout_at},
};
use toolgate_egress::Egress;
use toolgate_gate::{Finished, Observer};

use crate::{
    collector::Collector,
    counts::CallCounters,
    encode::Speaker,
    send::{Sender, StopSignal, send_metrics, send_traces},
    settings::{CallerNames, Export, SettingsError, TelemetrySettings},
    summary::{CallSummary, level_of, spans_of},
    tally::{Cause, ExportReport, Tally},
};

/// Pass it to the gate as its observer. If dropped without `shutdown`, it still sends the queue while the runtime lives.
pub struct Telemetry {
    counts: Arc<CallCounters>,
    tally: Arc<Tally>,
    /// `None` if traces are off.
    queue: Option<mpsc::Sender<CallSummary>>,
    callers: CallerNames,
    stop: watch::Sender<()>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Telemetry {
    /// Starts the background tasks on the current runtime. An unreachable collector shows up later, in `report`.
    pub fn start(settings: &TelemetrySettings, egress: &Egress) -> Result<Self, SettingsError> {
        let (stop, stopped) = watch::channel(());
        let tally = Arc::new(Tally::default());
        let sender = Sender {
            collector: Collector::new(settings, egress)?,
            speaker: Speaker::new(random()?),
            tally: Arc::clone(&tally),
            stop: StopSignal(stopped),
        };
        let counts = Arc::new(CallCounters::new(settings.isolation.clone()));
        let mut tasks = Vec::new();
        let mut queue = None;
        if settings.traces == Export::On {
            let (inlet, outlet) = mpsc::channel(QUEUE);
            let delay = settings.interval.min(LONGEST_DELAY);
            tasks.push(tokio::spawn(send_traces(sender.clone(), outlet, delay)));
            queue = Some(inlet);
        }
        if settings.metrics == Export::On {
            tasks.push(tokio::spawn(send_metrics(sender, Arc::clone(&counts), settings.interval)));
        }
        Ok(Self { counts, tally, queue, callers: settings.callers, stop, tasks: Mutex::new(tasks) })
    }

    /// Sends the rest within five seconds. Spans of calls that end later count as dropped.
    pub async fn shutdown(&self) {
        self.stop.send_replace(());
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let last = Instant::now() + LONGEST_SHUTDOWN;
        for mut task in tasks {
            if timeout_at(last, &mut task).await.is_err() {
                task.abort();
                // Wait for the aborted task: it must not count any more when the rest is counted.
                let _ = task.await;
            }
        }
        self.tally.abandon_the_rest();
    }

    /// The state of the export.
    pub fn report(&self) -> ExportReport {
        self.tally.report()
    }
}

impl Observer for Telemetry {
    fn finished(&self, call: &Finished<'_>) {
        self.counts.ended(call.record.purpose, level_of(call), call.reason, call.duration);
        let Some(queue) = &self.queue else { return };
        // Reserve first: without a free slot, do not build the summary.
        match queue.try_reserve() {
            Ok(place) => {
                self.tally.queued(spans_of(call));
                place.send(CallSummary::of(call, self.callers));
            }
            Err(_) => self.tally.dropped(Cause::QueueFull, spans_of(call)),
        }
    }
}

impl fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telemetry").field("report", &self.report()).finish_non_exhaustive()
    }
}

fn random() -> Result<[u8; 16], SettingsError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| SettingsError::new(format!("the system returned no random bytes: {error}")))?;
    Ok(bytes)
}

/// Calls that wait to be sent. A summary has about half a kilobyte, at most a few.
const QUEUE: usize = 4096;
const LONGEST_DELAY: Duration = Duration::from_secs(5);
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
