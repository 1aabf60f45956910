//! The thread that starts workers and reaps them. It lives as long as the pool.
//!
//! The kernel kills a worker when the *thread* that started it ends, which must therefore never end. Waiting for a
//! process also blocks, which an async task must not do. The thread checks idle workers as well: otherwise their
//! deaths would be noticed late or never.

use std::{
    collections::BTreeMap,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicUsize, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::sync::oneshot;

use super::PoolConfig;
use crate::death::{Death, describe_exit};

/// A worker that has ended, for whatever cause.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkerEnd {
    /// Number of the worker, as in a call's report.
    pub worker: u64,
    /// Number of calls it received, including the one during which it may have ended.
    pub calls: u32,
    pub death: Death,
}

/// Called once for every worker that ends, idle or not. It blocks the thread that starts workers.
pub type OnEnd = Arc<dyn Fn(&WorkerEnd) + Send + Sync>;

#[derive(Debug)]
pub struct Launcher {
    requests: mpsc::Sender<LauncherRequest>,
    starting: Arc<AtomicUsize>,
}

/// Counts a worker that is being started, until dropped.
pub struct StartingWorker(Arc<AtomicUsize>);

impl Drop for StartingWorker {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

enum LauncherRequest {
    /// With the sender through which the new process will be reaped.
    Start(mpsc::Sender<LauncherRequest>, oneshot::Sender<io::Result<(WorkerProcess, UnixStream)>>),
    Reap {
        worker: u64,
        grace: Duration,
        reply: Option<oneshot::Sender<Death>>,
    },
    /// Answered when all earlier requests are done.
    Settle(mpsc::Sender<()>),
}

/// A running worker process. Dropping it kills and reaps it.
#[derive(Debug)]
pub struct WorkerProcess {
    number: u64,
    calls: Arc<AtomicU32>,
    requests: mpsc::Sender<LauncherRequest>,
    is_reaped: bool,
}

impl WorkerProcess {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of calls it has received.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    pub fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits briefly for its end, then kills it. Returns the cause of death.
    pub async fn reap(mut self) -> Death {
        let (reply, answer) = oneshot::channel();
        self.request_reap(EXIT_GRACE, Some(reply));
        answer.await.unwrap_or(Death::Killed)
    }

    fn request_reap(&mut self, grace: Duration, reply: Option<oneshot::Sender<Death>>) {
        if !self.is_reaped {
            self.is_reaped = true;
            let _ = self.requests.send(LauncherRequest::Reap { worker: self.number, grace, reply });
        }
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.request_reap(Duration::ZERO, None);
    }
}

impl Launcher {
    pub fn start(config: &PoolConfig, on_end: OnEnd) -> io::Result<Self> {
        let (requests, inbox) = mpsc::channel();
        let keeper =
            WorkerKeeper { program: config.program.clone(), on_end, kept: BTreeMap::new(), started: 0 };
        thread::Builder::new().name("worker-launcher".to_owned()).spawn(move || keeper.serve(&inbox))?;
        Ok(Self { requests, starting: Arc::new(AtomicUsize::new(0)) })
    }

    pub async fn launch(&self) -> io::Result<(WorkerProcess, UnixStream)> {
        let (reply, answer) = oneshot::channel();
        self.requests
            .send(LauncherRequest::Start(self.requests.clone(), reply))
            .map_err(|_| io::Error::other("the launcher has ended"))?;
        answer.await.map_err(|_| io::Error::other("the launcher has ended"))?
    }

    /// Blocks until all workers dropped earlier are reaped and reported.
    pub fn settle(&self) {
        let (done, answer) = mpsc::channel();
        let _ = self.requests.send(LauncherRequest::Settle(done));
        // An error means that the thread has ended, so no process is left to reap.
        let _ = answer.recv();
    }

    pub fn starting(&self) -> usize {
        self.starting.load(Ordering::SeqCst)
    }

    pub fn mark_starting(&self) -> StartingWorker {
        self.starting.fetch_add(1, Ordering::SeqCst);
        StartingWorker(Arc::clone(&self.starting))
    }
}

/// State of the thread: every worker until it is reaped.
struct WorkerKeeper {
    program: PathBuf,
    on_end: OnEnd,
    kept: BTreeMap<u64, KeptWorker>,
    started: u64,
}

struct KeptWorker {
    child: Child,
    calls: Arc<AtomicU32>,
    is_reported: bool,
}

impl WorkerKeeper {
    fn serve(mut self, inbox: &mpsc::Receiver<LauncherRequest>) {
        let mut last_check = Instant::now();
        // Every process holds a sender, so this ends when the pool is gone and the last worker is reaped.
        loop {
            match inbox.recv_timeout(CHECK_INTERVAL) {
                Ok(LauncherRequest::Start(requests, reply)) => {
                    let _ = reply.send(self.start(requests));
                }
                Ok(LauncherRequest::Reap { worker, grace, reply }) => {
                    let death = self.reap(worker, grace);
                    if let Some(reply) = reply {
                        let _ = reply.send(death);
                    }
                }
                Ok(LauncherRequest::Settle(done)) => {
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if last_check.elapsed() >= CHECK_INTERVAL {
                self.check_idle();
                last_check = Instant::now();
            }
        }
    }

    fn start(&mut self, requests: mpsc::Sender<LauncherRequest>) -> io::Result<(WorkerProcess, UnixStream)> {
        let (child, socket) = start(&self.program)?;
        let (number, calls) = (self.started, Arc::new(AtomicU32::new(0)));
        self.started += 1;
        self.kept.insert(number, KeptWorker { child, calls: Arc::clone(&calls), is_reported: false });
        Ok((WorkerProcess { number, calls, requests, is_reaped: false }, socket))
    }

    /// Reports workers that died while no call waited for them.
    fn check_idle(&mut self) {
        for (number, kept) in &mut self.kept {
            if let Ok(Some(status)) = kept.child.try_wait() {
                kept.report(*number, describe_exit(status), &self.on_end);
            }
        }
    }

    fn reap(&mut self, number: u64, grace: Duration) -> Death {
        // A process is reaped once.
        let Some(mut kept) = self.kept.remove(&number) else { return Death::Killed };
        let death = wait_for_end(&mut kept.child, grace);
        kept.report(number, death, &self.on_end);
        death
    }
}

impl KeptWorker {
    fn report(&mut self, worker: u64, death: Death, on_end: &OnEnd) {
        if !self.is_reported {
            self.is_reported = true;
            on_end(&WorkerEnd { worker, calls: self.calls.load(Ordering::SeqCst), death });
        }
    }
}

fn start(program: &Path) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(program);
    command
        .arg0(crate::WORKER_NAME)
        .env_clear()
        .env(ONE_ARENA.0, ONE_ARENA.1)
        .stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn()?;
    Ok((child, ours))
}

fn wait_for_end(child: &mut Child, grace: Duration) -> Death {
    let mut waited = Duration::ZERO;
    while waited < grace {
        if let Ok(Some(status)) = child.try_wait() {
            return describe_exit(status);
        }
        thread::sleep(STEP);
        waited += STEP;
    }
    // If it ended in between, the kill fails and the wait still returns its status.
    let _ = child.kill();
    child.wait().map_or(Death::Killed, describe_exit)
}

/// glibc shrinks a second arena only after reading `/proc`, for which the jail would kill the worker.
const ONE_ARENA: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.arena_max=1");
const STEP: Duration = Duration::from_millis(1);
const EXIT_GRACE: Duration = Duration::from_millis(50);
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
