//! Who starts workers, and who buries them? One thread that lives as long as the pool.
//!
//! The kernel kills a worker when the *thread* that started it ends, so it must be one that never does; and waiting for
//! a death blocks, which a task must not.

use std::{
    io,
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::CommandExt},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
    thread,
    time::Duration,
};

use tokio::sync::{Semaphore, oneshot};

use super::PoolConfig;
use crate::death::{Death, describe_exit};

#[derive(Debug)]
pub struct Launcher {
    orders: mpsc::Sender<Order>,
    /// Places in the queue for a worker.
    pub waiting: Arc<Semaphore>,
    starting: Arc<AtomicUsize>,
    numbers: AtomicU64,
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
        child: Child,
        patience: Duration,
        told: Option<oneshot::Sender<Death>>,
    },
}

/// A running worker process. Dropping it kills and buries it.
#[derive(Debug)]
pub struct Process {
    child: Option<Child>,
    orders: mpsc::Sender<Order>,
}

impl Process {
    /// Waits for its end a moment, then kills it; either way tells how it died.
    pub async fn bury(mut self) -> Death {
        let (told, hear) = oneshot::channel();
        if let Some(child) = self.child.take() {
            let order = Order::Bury { child, patience: LAST_BREATH, told: Some(told) };
            let _ = self.orders.send(order);
        }
        hear.await.unwrap_or(Death::Killed)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let _ = self.orders.send(Order::Bury { child, patience: Duration::ZERO, told: None });
        }
    }
}

impl Launcher {
    pub fn start(config: &PoolConfig) -> io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let program = config.program.clone();
        thread::Builder::new().name("worker-launcher".to_owned()).spawn(move || serve(&program, &inbox))?;
        Ok(Self {
            orders,
            waiting: Arc::new(Semaphore::new(config.waiting)),
            starting: Arc::new(AtomicUsize::new(0)),
            numbers: AtomicU64::new(0),
        })
    }

    pub async fn launch(&self) -> io::Result<(Process, UnixStream)> {
        let (reply, answer) = oneshot::channel();
        self.orders
            .send(Order::Start(self.orders.clone(), reply))
            .map_err(|_| io::Error::other("the launcher has ended"))?;
        answer.await.map_err(|_| io::Error::other("the launcher has ended"))?
    }

    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub fn starting(&self) -> usize {
        self.starting.load(Ordering::SeqCst)
    }

    pub fn promise(&self) -> Promise {
        self.starting.fetch_add(1, Ordering::SeqCst);
        Promise(Arc::clone(&self.starting))
    }
}

fn serve(program: &Path, inbox: &mpsc::Receiver<Order>) {
    // Every process holds a sender, so that this ends when the pool is gone and the last worker is buried.
    while let Ok(order) = inbox.recv() {
        match order {
            Order::Start(orders, reply) => {
                let started =
                    start(program).map(|(child, socket)| (Process { child: Some(child), orders }, socket));
                let _ = reply.send(started);
            }
            Order::Bury { child, patience, told } => {
                let death = bury(child, patience);
                if let Some(told) = told {
                    let _ = told.send(death);
                }
            }
        }
    }
}

fn start(program: &Path) -> io::Result<(Child, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mut command = Command::new(program);
    command.arg0(crate::WORKER_NAME).env_clear().stdin(Stdio::from(OwnedFd::from(theirs)));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn()?;
    Ok((child, ours))
}

fn bury(mut child: Child, patience: Duration) -> Death {
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

const STEP: Duration = Duration::from_millis(1);
const LAST_BREATH: Duration = Duration::from_millis(50);
