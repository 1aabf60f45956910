//! One worker as the gateway sees it: a process, a socket, and frames that may all be lies.

use std::time::Duration;

use rustix::{io::Errno, net::RecvFlags};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    time::timeout,
};

use super::{
    PoolConfig, RunFailure, Tenant,
    launch::{Launcher, Process},
};
use crate::{
    Namespaces,
    death::Death,
    strength::Strength,
    wire::{FromWorker, HEADER, Start, ToWorker, body_length},
};

#[derive(Debug)]
pub struct Worker {
    process: Process,
    socket: UnixStream,
    buffer: Vec<u8>,
    filled: usize,
    strength: Strength,
    key: Option<Tenant>,
    busy: Duration,
}

/// What came instead of a frame.
#[derive(Debug)]
pub enum Lost {
    Ended,
    Nonsense(String),
}

impl Worker {
    /// Starts a process and waits until it has locked itself in.
    pub async fn start(launcher: &Launcher, config: &PoolConfig) -> Result<Self, RunFailure> {
        let unavailable = |error: std::io::Error| RunFailure::Unavailable(error.to_string());
        let (process, socket) = launcher.launch().await.map_err(unavailable)?;
        let socket = UnixStream::from_std(socket).map_err(unavailable)?;
        let (buffer, strength) = (vec![0; USUAL_FRAME], Strength::NONE);
        let mut worker =
            Self { process, socket, buffer, filled: 0, strength, key: None, busy: Duration::ZERO };
        let start =
            Start { cpu_seconds: config.cpu_seconds, namespaces: config.namespaces == Namespaces::Enter };
        let told = worker.send(&ToWorker::Start(start)).await;
        let ready = match told {
            Ok(()) => timeout(START_TIME, worker.receive()).await.unwrap_or(Err(Lost::Ended)),
            Err(lost) => Err(lost),
        };
        let Ok(FromWorker::Ready { strength }) = ready else {
            let death = worker.bury().await;
            return Err(RunFailure::Unavailable(format!("a worker ended before it was ready: {death}")));
        };
        worker.strength = Strength::from_bits(strength)
            .ok_or_else(|| RunFailure::Unavailable("the worker is of another build".to_owned()))?;
        Ok(worker)
    }

    pub fn strength(&self) -> Strength {
        self.strength
    }

    /// Nobody's code has run in it.
    pub fn is_fresh(&self) -> bool {
        self.process.calls() == 0
    }

    pub fn key(&self) -> Option<&Tenant> {
        self.key.as_ref()
    }

    /// Counts a call and binds the worker to whom it serves from now on.
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

    /// Counts how long a call took, by our clock. It cannot have used much more processor time than that: of a worker's
    /// two threads one only ticks.
    pub fn count_time(&mut self, taken: Duration) {
        self.busy = self.busy.saturating_add(taken);
    }

    /// The time of all its calls.
    pub fn busy(&self) -> Duration {
        self.busy
    }

    /// Nothing but the answer to the last frame may have come, not even the end.
    ///
    /// The kernel is asked, not the runtime, which may not have heard of it yet.
    pub fn is_silent(&self) -> bool {
        let mut next = [0_u8];
        let look = rustix::net::recv(&self.socket, &mut next, RecvFlags::PEEK | RecvFlags::DONTWAIT);
        self.filled == 0 && matches!(look, Err(Errno::AGAIN))
    }

    pub async fn bury(self) -> Death {
        drop(self.socket);
        self.process.bury().await
    }

    pub async fn send(&mut self, frame: &ToWorker) -> Result<(), Lost> {
        let bytes = frame.encode().map_err(|error| Lost::Nonsense(error.to_string()))?;
        self.send_bytes(&bytes).await
    }

    /// A frame that is encoded already.
    pub async fn send_bytes(&mut self, frame: &[u8]) -> Result<(), Lost> {
        self.socket.write_all(frame).await.map_err(|_| Lost::Ended)
    }

    /// The next frame. Cancel-safe: what has arrived stays in the buffer.
    pub async fn receive(&mut self) -> Result<FromWorker, Lost> {
        let nonsense = |error: crate::wire::WireError| Lost::Nonsense(error.to_string());
        loop {
            if let Some(header) =
                self.buffer.get(..self.filled).and_then(|filled| filled.first_chunk::<HEADER>())
            {
                let (kind, length) = body_length(*header).map_err(nonsense)?;
                let whole = HEADER + length;
                if self.filled >= whole {
                    let body = self.buffer.get(HEADER..whole).unwrap_or_default();
                    let frame = FromWorker::decode(kind, body).map_err(nonsense)?;
                    self.buffer.copy_within(whole..self.filled, 0);
                    self.filled -= whole;
                    // A large answer must not keep its memory until the worker is recycled.
                    self.buffer.truncate(USUAL_FRAME.max(self.filled));
                    return Ok(frame);
                }
                // Grown with what arrives: a header alone must not cost the gateway what it announces.
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
