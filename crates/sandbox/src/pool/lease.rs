//! How does one call go, frame by frame? Strictly in turn, under a deadline, with everything else an anomaly.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{
    Effects, GRACE, Isolation, Pool, Report, RunFailure, Tenant, killed_report,
    shares::Share,
    worker::{Lost, Worker},
};
use crate::{
    strength::Strength,
    wire::{
        Done, Effect, EffectAnswer, EffectError, Ending, FromWorker, Load, MAX_ERROR, OUT_OF_TIME, Run,
        RunLimits, ToWorker, Usage,
    },
};

/// A worker that belongs to one call. Dropped before it has run anything, it is as good as before for the next.
#[derive(Debug)]
pub struct Lease {
    pool: Pool,
    worker: Option<Worker>,
    /// Given back when the lease ends.
    share: Share,
    key: Option<Tenant>,
    strength: Strength,
}

/// What the gateway itself counts, whatever the worker says.
struct Counted {
    limits: RunLimits,
    effects: u32,
    bytes: u64,
}

impl Lease {
    pub(super) fn new(pool: Pool, worker: Worker, share: Share, key: Option<Tenant>) -> Self {
        let strength = worker.strength();
        Self { pool, worker: Some(worker), share, key, strength }
    }

    pub fn strength(&self) -> Strength {
        self.strength
    }

    /// Which worker it is: calls with the same number share a process.
    pub fn worker(&self) -> Option<u64> {
        self.worker.as_ref().map(Worker::number)
    }

    /// Runs the call. Dropping the future kills the worker.
    pub async fn run(
        mut self,
        load: &Load,
        run: Run,
        effects: &mut dyn Effects,
    ) -> Result<Report, RunFailure> {
        // Looked at first: what no worker reads costs none.
        if !load.fits() {
            return Err(RunFailure::TooLarge);
        }
        let limits = run.limits;
        let Ok(frame) = ToWorker::Run(run).encode() else { return Err(RunFailure::TooLarge) };
        let Some(mut worker) = self.worker.take() else { return Err(RunFailure::Busy) };
        worker.claim(self.key.take());
        let number = worker.number();
        let begun = Instant::now();
        let deadline = begun + Duration::from_millis(u64::from(limits.timeout_ms));
        let mut counted = Counted { limits, effects: 0, bytes: 0 };
        let mut host = Host { effects, share: &self.share, deadline };
        let exchange = exchange(&mut worker, &frame, load, &mut host, &mut counted);
        let outcome = timeout_at(deadline + GRACE, exchange).await;
        match outcome {
            Err(_) => {
                self.replace(worker);
                Ok(killed_report(self.strength, number))
            }
            Ok(Ok(done)) => {
                worker.count_time(begun.elapsed());
                self.give_back(worker, &done.ending);
                Ok(Report { done, strength: self.strength, killed: false, worker: number })
            }
            Ok(Err(Lost::Ended)) => {
                let death = worker.bury().await;
                self.pool.top_up();
                Err(RunFailure::Died(death))
            }
            Ok(Err(Lost::Nonsense(what))) => {
                self.replace(worker);
                Err(RunFailure::Nonsense(what))
            }
        }
    }

    /// Only a worker that behaved comes back: a trap or a full memory may be a failed attempt.
    fn give_back(&self, worker: Worker, ending: &Ending) {
        let config = &self.pool.0.config;
        let behaved = worker.is_silent() && !matches!(ending, Ending::Trapped(_) | Ending::Memory);
        // The kernel counts the processor time of a worker's whole life, and kills whichever call is in it at the end. Half
        // of it is left for that call, and for what a worker does between calls.
        let is_rested = worker.busy() < Duration::from_secs(config.cpu_seconds) / 2;
        let is_young = worker.calls() < config.recycle_after && config.isolation != Isolation::PerCall;
        if behaved && is_young && is_rested {
            self.pool.0.put(worker);
        } else {
            self.replace(worker);
        }
    }

    /// Kills it, and sees to it that the next call need not wait for another.
    fn replace(&self, worker: Worker) {
        drop(worker);
        self.pool.top_up();
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if let Some(unused) = self.worker.take() {
            self.pool.0.put(unused);
        }
    }
}

async fn exchange(
    worker: &mut Worker,
    run: &[u8],
    load: &Load,
    host: &mut Host<'_>,
    counted: &mut Counted,
) -> Result<Done, Lost> {
    worker.send_bytes(run).await?;
    let mut may_ask_for_code = true;
    loop {
        match worker.receive().await? {
            FromWorker::Missing if may_ask_for_code => {
                may_ask_for_code = false;
                worker.send(&ToWorker::Load(load.clone())).await?;
            }
            FromWorker::Unloadable(ending) if !may_ask_for_code && counted.effects == 0 => {
                return counted.within(Done {
                    ending,
                    console: Vec::new(),
                    console_dropped: 0,
                    usage: Usage::default(),
                });
            }
            FromWorker::Effect(effect) => {
                may_ask_for_code = false;
                counted.count(&effect)?;
                let (frame, payload) = fitting(host.perform(effect).await)?;
                // Judged with the next question: the worker ends a call over its limit itself, and says so.
                counted.bytes = counted.bytes.saturating_add(payload);
                worker.send_bytes(&frame).await?;
            }
            FromWorker::Done(done) => return counted.within(*done),
            FromWorker::Missing | FromWorker::Ready { .. } | FromWorker::Unloadable(_) => {
                return Err(Lost::Nonsense("a frame came out of turn".to_owned()));
            }
        }
    }
}

/// The gateway's side of a call.
struct Host<'h> {
    effects: &'h mut dyn Effects,
    share: &'h Share,
    deadline: Instant,
}

impl Host<'_> {
    /// Answers a question of the worker, which computes nothing meanwhile.
    async fn perform(&mut self, effect: Effect) -> EffectAnswer {
        let _pause = self.share.pause();
        timeout_at(self.deadline, self.effects.perform(effect)).await.unwrap_or_else(|_| interrupted())
    }
}

impl Counted {
    /// The worker counts too; one that lets more through than allowed is not ours any more.
    fn count(&mut self, effect: &Effect) -> Result<(), Lost> {
        self.effects += 1;
        self.bytes = self.bytes.saturating_add(effect.payload() as u64);
        let too_many = self.effects > self.limits.host_calls || self.bytes > self.limits.host_bytes;
        if too_many { Err(Lost::Nonsense("it asked more often than allowed".to_owned())) } else { Ok(()) }
    }

    fn within(&self, done: Done) -> Result<Done, Lost> {
        let (result, allowed) = match &done.ending {
            Ending::Value(text) => (text.len(), self.limits.result_bytes as usize),
            Ending::Threw(text) | Ending::NotData(text) | Ending::Invalid(text) | Ending::Trapped(text) => {
                (text.len(), MAX_ERROR)
            }
            _ => (0, 0),
        };
        let console: usize = done.console.iter().map(|(_, line)| line.len()).sum();
        let fits = result <= allowed
            && done.console.len() <= self.limits.console_lines as usize
            && console <= self.limits.console_bytes as usize;
        if fits { Ok(done) } else { Err(Lost::Nonsense("its answer is longer than allowed".to_owned())) }
    }
}

/// The frame and the bytes that count. An answer that no frame holds, or of which the worker would not read a part, is a
/// failure of the helper, not of the worker.
fn fitting(answer: EffectAnswer) -> Result<(Vec<u8>, u64), Lost> {
    let payload = answer.payload();
    if let Ok(frame) = ToWorker::Answer(answer).encode() {
        return Ok((frame, payload));
    }
    let refused = EffectAnswer::Refused(EffectError {
        kind: "HELPER_RUNTIME".to_owned(),
        helper: "host".to_owned(),
        reason: "result-too-large".to_owned(),
        message: "the answer is larger than a tool can be handed".to_owned(),
        moved: payload,
    });
    let payload = refused.payload();
    let frame = ToWorker::Answer(refused).encode().map_err(|error| Lost::Nonsense(error.to_string()))?;
    Ok((frame, payload))
}

fn interrupted() -> EffectAnswer {
    EffectAnswer::Refused(EffectError {
        kind: "HELPER_RUNTIME".to_owned(),
        helper: "host".to_owned(),
        reason: OUT_OF_TIME.to_owned(),
        message: "the call's time is over".to_owned(),
        moved: 0,
    })
}

#[cfg(test)]
mod tests;
