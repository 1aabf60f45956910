//! One worker as the gateway sees it: a process, a socket, and frames that cannot be trusted.

use std::time::Duration;

use rustix::{io::Errno, net::RecvFlags};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use super::{
    PoolConfig, Tenant, WorkerFailure,
    launch::{Launcher, WorkerProcess},
};
use crate::{
    Namespaces,
    death::Death,
    layers::{JailKind, LayerSet},
    wire::{FromWorker, HEADER, StartWorker, ToWorker, body_length},
};

#[derive(Debug)]
pub struct Worker {
    process: WorkerProcess,
    socket: UnixStream,
    buffer: Vec<u8>,
    filled: usize,
    strength: LayerSet,
    key: Option<Tenant>,
    busy: Duration,
}

/// Why no valid frame was received.
#[derive(Debug)]
pub enum Lost {
    Ended,
    Invalid(String),
}

impl Worker {
    /// Starts a process and waits until it is jailed.
    pub async fn start(launcher: &Launcher, config: &PoolConfig) -> Result<Self, WorkerFailure> {
        let unavailable = |error: std::io::Error| WorkerFailure::Unavailable(error.to_string());
        let (process, socket) = launcher.launch().await.map_err(unavailable)?;
        let socket = UnixStream::from_std(socket).map_err(unavailable)?;
        let (buffer, strength) = (vec![0; USUAL_FRAME], LayerSet::NONE);
        let mut worker =
            Self { process, socket, buffer, filled: 0, strength, key: None, busy: Duration::ZERO };
        let start = StartWorker {
            cpu_seconds: config.cpu_seconds,
            namespaces: config.namespaces == Namespaces::Enter,
        };
        let sent = worker.send(&ToWorker::Start(start)).await;
        let ready = match sent {
            Ok(()) => timeout(START_TIME, worker.receive()).await.unwrap_or(Err(Lost::Ended)),
            Err(lost) => Err(lost),
        };
        let Ok(FromWorker::Ready { strength }) = ready else {
            let death = worker.reap().await;
            return Err(WorkerFailure::Unavailable(format!("a worker ended before it was ready: {death}")));
        };
        worker.strength = LayerSet::from_bits(JailKind::Worker, strength).ok_or_else(|| {
            WorkerFailure::Unavailable(
                "the worker reports layers that no worker has; it may be from another build of toolgate, so restart \
                 the gateway"
                    .to_owned(),
            )
        })?;
        Ok(worker)
    }

    pub fn strength(&self) -> LayerSet {
        self.strength
    }

    /// No tool has run in it.
    pub fn is_fresh(&self) -> bool {
        self.process.calls() == 0
    }

    pub fn key(&self) -> Option<&Tenant> {
        self.key.as_ref()
    }

    /// Counts a call and binds the worker to the tenant it serves from now on.
    pub fn claim(&mut self, key: Option<Tenant>) {
        self.key = key;
        self.process.count_call();
    }

    pub fn number(&self) -> u64 {
        self.process.number()
    }

    pub fn calls(&self) -> u32 {
        self.process.calls()
    }

    /// Adds the duration of a call by our clock. CPU time cannot be much more than that: one of the worker's two
    /// threads is only a timer.
    pub fn count_time(&mut self, taken: Duration) {
        self.busy = self.busy.saturating_add(taken);
    }

    /// Total duration of its calls.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Whether nothing has arrived, not even the end of the stream.
    ///
    /// Asks the kernel, because the async runtime may not have noticed yet.
    pub fn is_silent(&self) -> bool {
        let mut next = [0_u8];
        let look = rustix::net::recv(&self.socket, &mut next, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        self.filled == 0 && matches!(look, Err(Errno::AGAIN))
    }

    pub async fn reap(self) -> Death {
        drop(self.socket);
        self.process.reap().await
    }

    pub async fn send(&mut self, frame: &ToWorker) -> Result<(), Lost> {
        let bytes = frame.encode().map_err(|error| Lost::Invalid(error.to_string()))?;
        self.send_bytes(&bytes).await
    }

    /// Sends an encoded frame.
    pub async fn send_bytes(&mut self, frame: &[u8]) -> Result<(), Lost> {
        self.socket.write_all(frame).await.map_err(|_| Lost::Ended)
    }

    /// Receives the next frame. Cancel-safe: bytes that arrived stay in the buffer.
    pub async fn receive(&mut self) -> Result<FromWorker, Lost> {
        let invalid = |error: crate::wire::WireError| Lost::Invalid(error.to_string());
        loop {
            if let Some(header) =
                self.buffer.get(..self.filled).and_then(|filled| filled.first_chunk::<HEADER>())
            {
                let (kind, length) = body_length(*header).map_err(invalid)?;
                let whole = HEADER + length;
                if self.filled >= whole {
                    let body = self.buffer.get(HEADER..whole).unwrap_or_default();
                    let frame = FromWorker::decode(kind, body).map_err(invalid)?;
                    self.buffer.copy_within(whole..self.filled, 0);
                    self.filled -= whole;
                    // A large answer must not keep its memory until the worker is recycled.
                    self.buffer.truncate(USUAL_FRAME.max(self.filled));
                    return Ok(frame);
                }
                // Grows with received bytes: a header alone must not make the gateway allocate what it announces.
                let room = whole.min(self.filled.saturating_mul(2).max(USUAL_FRAME));
                if self.buffer.len() < room {
                    self.buffer.resize(room, 0);
                }
            }
            let into = self.buffer.get_mut(self.filled..).unwrap_or_default();
            match self.socket.read(into).await {
                Ok(0) | Err(_) => return Err(Lost::Ended),
                Ok(count) => self.filled += count,
            }
        }
    }
}

const USUAL_FRAME: usize = 16 << 10;
const START_TIME: Duration = Duration::from_secs(20);
