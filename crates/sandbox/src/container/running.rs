//! How is a container fed, heard out and ended?

use std::{
    io,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin},
    time::timeout,
};

use super::{
    ContainerReport, ContainerStrength, Shortage, client, inspect::Inspected, latch, leash::Leash,
    look::Events, making::Due, owner::PATIENCE, plan::Plan,
};
use crate::{Ending, OutputCaps, ProxySockets};

/// A container that is made and looked at, and runs when it is finished. Dropping it removes the container.
#[derive(Debug)]
pub struct RunningContainer {
    pub(super) leash: Leash,
    /// Holds the covers of what is hidden, and the binds open.
    pub(super) plan: Plan,
    pub(super) strength: ContainerStrength,
    pub(super) events: Events,
    pub(super) sockets: Option<ProxySockets>,
    /// Where the container is started already, and waits behind its latch.
    pub(super) client: Option<Child>,
    pub(super) due: Due,
}

impl RunningContainer {
    /// What stands around the command.
    pub fn strength(&self) -> &ContainerStrength {
        &self.strength
    }

    /// The sockets of [`Network::Proxied`]; once.
    pub fn take_sockets(&mut self) -> Option<ProxySockets> {
        self.sockets.take()
    }

    /// Starts the command, feeds it, hears it out, and ends it at its deadline or when it says too much.
    pub async fn finish(self, stdin: Vec<u8>, caps: OutputCaps) -> ContainerReport {
        let Self { leash, plan, strength, events, sockets, client, due } = self;
        // Whoever did not take them wants nobody to answer.
        drop(sockets);
        let started = Instant::now();
        let (mut out, mut err) = (Captured::up_to(caps.stdout), Captured::up_to(caps.stderr));
        let (client, first) = match client {
            Some(latched) => (Ok(latched), &[latch::GO][..]),
            None => (client::attach(leash.runtime(), &leash.name), &[][..]),
        };
        let end = match client {
            Ok(client) => {
                let talk = Talk { leash: &leash, events: &events, deadline: due.rest() };
                talk.to_the_end(client, [first, &stdin], &mut out, &mut err).await
            }
            Err(error) => End::Broken(error.to_string()),
        };
        let elapsed = started.elapsed();
        let mut shortages = Vec::new();
        let ending = match end {
            _ if out.is_over => Ending::OutputTooLarge,
            End::Late => Ending::TimedOut,
            End::Broken(why) => Ending::JailFailed(why),
            End::Ended { shortages: seen } => {
                shortages = seen;
                account(&leash, &mut shortages, &err.bytes).await
            }
        };
        // Whoever is late does not wait for the clearing away as well.
        if ending == Ending::TimedOut {
            drop(leash);
        } else {
            leash.remove().await;
        }
        drop(plan);
        ContainerReport {
            ending,
            stdout: out.bytes,
            stderr: err.bytes,
            stderr_cut: err.is_over,
            shortages,
            strength,
            elapsed,
        }
    }
}

/// How a conversation ended.
enum End {
    Ended { shortages: Vec<Shortage> },
    Late,
    Broken(String),
}

struct Talk<'a> {
    leash: &'a Leash,
    events: &'a Events,
    deadline: Duration,
}

impl Talk<'_> {
    async fn to_the_end(
        &self,
        mut client: Child,
        stdin: [&[u8]; 2],
        out: &mut Captured,
        err: &mut Captured,
    ) -> End {
        let (input, stdout, stderr) = (client.stdin.take(), client.stdout.take(), client.stderr.take());
        let whole = async {
            let mut shortages = Vec::new();
            let pipes = async {
                tokio::join!(feed(input, stdin), out.hear_or_kill(stdout, self.leash), err.hear(stderr)).0
            };
            let client_ends = async {
                let (fed, ended) = tokio::join!(pipes, client.wait());
                fed.and(ended)
            };
            let watch = async {
                self.leash.death().await;
                shortages = self.events.shortages();
                std::future::pending().await
            };
            let ended = tokio::select! { ended = client_ends => ended, never = watch => never };
            ended.map(|_| shortages)
        };
        let mut whole = pin!(whole);
        match timeout(self.deadline, &mut whole).await {
            Ok(Ok(shortages)) => End::Ended { shortages },
            Ok(Err(error)) => End::Broken(format!("the runtime's client is lost: {error}")),
            Err(_) => {
                self.leash.kill();
                let _ = timeout(LAST_BREATH, whole).await;
                End::Late
            }
        }
    }
}

/// What the runtime says of a container whose client has ended; the client's own code may be its own.
async fn account(leash: &Leash, shortages: &mut Vec<Shortage>, stderr: &[u8]) -> Ending {
    let (runtime, name) = (Arc::clone(leash.runtime()), leash.name.clone());
    let inspected = tokio::task::spawn_blocking(move || Inspected::ask(&runtime, &name, PATIENCE)).await;
    let state = match inspected {
        Ok(Ok(inspected)) => inspected.state,
        Ok(Err(why)) => return Ending::JailFailed(format!("the runtime does not say how it ended: {why}")),
        Err(error) => return Ending::JailFailed(error.to_string()),
    };
    if state.oom_killed && !shortages.contains(&Shortage::Memory) {
        shortages.push(Shortage::Memory);
    }
    match state.code() {
        None => Ending::JailFailed(format!("the command did not start: {}", client::complaint(stderr))),
        Some(KILLED) if shortages.contains(&Shortage::Memory) => Ending::OutOfMemory,
        Some(code) => Ending::Exited(code),
    }
}

/// The first bytes of an output.
struct Captured {
    bytes: Vec<u8>,
    piece: Vec<u8>,
    cap: usize,
    is_over: bool,
}

impl Captured {
    fn up_to(cap: usize) -> Self {
        Self { bytes: Vec::new(), piece: vec![0; PIECE], cap, is_over: false }
    }

    /// Takes what fits, and throws away the rest.
    async fn hear(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        while self.take(&mut pipe).await {}
    }

    async fn hear_or_kill(&mut self, pipe: Option<impl AsyncRead + Unpin>, leash: &Leash) {
        let Some(mut pipe) = pipe else { return };
        while self.take(&mut pipe).await {
            if self.is_over {
                leash.kill();
                return;
            }
        }
    }

    /// Whether there may be more.
    async fn take(&mut self, pipe: &mut (impl AsyncRead + Unpin)) -> bool {
        let Ok(got @ 1..) = pipe.read(&mut self.piece).await else { return false };
        let fits = got.min(self.cap.saturating_sub(self.bytes.len()));
        self.bytes.extend(self.piece.get(..fits).unwrap_or_default());
        self.is_over |= fits < got;
        true
    }
}

/// A command that does not read its input is none the worse for it; a latch that does not get its byte never becomes one.
async fn feed(pipe: Option<ChildStdin>, [first, rest]: [&[u8]; 2]) -> io::Result<()> {
    if let Some(mut pipe) = pipe {
        pipe.write_all(first).await?;
        let _ = pipe.write_all(rest).await;
    }
    Ok(())
}

const PIECE: usize = 16 * 1024;

/// How the code of something killed is written.
const KILLED: u8 = 128 + 9;

/// How long a killed container may take to end. Guards against hanging.
const LAST_BREATH: Duration = Duration::from_secs(5);
