//! Who runs the next call? A pool of jailed workers, kept apart as configured, replaced without a pause.

mod launch;
mod lease;
mod shares;
mod worker;

use std::{
    collections::VecDeque,
    fmt,
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

pub use launch::{OnEnd, WorkerEnd};
pub use lease::Lease;

use self::{
    launch::Launcher,
    shares::{ShareLimits, Shares},
    worker::Worker,
};
use crate::{
    death::Death,
    strength::{Required, Strength},
    wire::{Done, Effect, EffectAnswer, Ending},
};

/// How many workers, and who may share one.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The program to start as a worker; it must call `run_if_worker` first thing. Usually this very program.
    pub program: PathBuf,
    /// Calls that may hold a worker at the same time, computing or waiting for the gateway. One caller never gets all.
    pub workers: usize,
    /// Calls of one caller that may compute at the same time.
    pub processors: usize,
    /// Untouched workers kept ready beyond those in use.
    pub spares: usize,
    /// Calls that may wait for a worker; beyond them a call is refused at once.
    pub waiting: usize,
    /// A worker is replaced after this many calls.
    pub recycle_after: u32,
    pub isolation: Isolation,
    /// Weaker workers are not used.
    pub required: Required,
    /// May workers enter namespaces? See [`crate::Namespaces`].
    pub namespaces: crate::Namespaces,
    /// Processor time of a worker's whole life. It is replaced when its calls have taken half as long.
    pub cpu_seconds: u64,
}

/// `worker.isolation`: between whose calls a worker may be shared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Isolation {
    Shared,
    PerCaller,
    PerTool,
    /// One process for each call.
    PerCall,
}

/// Whose call it is. Only compared, never shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tenant {
    pub caller: String,
    pub tool: [u8; 32],
}

/// Does what a tool asks for, with the call's grants.
pub trait Effects: Send {
    fn perform(&mut self, effect: Effect) -> Pin<Box<dyn Future<Output = EffectAnswer> + Send + '_>>;
}

/// A call that came to an end of its own, good or bad.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub done: Done,
    pub strength: Strength,
    /// The worker was killed because it did not stop by itself.
    pub killed: bool,
    /// Which worker it was: calls with the same number shared a process.
    pub worker: u64,
}

/// A call that has no report.
#[derive(Debug)]
pub enum RunFailure {
    /// No worker became free, and too many calls wait already.
    Busy,
    /// No worker can be started on this host, or none strong enough.
    Unavailable(String),
    /// The worker died under the call.
    Died(Death),
    /// The worker said what no worker says. It was killed.
    Nonsense(String),
    /// The arguments, or the code, do not fit into a frame.
    TooLarge,
}

impl fmt::Display for RunFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => {
                formatter.write_str("every worker is busy and too many calls wait for one (`worker.queue`)")
            }
            Self::Unavailable(why) => write!(formatter, "no worker can be started: {why}"),
            Self::Died(death) => write!(formatter, "the worker died: {death}"),
            Self::Nonsense(what) => write!(formatter, "the worker was stopped: {what}"),
            Self::TooLarge => formatter.write_str("the arguments or the code are too large"),
        }
    }
}

impl std::error::Error for RunFailure {}

/// Cheap to clone; the workers end with the last clone.
#[derive(Clone, Debug)]
pub struct Pool(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: PoolConfig,
    launcher: Launcher,
    shares: Shares,
    idle: Mutex<VecDeque<Worker>>,
}

impl Pool {
    /// Starts nothing yet; [`Pool::warm`] does. Nobody is told how workers end.
    pub fn new(config: PoolConfig) -> std::io::Result<Self> {
        Self::watched(config, Arc::new(|_: &WorkerEnd| ()))
    }

    /// As `new`, with somebody who is told of every worker that ends: of one that no call has within seconds.
    pub fn watched(config: PoolConfig, on_end: OnEnd) -> std::io::Result<Self> {
        let launcher = Launcher::start(&config, on_end)?;
        let PoolConfig { workers, processors, waiting, .. } = config;
        let shares = Shares::new(ShareLimits { workers, processors, waiting });
        Ok(Self(Arc::new(Inner { config, launcher, shares, idle: Mutex::new(VecDeque::new()) })))
    }

    /// Starts the workers, and tells how strong their jail is. An error means that no call will ever run here.
    pub async fn warm(&self) -> Result<Strength, RunFailure> {
        let worker = self.0.start().await?;
        let strength = worker.strength();
        self.0.put(worker);
        self.top_up();
        Ok(strength)
    }

    /// A worker for one call of `tenant`, its own for as long as the lease lives. Dropping the call in the middle kills the
    /// worker.
    pub async fn lease(&self, tenant: &Tenant) -> Result<Lease, RunFailure> {
        let share = self.0.shares.take(tenant).await.ok_or(RunFailure::Busy)?;
        let key = self.0.key(tenant);
        let worker = match self.0.take(key.as_ref()) {
            Some(worker) => worker,
            None => self.0.start().await?,
        };
        self.top_up();
        Ok(Lease::new(self.clone(), worker, share, key))
    }

    /// Ends the workers that no call has. What they died of, should one be dead already, is told before this returns.
    pub fn retire_idle(&self) {
        let idle: Vec<Worker> = self.0.idle().drain(..).collect();
        drop(idle);
        self.0.launcher.settle();
    }

    /// Starts spares in the background, so that the next call finds one.
    fn top_up(&self) {
        // One that died meanwhile is no spare.
        let is_spare = |worker: &&Worker| worker.is_fresh() && worker.is_silent();
        let fresh = self.0.idle().iter().filter(is_spare).count();
        let missing = self.0.config.spares.saturating_sub(fresh + self.0.launcher.starting());
        for _ in 0..missing {
            let inner = Arc::clone(&self.0);
            let promise = inner.launcher.promise();
            tokio::spawn(async move {
                let started = inner.start().await;
                drop(promise);
                if let Ok(worker) = started {
                    inner.put(worker);
                }
            });
        }
    }
}

impl Inner {
    async fn start(&self) -> Result<Worker, RunFailure> {
        let worker = Worker::start(&self.launcher, &self.config).await?;
        let missing = worker.strength().missing(&self.config.required);
        if missing.is_empty() {
            return Ok(worker);
        }
        Err(RunFailure::Unavailable(format!("this host does not enforce {}", missing.join(", "))))
    }

    /// What two calls must have in common to share a worker; `None` if nothing.
    fn key(&self, tenant: &Tenant) -> Option<Tenant> {
        match self.config.isolation {
            Isolation::Shared => None,
            Isolation::PerCaller => Some(Tenant { caller: tenant.caller.clone(), tool: [0; 32] }),
            Isolation::PerTool => Some(Tenant { caller: String::new(), tool: tenant.tool }),
            Isolation::PerCall => Some(tenant.clone()),
        }
    }

    /// An idle worker that is still there and has kept quiet: others would cost a call that did nothing wrong.
    fn take(&self, key: Option<&Tenant>) -> Option<Worker> {
        loop {
            let worker = self.pick(key)?;
            if worker.is_silent() {
                return Some(worker);
            }
        }
    }

    fn pick(&self, key: Option<&Tenant>) -> Option<Worker> {
        let mut idle = self.idle();
        // The most recently used one has the warmest caches.
        let own = idle.iter().rposition(|worker| !worker.is_fresh() && worker.key() == key);
        let place = own.or_else(|| idle.iter().position(Worker::is_fresh))?;
        idle.remove(place)
    }

    fn put(&self, worker: Worker) {
        let mut idle = self.idle();
        idle.push_back(worker);
        // Workers of tenants that no longer call give way; those in front have waited longest.
        let limit = self.config.workers + self.config.spares;
        let surplus = idle.len().saturating_sub(limit);
        let gone: Vec<Worker> = idle.drain(..surplus).collect();
        drop(idle);
        drop(gone);
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, VecDeque<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After the deadline the worker has this long to say so itself; then it is killed.
const GRACE: Duration = Duration::from_millis(20);

/// What the gateway reports for a worker that had to be killed.
fn killed_report(strength: Strength, worker: u64) -> Report {
    let usage = crate::wire::Usage::default();
    let done = Done { ending: Ending::Timeout, console: Vec::new(), console_dropped: 0, usage };
    Report { done, strength, killed: true, worker }
}
