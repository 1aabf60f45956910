//! What happens beside the calls? Spans are gathered, encoded and brought away; counts are sent at every interval.

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
    counts::Counts,
    encode::{self, Speaker},
    ended::Ended,
    tally::{Cause, Tally},
};

/// What both tasks hold.
#[derive(Clone, Debug)]
pub struct Sender {
    pub collector: Collector,
    pub speaker: Speaker,
    pub tally: Arc<Tally>,
    pub stop: Stop,
}

/// The wish that everything be sent and over; also granted when nobody is left who could wish.
#[derive(Clone, Debug)]
pub struct Stop(pub watch::Receiver<()>);

impl Stop {
    async fn wished(&mut self) {
        // An error means that the wisher is gone.
        let _ = self.0.changed().await;
        self.0.mark_changed();
    }

    fn is_wished(&self) -> bool {
        self.0.has_changed().unwrap_or(true)
    }
}

/// Ends when the queue is closed and empty.
pub async fn send_traces(mut sender: Sender, mut queue: mpsc::Receiver<Ended>, delay: Duration) {
    let mut calls = Vec::new();
    while gather(&mut queue, &mut sender.stop, delay, &mut calls).await {
        let taken = sender.bring(&calls).await;
        calls.clear();
        if !taken && sender.stop.is_wished() {
            // The collector had its last chance; what is left must not hold up the end.
            queue.close();
            while let Ok(call) = queue.try_recv() {
                sender.tally.dropped(Cause::NotDelivered, call.spans());
            }
            return;
        }
    }
}

/// Waits for calls, and then for more until there are enough or the first has waited long enough.
async fn gather(
    queue: &mut mpsc::Receiver<Ended>,
    stop: &mut Stop,
    delay: Duration,
    calls: &mut Vec<Ended>,
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
            () = stop.wished(), if !queue.is_closed() => queue.close(),
            () = wait, if due.is_some() => return true,
        }
    }
}

impl Sender {
    /// Tries until the collector has the spans of these calls, refuses them for good, or has failed too often.
    async fn bring(&mut self, calls: &[Ended]) -> bool {
        let count = calls.iter().map(Ended::spans).sum();
        let request = self.collector.request(Signal::Traces, &encode::traces(&self.speaker, calls));
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            let is_last = attempt == ATTEMPTS || self.stop.is_wished();
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
                () = self.stop.wished() => {}
            }
            pause *= 2;
        }
        self.tally.dropped(Cause::NotDelivered, count);
        false
    }
}

/// Ends after a last sending when that is wished.
pub async fn send_metrics(mut sender: Sender, counts: Arc<Counts>, interval: Duration) {
    let started = SystemTime::now();
    let interval = interval.max(SHORTEST_INTERVAL);
    let mut ticks = interval_at(Instant::now() + interval, interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = sender.stop.wished() => {}
        }
        let is_last = sender.stop.is_wished();
        let body = encode::metrics(&sender.speaker, &counts, &sender.tally, started, SystemTime::now());
        let request = sender.collector.request(Signal::Metrics, &body);
        match sender.collector.post(request).await {
            Ok(_) => sender.tally.metrics_sent(),
            // Not tried again: the next sending says all of this and more.
            Err(failure) => sender.tally.failed(failure.why),
        }
        if is_last {
            return;
        }
    }
}

/// Calls in one request; with seven spans each it stays far below the largest body that goes out.
const MOST_CALLS: usize = 512;
const ATTEMPTS: usize = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);
