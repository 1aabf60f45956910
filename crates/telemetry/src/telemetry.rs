//! Who watches the calls? Counts each one, queues its summary, and never makes it wait.

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
    counts::Counts,
    encode::Speaker,
    ended::{Ended, level_of, spans_of},
    send::{Sender, Stop, send_metrics, send_traces},
    settings::{Callers, Export, Settings, SettingsError},
    tally::{Cause, Report, Tally},
};

/// Give it to the gate as its observer. Dropping it without `shutdown` sends what is queued if the runtime lives on.
pub struct Telemetry {
    counts: Arc<Counts>,
    tally: Arc<Tally>,
    /// Absent where no traces are sent.
    queue: Option<mpsc::Sender<Ended>>,
    callers: Callers,
    stop: watch::Sender<()>,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl Telemetry {
    /// Starts sending, on the runtime it is called in. Whether the collector is there shows later, in `report`.
    pub fn start(settings: &Settings, egress: &Egress) -> Result<Self, SettingsError> {
        let (stop, stopped) = watch::channel(());
        let tally = Arc::new(Tally::default());
        let sender = Sender {
            collector: Collector::new(settings, egress)?,
            speaker: Speaker::new(random()?),
            tally: Arc::clone(&tally),
            stop: Stop(stopped),
        };
        let counts = Arc::new(Counts::new(settings.isolation.clone()));
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

    /// Sends what is left, for five seconds at most. Spans of calls that end afterwards are counted as dropped.
    pub async fn shutdown(&self) {
        self.stop.send_replace(());
        let tasks = std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        let last = Instant::now() + LONGEST_SHUTDOWN;
        for mut task in tasks {
            if timeout_at(last, &mut task).await.is_err() {
                task.abort();
                // Awaited so that it counts nothing any more when the rest is counted.
                let _ = task.await;
            }
        }
        self.tally.abandon_the_rest();
    }

    /// How sending goes.
    pub fn report(&self) -> Report {
        self.tally.report()
    }
}

impl Observer for Telemetry {
    fn finished(&self, call: &Finished<'_>) {
        self.counts.ended(call.record.purpose, level_of(call), call.reason, call.duration);
        let Some(queue) = &self.queue else { return };
        // A place first: where there is none, nothing is built in vain.
        match queue.try_reserve() {
            Ok(place) => {
                self.tally.queued(spans_of(call));
                place.send(Ended::of(call, self.callers));
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
        .map_err(|error| SettingsError::new(format!("this machine gives no random numbers: {error}")))?;
    Ok(bytes)
}

/// Calls that wait to be sent. A summary is about half a kilobyte, and at most a few.
const QUEUE: usize = 4096;
const LONGEST_DELAY: Duration = Duration::from_secs(5);
const LONGEST_SHUTDOWN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
