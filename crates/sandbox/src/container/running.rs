//! Runs the command of a created container: input, output and end.

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
    ContainerReport, ContainerStrength, Shortage, client, creation::Due, inspect::Inspected, latch,
    leash::ContainerLeash, observation::CgroupEvents, owner::COMMAND_TIMEOUT, plan::Plan,
};
use crate::{Ending, OutputCaps, ProxySockets};

/// A created and inspected container, whose command runs in `finish`. Dropping it removes the container.
#[derive(Debug)]
pub struct RunningContainer {
    pub(super) leash: ContainerLeash,
    /// Keeps the masks and binds alive.
    pub(super) plan: Plan,
    pub(super) strength: ContainerStrength,
    pub(super) events: CgroupEvents,
    pub(super) sockets: Option<ProxySockets>,
    /// Set if the container is already started and waits in its latch.
    pub(super) client: Option<Child>,
    pub(super) due: Due,
}

impl RunningContainer {
    /// The isolation layers around the command.
    pub fn strength(&self) -> &ContainerStrength {
        &self.strength
    }

    /// The sockets of [`Network::Proxied`]; returns them once.
    pub fn take_sockets(&mut self) -> Option<ProxySockets> {
        self.sockets.take()
    }

    /// Starts the command, passes its input and collects its output. Kills it at its deadline or when its output is
    /// too large.
    pub async fn finish(self, stdin: Vec<u8>, caps: OutputCaps) -> ContainerReport {
        let Self { leash, plan, strength, events, sockets, client, due } = self;
        // Unused sockets are closed, because nothing will answer there.
        drop(sockets);
        let started = Instant::now();
        let (mut out, mut err) = (CapturedOutput::up_to(caps.stdout), CapturedOutput::up_to(caps.stderr));
        let (client, first) = match client {
            Some(latched) => (Ok(latched), &[latch::GO][..]),
            None => (client::attach(leash.runtime(), &leash.name), &[][..]),
        };
        let end = match client {
            Ok(client) => {
                let conversation = Conversation { leash: &leash, events: &events, deadline: due.rest() };
                conversation.run(client, [first, &stdin], &mut out, &mut err).await
            }
            Err(error) => ConversationEnd::Broken(error.to_string()),
        };
        let elapsed = started.elapsed();
        let mut shortages = Vec::new();
        let ending = match end {
            _ if out.is_full => Ending::OutputTooLarge,
            ConversationEnd::Late => Ending::TimedOut,
            ConversationEnd::Broken(why) => Ending::JailFailed(why),
            ConversationEnd::Ended { shortages: seen } => {
                shortages = seen;
                container_ending(&leash, &mut shortages, &err.bytes).await
            }
        };
        // After a timeout the caller does not wait for the removal.
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
            stderr_cut: err.is_full,
            shortages,
            strength,
            elapsed,
        }
    }
}

/// How the conversation with the client ended.
enum ConversationEnd {
    Ended { shortages: Vec<Shortage> },
    Late,
    Broken(String),
}

struct Conversation<'a> {
    leash: &'a ContainerLeash,
    events: &'a CgroupEvents,
    deadline: Duration,
}

impl Conversation<'_> {
    async fn run(
        &self,
        mut client: Child,
        stdin: [&[u8]; 2],
        out: &mut CapturedOutput,
        err: &mut CapturedOutput,
    ) -> ConversationEnd {
        let (input, stdout, stderr) = (client.stdin.take(), client.stdout.take(), client.stderr.take());
        let whole = async {
            let mut shortages = Vec::new();
            let pipes = async {
                tokio::join!(
                    write_input(input, stdin),
                    out.collect_or_kill(stdout, self.leash),
                    err.collect(stderr)
                )
                .0
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
            Ok(Ok(shortages)) => ConversationEnd::Ended { shortages },
            Ok(Err(error)) => ConversationEnd::Broken(format!("lost the runtime's client: {error}")),
            Err(_) => {
                self.leash.kill();
                let _ = timeout(KILL_GRACE, whole).await;
                ConversationEnd::Late
            }
        }
    }
}

/// How the command ended, according to the runtime. The client's exit code is not reliable.
async fn container_ending(leash: &ContainerLeash, shortages: &mut Vec<Shortage>, stderr: &[u8]) -> Ending {
    let (runtime, name) = (Arc::clone(leash.runtime()), leash.name.clone());
    let inspected =
        tokio::task::spawn_blocking(move || Inspected::ask(&runtime, &name, COMMAND_TIMEOUT)).await;
    let state = match inspected {
        Ok(Ok(inspected)) => inspected.state,
        Ok(Err(why)) => return Ending::JailFailed(format!("cannot find out how the container ended: {why}")),
        Err(error) => return Ending::JailFailed(error.to_string()),
    };
    if state.oom_killed && !shortages.contains(&Shortage::Memory) {
        shortages.push(Shortage::Memory);
    }
    match state.code() {
        None => Ending::JailFailed(format!("the command did not start: {}", client::error_line(stderr))),
        Some(KILLED) if shortages.contains(&Shortage::Memory) => Ending::OutOfMemory,
        Some(code) => Ending::Exited(code),
    }
}

/// The first bytes of an output.
struct CapturedOutput {
    bytes: Vec<u8>,
    piece: Vec<u8>,
    cap: usize,
    is_full: bool,
}

impl CapturedOutput {
    fn up_to(cap: usize) -> Self {
        Self { bytes: Vec::new(), piece: vec![0; PIECE], cap, is_full: false }
    }

    /// Keeps what fits and discards the rest.
    async fn collect(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        while self.take(&mut pipe).await {}
    }

    async fn collect_or_kill(&mut self, pipe: Option<impl AsyncRead + Unpin>, leash: &ContainerLeash) {
        let Some(mut pipe) = pipe else { return };
        while self.take(&mut pipe).await {
            if self.is_full {
                leash.kill();
                return;
            }
        }
    }

    /// Returns whether more may follow.
    async fn take(&mut self, pipe: &mut (impl AsyncRead + Unpin)) -> bool {
        let Ok(got @ 1..) = pipe.read(&mut self.piece).await else { return false };
        let fits = got.min(self.cap.saturating_sub(self.bytes.len()));
        self.bytes.extend(self.piece.get(..fits).unwrap_or_default());
        self.is_full |= fits < got;
        true
    }
}

/// A command need not read its input, so this error is ignored. A latch without its go-ahead never starts the
/// command.
async fn write_input(pipe: Option<ChildStdin>, [first, rest]: [&[u8]; 2]) -> io::Result<()> {
    if let Some(mut pipe) = pipe {
        pipe.write_all(first).await?;
        let _ = pipe.write_all(rest).await;
    }
    Ok(())
}

const PIECE: usize = 16 * 1024;

/// Exit code of a killed process.
const KILLED: u8 = 128 + 9;

/// How long a killed container may take to end, so this never hangs.
const KILL_GRACE: Duration = Duration::from_secs(5);
