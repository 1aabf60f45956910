//! Message exchange of one call with its worker: strictly in turn and under a deadline. Anything else is an
//! anomaly.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::{
    Effects, GRACE, Isolation, Pool, ScriptReport, Tenant, WorkerFailure, killed_report,
    shares::WorkerShare,
    worker::{Lost, Worker},
};
use crate::{
    layers::LayerSet,
    wire::{
        Done, Effect, EffectAnswer, EffectError, FromWorker, Load, MAX_ERROR, OUT_OF_TIME, RunLimits,
        RunScript, ScriptEnding, ScriptUsage, ToWorker,
    },
};

/// A worker that belongs to one call. If dropped before it runs anything, the worker returns to the pool unchanged.
#[derive(Debug)]
pub struct Lease {
    pool: Pool,
    worker: Option<Worker>,
    /// Released when the lease ends.
    share: WorkerShare,
    key: Option<Tenant>,
    strength: LayerSet,
}

/// The gateway's own count of requests and bytes, independent of the worker's.
struct EffectTotals {
    limits: RunLimits,
    effects: u32,
    bytes: u64,
}

impl Lease {
    pub(super) fn new(pool: Pool, worker: Worker, share: WorkerShare, key: Option<Tenant>) -> Self {
        let strength = worker.strength();
        Self { pool, worker: Some(worker), share, key, strength }
    }

    pub fn strength(&self) -> LayerSet {
        self.strength
    }

    /// Number of the worker: calls with the same number share a process.
    pub fn worker(&self) -> Option<u64> {
        self.worker.as_ref().map(Worker::number)
    }

    /// Runs the call. Dropping the future kills the worker.
    pub async fn run(
        mut self,
        load: &Load,
        run: RunScript,
        effects: &mut dyn Effects,
    ) -> Result<ScriptReport, WorkerFailure> {
        // Checked first: input that the worker would reject must not cost a worker.
        if !load.fits() {
            return Err(WorkerFailure::TooLarge);
        }
        let limits = run.limits;
        let Ok(frame) = ToWorker::Run(run).encode() else { return Err(WorkerFailure::TooLarge) };
        let Some(mut worker) = self.worker.take() else { return Err(WorkerFailure::Busy) };
        worker.claim(self.key.take());
        let number = worker.number();
        let begun = Instant::now();
        let deadline = begun + Duration::from_millis(u64::from(limits.timeout_ms));
        let mut counted = EffectTotals { limits, effects: 0, bytes: 0 };
        let mut host = EffectHost { effects, share: &self.share, deadline };
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
                Ok(ScriptReport { done, strength: self.strength, killed: false, worker: number })
            }
            Ok(Err(Lost::Ended)) => {
                let death = worker.reap().await;
                self.pool.top_up();
                Err(WorkerFailure::Died(death))
            }
            Ok(Err(Lost::Invalid(what))) => {
                self.replace(worker);
                Err(WorkerFailure::Invalid(what))
            }
        }
    }

    /// Returns only well-behaved workers to the pool: a trap or exhausted memory may be a failed escape attempt.
    fn give_back(&self, worker: Worker, ending: &ScriptEnding) {
        let config = &self.pool.0.config;
        let behaved =
            worker.is_silent() && !matches!(ending, ScriptEnding::Trapped(_) | ScriptEnding::Memory);
        // The kernel counts the CPU time of a worker's whole life and kills the call that exceeds it. Half of it
        // is left for that call and for work between calls.
        let is_rested = worker.busy() < Duration::from_secs(config.cpu_seconds) / 2;
        let is_young = worker.calls() < config.recycle_after && config.isolation != Isolation::PerCall;
        if behaved && is_young && is_rested {
            self.pool.0.put(worker);
        } else {
            self.replace(worker);
        }
    }

    /// Kills the worker and starts another for the next call.
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
    host: &mut EffectHost<'_>,
    counted: &mut EffectTotals,
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
                    usage: ScriptUsage::default(),
                });
            }
            FromWorker::Effect(effect) => {
                may_ask_for_code = false;
                counted.count(&effect)?;
                let (frame, payload) = encode_answer(host.perform(effect).await)?;
                // Compared with the limit at the next request: the worker itself ends a call over its limit and
                // reports it.
                counted.bytes = counted.bytes.saturating_add(payload);
                worker.send_bytes(&frame).await?;
            }
            FromWorker::Done(done) => return counted.within(*done),
            FromWorker::Missing | FromWorker::Ready { .. } | FromWorker::Unloadable(_) => {
                return Err(Lost::Invalid("it sent a message out of turn".to_owned()));
            }
        }
    }
}

/// The gateway's side of a call.
struct EffectHost<'h> {
    effects: &'h mut dyn Effects,
    share: &'h WorkerShare,
    deadline: Instant,
}

impl EffectHost<'_> {
    /// Performs a request of the worker, which computes nothing meanwhile.
    async fn perform(&mut self, effect: Effect) -> EffectAnswer {
        let _pause = self.share.pause();
        timeout_at(self.deadline, self.effects.perform(effect)).await.unwrap_or_else(|_| interrupted())
    }
}

impl EffectTotals {
    /// The worker counts, too; a worker that exceeds the limits is compromised.
    fn count(&mut self, effect: &Effect) -> Result<(), Lost> {
        self.effects += 1;
        self.bytes = self.bytes.saturating_add(effect.payload() as u64);
        let too_many = self.effects > self.limits.host_calls || self.bytes > self.limits.host_bytes;
        if too_many { Err(Lost::Invalid("it exceeded the limits of the call".to_owned())) } else { Ok(()) }
    }

    fn within(&self, done: Done) -> Result<Done, Lost> {
        let (result, allowed) = match &done.ending {
            ScriptEnding::Value(text) => (text.len(), self.limits.result_bytes as usize),
            ScriptEnding::Threw(text)
            | ScriptEnding::NotData(text)
            | ScriptEnding::Invalid(text)
            | ScriptEnding::Trapped(text) => (text.len(), MAX_ERROR),
            _ => (0, 0),
        };
        let console: usize = done.console.iter().map(|(_, line)| line.len()).sum();
        let fits = result <= allowed
            && done.console.len() <= self.limits.console_lines as usize
            && console <= self.limits.console_bytes as usize;
        if fits { Ok(done) } else { Err(Lost::Invalid("its result is larger than allowed".to_owned())) }
    }
}

/// The encoded frame and the bytes that count. If no frame can hold the answer, or the worker would reject it, that
/// is a failure of the helper, not of the worker.
fn encode_answer(answer: EffectAnswer) -> Result<(Vec<u8>, u64), Lost> {
    let payload = answer.payload();
    if let Ok(frame) = ToWorker::Answer(answer).encode() {
        return Ok((frame, payload));
    }
    let refused = EffectAnswer::Refused(EffectError {
        kind: "HELPER_RUNTIME".to_owned(),
        helper: "host".to_owned(),
        reason: "result-too-large".to_owned(),
        message: "the response is too large for a tool".to_owned(),
        moved: payload,
    });
    let payload = refused.payload();
    let frame = ToWorker::Answer(refused).encode().map_err(|error| Lost::Invalid(error.to_string()))?;
    Ok((frame, payload))
}

fn interrupted() -> EffectAnswer {
    EffectAnswer::Refused(EffectError {
        kind: "HELPER_RUNTIME".to_owned(),
        helper: "host".to_owned(),
        reason: OUT_OF_TIME.to_owned(),
        message: "the call's time limit was reached".to_owned(),
        moved: 0,
    })
}

#[cfg(test)]
mod tests;
