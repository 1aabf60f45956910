//! The background tasks: one batches and sends spans, the other sends metrics at each interval.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until},
};

use crate::{
    collector::{Again, Collector, Signal},
    counts::CallCounters,
    encode::{self, Speaker},
    summary::CallSummary,
    tally::{Cause, Tally},
};

/// The state of a background task.
#[derive(Clone, Debug)]
pub struct Sender {
    pub collector: Collector,
    pub speaker: Speaker,
    pub tally: Arc<Tally>,
    pub stop: StopSignal,
}

/// The signal to send everything and stop. Also given when its sender is dropped.
#[derive(Clone, Debug)]
pub struct StopSignal(pub watch::Receiver<()>);

impl StopSignal {
    async fn requested(&mut self) {
        // An error means that the sender is dropped.
        let _ = self.0.changed().await;
        self.0.mark_changed();
    }

    fn is_requested(&self) -> bool {
        self.0.has_changed().unwrap_or(true)
    }
}

/// Returns when the queue is closed and empty.
pub async fn send_traces(mut sender: Sender, mut queue: mpsc::Receiver<CallSummary>, delay: Duration) {
    let mut calls = Vec::new();
    while gather(&mut queue, &mut sender.stop, delay, &mut calls).await {
        let taken = sender.bring(&calls).await;
        calls.clear();
        if !taken && sender.stop.is_requested() {
            // This was the last attempt; the rest must not delay shutdown.
            queue.close();
            while let Ok(call) = queue.try_recv() {
                sender.tally.dropped(Cause::NotDelivered, call.spans());
            }
            return;
        }
    }
}

/// Waits for a call, then for more until the batch is full or the first call has waited long enough.
async fn gather(
    queue: &mut mpsc::Receiver<CallSummary>,
    stop: &mut StopSignal,
    delay: Duration,
    calls: &mut Vec<CallSummary>,
) -> bool {
    let mut due = None;
    loop {
        let room = MOST_CALLS.saturating_sub(calls.len());
        if room == 0 {
            return true;
        }
        let wait = sleep_until(due.unwrap_or_else(Instant::now));
        tokio::select! {
            biased;
            received = queue.recv_many(calls, room) => {
                if received == 0 {
                    return !calls.is_empty();
                }
                due.get_or_insert_with(|| Instant::now() + delay);
            }
            () = stop.requested(), if !queue.is_closed() => queue.close(),
            () = wait, if due.is_some() => return true,
        }
    }
}

impl Sender {
    /// Retries until the collector accepts the spans, rejects them for good, or fails too often.
    async fn bring(&mut self, calls: &[CallSummary]) -> bool {
        let count = calls.iter().map(CallSummary::spans).sum();
        let request = self.collector.request(Signal::Traces, &encode::traces(&self.speaker, calls));
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let is_last = attempt == ATTEMPTS || self.stop.is_requested();
            let failure = match self.collector.post(request.clone()).await {
                Ok(accepted) => {
                    self.tally.sent(count, accepted.rejected);
                    return true;
                }
                Err(failure) => failure,
            };
            self.tally.failed(failure.why);
            let Again::Later(asked) = failure.again else { break };
            if is_last {
                break;
            }
            tokio::select! {
                () = sleep(asked.unwrap_or(pause).clamp(FIRST_PAUSE, LONGEST_PAUSE)) => {}
                () = self.stop.requested() => {}
            }
            pause *= 2;
        }
        self.tally.dropped(Cause::NotDelivered, count);
        false
    }
}

/// Sends a last time and returns when it is stopped.
pub async fn send_metrics(mut sender: Sender, counts: Arc<CallCounters>, interval: Duration) {
    let started = SystemTime::now();
    let interval = interval.max(SHORTEST_INTERVAL);
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = sender.stop.requested() => {}
        }
        let is_last = sender.stop.is_requested();
        let body = encode::metrics(&sender.speaker, &counts, &sender.tally, started, SystemTime::now());
        let request = sender.collector.request(Signal::Metrics, &body);
        match sender.collector.post(request).await {
            Ok(_) => sender.tally.metrics_sent(),
            // Not retried: the next export is cumulative.
            Err(failure) => sender.tally.failed(failure.why),
        }
        if is_last {
            return;
        }
    }
}

/// Calls in one request. With seven spans each it stays far below the body limit.
const MOST_CALLS: usize = 512;
const ATTEMPTS: usize = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
