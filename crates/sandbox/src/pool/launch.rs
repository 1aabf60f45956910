//! Who starts workers, and who buries them? One thread that lives as long as the pool.
//!
//! The kernel kills a worker when the *thread* that started it ends, so it must be one that never does; and waiting for
//! a death blocks, which a task must not. It also looks after workers that no call has: what one of them dies of would
//! else be known only when somebody wants it, or never.

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

/// A worker that has ended, however it did.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WorkerEnd {
    /// Which one; the same number as in a call's report.
    pub worker: u64,
    /// Calls that it was given, with the one that it may have ended under.
    pub calls: u32,
    pub death: Death,
}

/// Told once of every worker that ends, whether a call had it or not. The thread that starts workers waits for it.
pub type OnEnd = Arc<dyn Fn(&WorkerEnd) + Send + Sync>;

#[derive(Debug)]
pub struct Launcher {
    orders: mpsc::Sender<Order>,
    starting: Arc<AtomicUsize>,
}

/// A worker that is being started; counts until it is dropped.
pub struct Promise(Arc<AtomicUsize>);

impl Drop for Promise {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

enum Order {
    /// With the sender by which the new process will be buried.
    Start(mpsc::Sender<Order>, oneshot::Sender<io::Result<(Process, UnixStream)>>),
    Bury {
        worker: u64,
        patience: Duration,
        told: Option<oneshot::Sender<Death>>,
    },
    /// Answered when every order before it is done.
    Settle(mpsc::Sender<()>),
}

/// A running worker process. Dropping it kills and buries it.
#[derive(Debug)]
pub struct Process {
    number: u64,
    calls: Arc<AtomicU32>,
    orders: mpsc::Sender<Order>,
    is_buried: bool,
}

impl Process {
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Calls that it was given so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    pub fn count_call(&self) {
        self.calls.fetch_add(1, Ordering::SeqCst);
    }

    /// Waits for its end a moment, then kills it; either way tells how it died.
    pub async fn bury(mut self) -> Death {
        let (told, hear) = oneshot::channel();
        self.order_burial(LAST_BREATH, Some(told));
        hear.await.unwrap_or(Death::Killed)
    }

    fn order_burial(&mut self, patience: Duration, told: Option<oneshot::Sender<Death>>) {
        if !self.is_buried {
            self.is_buried = true;
            let _ = self.orders.send(Order::Bury { worker: self.number, patience, told });
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.order_burial(Duration::ZERO, None);
    }
}

impl Launcher {
    pub fn start(config: &PoolConfig, on_end: OnEnd) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let keeper = Keeper { program: config.program.clone(), on_end, kept: BTreeMap::new(), started: 0 };
        thread::Builder::new().name("worker-launcher".to_owned()).spawn(move || keeper.serve(&inbox))?;
        Ok(Self { orders, starting: Arc::new(AtomicUsize::new(0)) })
    }

    pub async fn launch(&self) -> io::Result<(Process, UnixStream)> {
        let (reply, answer) = oneshot::channel();
        self.orders
            .send(Order::Start(self.orders.clone(), reply))
            .map_err(|_| io::Error::other("the launcher has ended"))?;
        answer.await.map_err(|_| io::Error::other("the launcher has ended"))?
    }

    /// Blocks until the workers that were dropped before are buried, and whoever watches has been told.
    pub fn settle(&self) {
        let (done, hear) = mpsc::channel();
        let _ = self.orders.send(Order::Settle(done));
        // An error means that the launcher has ended, and that nobody is left to be buried.
        let _ = hear.recv();
    }

    pub fn starting(&self) -> usize {
        self.starting.load(Ordering::SeqCst)
    }

    pub fn promise(&self) -> Promise {
        self.starting.fetch_add(1, Ordering::SeqCst);
        Promise(Arc::clone(&self.starting))
    }
}

/// What the thread holds: every worker until it is buried.
struct Keeper {
    program: PathBuf,
    on_end: OnEnd,
    kept: BTreeMap<u64, Kept>,
    started: u64,
}

struct Kept {
    child: Child,
    calls: Arc<AtomicU32>,
    is_told: bool,
}

impl Keeper {
    fn serve(mut self, inbox: &mpsc::Receiver<Order>) {
        let mut last_look = Instant::now();
        // Every process holds a sender, so that this ends when the pool is gone and the last worker is buried.
        loop {
            match inbox.recv_timeout(BETWEEN_LOOKS) {
                Ok(Order::Start(orders, reply)) => {
                    let _ = reply.send(self.start(orders));
                }
                Ok(Order::Bury { worker, patience, told }) => {
                    let death = self.bury(worker, patience);
                    if let Some(told) = told {
                        let _ = told.send(death);
                    }
                }
                Ok(Order::Settle(done)) => {
                    let _ = done.send(());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            if last_look.elapsed() >= BETWEEN_LOOKS {
                self.look();
                last_look = Instant::now();
            }
        }
    }

    fn start(&mut self, orders: mpsc::Sender<Order>) -> io::Result<(Process, UnixStream)> {
        let (child, socket) = start(&self.program)?;
        let (number, calls) = (self.started, Arc::new(AtomicU32::new(0)));
        self.started += 1;
        self.kept.insert(number, Kept { child, calls: Arc::clone(&calls), is_told: false });
        Ok((Process { number, calls, orders, is_buried: false }, socket))
    }

    /// Tells of those that died while nobody waited for them.
    fn look(&mut self) {
        for (number, kept) in &mut self.kept {
            if let Ok(Some(status)) = kept.child.try_wait() {
                kept.tell(*number, describe_exit(status), &self.on_end);
            }
        }
    }

    fn bury(&mut self, number: u64, patience: Duration) -> Death {
        // A process orders its burial once.
        let Some(mut kept) = self.kept.remove(&number) else { return Death::Killed };
        let death = wait_for_end(&mut kept.child, patience);
        kept.tell(number, death, &self.on_end);
        death
    }
}

impl Kept {
    fn tell(&mut self, worker: u64, death: Death, on_end: &OnEnd) {
        if !self.is_told {
            self.is_told = true;
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

fn wait_for_end(child: &mut Child, patience: Duration) -> Death {
    let mut waited = Duration::ZERO;
    while waited < patience {
        if let Ok(Some(status)) = child.try_wait() {
            return describe_exit(status);
        }
        thread::sleep(STEP);
        waited += STEP;
    }
    // It may have ended in between; then the kill fails and the wait still tells.
    let _ = child.kill();
    child.wait().map_or(Death::Killed, describe_exit)
}

/// A second heap of the C library shrinks only after a look into `/proc`, for which the jail would kill the worker.
const ONE_ARENA: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.arena_max=1");
const STEP: Duration = Duration::from_millis(1);
const LAST_BREATH: Duration = Duration::from_millis(50);
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);
