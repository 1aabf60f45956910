//! Pool of jailed workers, shared between calls as configured and refilled in the background.

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
    layers::{JailKind, LayerSet},
    wire::{Done, Effect, EffectAnswer, ScriptEnding},
};

/// Size of the pool, and which calls may share a worker.
#[derive(Clone, Debug)]
pub struct PoolConfig {
    /// The program to start as a worker, usually the current executable. Its `main` must call `run_if_worker`
    /// first.
    pub program: PathBuf,
    /// Calls that may hold a worker at the same time, whether they compute or wait for the gateway. No caller gets
    /// all workers.
    pub workers: usize,
    /// Calls of one caller that may compute at the same time.
    pub processors: usize,
    /// Unused workers kept ready in addition to those in use.
    pub spares: usize,
    /// Calls that may wait for a worker; further calls are refused at once.
    pub waiting: usize,
    /// A worker is replaced after this many calls.
    pub recycle_after: u32,
    pub isolation: Isolation,
    /// Workers without these layers are not used.
    pub required: LayerSet,
    /// Whether workers may enter namespaces. See [`crate::Namespaces`].
    pub namespaces: crate::Namespaces,
    /// CPU time for a worker's whole life. A worker is replaced when its calls have taken half of it.
    pub cpu_seconds: u64,
}

/// `worker.isolation`: which calls may share a worker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Isolation {
    Shared,
    PerCaller,
    PerTool,
    /// One process per call.
    PerCall,
}

/// Owner of a call. Compared, never displayed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Tenant {
    pub caller: String,
    pub tool: [u8; 32],
}

/// Performs what a tool requests, within the call's grants.
pub trait Effects: Send {
    fn perform(&mut self, effect: Effect) -> Pin<Box<dyn Future<Output = EffectAnswer> + Send + '_>>;
}

/// A call that ran to an end, successful or not.
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptReport {
    pub done: Done,
    pub strength: LayerSet,
    /// The worker was killed because it did not stop by itself.
    pub killed: bool,
    /// Identifies the worker: calls with the same number shared a process.
    pub worker: u64,
}

/// Why a call has no report.
#[derive(Debug)]
pub enum WorkerFailure {
    /// No worker is free, and too many calls wait already.
    Busy,
    /// No worker can be started on this host, or none is strong enough.
    Unavailable(String),
    /// The worker died during the call.
    Died(Death),
    /// The worker sent an invalid message and was killed.
    Invalid(String),
    /// The arguments or the code do not fit into a frame.
    TooLarge,
}

impl fmt::Display for WorkerFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Busy => formatter
                .write_str("all workers are busy and the queue is full (`worker.queue`); try again later"),
            Self::Unavailable(why) => write!(formatter, "no worker can be started: {why}"),
            Self::Died(death) => write!(formatter, "the worker died: {death}"),
            Self::Invalid(what) => write!(formatter, "the worker was killed: {what}"),
            Self::TooLarge => formatter.write_str("the arguments or the code are too large"),
        }
    }
}

impl std::error::Error for WorkerFailure {}

/// Cheap to clone; the workers end with the last clone.
#[derive(Clone, Debug)]
pub struct Pool(Arc<PoolInner>);

#[derive(Debug)]
struct PoolInner {
    config: PoolConfig,
    launcher: Launcher,
    shares: Shares,
    idle: Mutex<VecDeque<Worker>>,
}

impl Pool {
    /// Starts no worker yet; [`Pool::warm`] does. Ends of workers are not reported.
    pub fn new(config: PoolConfig) -> std::io::Result<Self> {
        Self::watched(config, Arc::new(|_: &WorkerEnd| ()))
    }

    /// Like `new`, and calls `on_end` for every worker that ends. The end of an idle worker is noticed within
    /// seconds.
    pub fn watched(config: PoolConfig, on_end: OnEnd) -> std::io::Result<Self> {
        let launcher = Launcher::start(&config, on_end)?;
        let PoolConfig { workers, processors, waiting, .. } = config;
        let shares = Shares::new(ShareLimits { workers, processors, waiting });
        Ok(Self(Arc::new(PoolInner { config, launcher, shares, idle: Mutex::new(VecDeque::new()) })))
    }

    /// Starts the workers and returns the strength of their jail. An error means that no call can run on this host.
    pub async fn warm(&self) -> Result<LayerSet, WorkerFailure> {
        let worker = self.0.start().await?;
        let strength = worker.strength();
        self.0.put(worker);
        self.top_up();
        Ok(strength)
    }

    /// A worker for one call of `tenant`, exclusive until the lease ends. Dropping a running call kills the worker.
    pub async fn lease(&self, tenant: &Tenant) -> Result<Lease, WorkerFailure> {
        let share = self.0.shares.take(tenant).await.ok_or(WorkerFailure::Busy)?;
        let key = self.0.key(tenant);
        let worker = match self.0.take(key.as_ref()) {
            Some(worker) => worker,
            None => self.0.start().await?,
        };
        self.top_up();
        Ok(Lease::new(self.clone(), worker, share, key))
    }

    /// Ends idle workers. If one is already dead, its death is reported before this returns.
    pub fn retire_idle(&self) {
        let idle: Vec<Worker> = self.0.idle().drain(..).collect();
        drop(idle);
        self.0.launcher.settle();
    }

    /// Starts spare workers in the background for the next calls.
    fn top_up(&self) {
        // A worker that died meanwhile does not count.
        let is_spare = |worker: &&Worker| worker.is_fresh() && worker.is_silent();
        let fresh = self.0.idle().iter().filter(is_spare).count();
        let missing = self.0.config.spares.saturating_sub(fresh + self.0.launcher.starting());
        for _ in 0..missing {
            let inner = Arc::clone(&self.0);
            let starting = inner.launcher.mark_starting();
            tokio::spawn(async move {
                let started = inner.start().await;
                drop(starting);
                if let Ok(worker) = started {
                    inner.put(worker);
                }
            });
        }
    }
}

impl PoolInner {
    async fn start(&self) -> Result<Worker, WorkerFailure> {
        let worker = Worker::start(&self.launcher, &self.config).await?;
        let missing = worker.strength().missing(JailKind::Worker, self.config.required);
        if missing.is_empty() {
            return Ok(worker);
        }
        Err(WorkerFailure::Unavailable(format!("this host does not enforce {}", missing.names().join(", "))))
    }

    /// The values that two calls must share to use the same worker; `None` if any calls may.
    fn key(&self, tenant: &Tenant) -> Option<Tenant> {
        match self.config.isolation {
            Isolation::Shared => None,
            Isolation::PerCaller => Some(Tenant { caller: tenant.caller.clone(), tool: [0; 32] }),
            Isolation::PerTool => Some(Tenant { caller: String::new(), tool: tenant.tool }),
            Isolation::PerCall => Some(tenant.clone()),
        }
    }

    /// An idle worker that is alive and has sent nothing. A dead or misbehaving one would fail an innocent call.
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
        // Surplus workers are ended, the longest idle first: their tenants may not call again.
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

/// After the deadline the worker has this long to report the timeout itself; then it is killed.
const GRACE: Duration = Duration::from_millis(20);

/// The report for a worker that had to be killed.
fn killed_report(strength: LayerSet, worker: u64) -> ScriptReport {
    let usage = crate::wire::ScriptUsage::default();
    let done = Done { ending: ScriptEnding::Timeout, console: Vec::new(), console_dropped: 0, usage };
    ScriptReport { done, strength, killed: true, worker }
}
