//! How is a container made, fed, heard out and ended?

use std::{
    fs, io,
    pin::pin,
    process::Stdio,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin},
    time::timeout,
};

use super::{
    ContainerJail, ContainerReport, ContainerStrength, Runtime, RuntimeKind, Shortage, client,
    inspect::{Inspected, LowLevel},
    leash::Leash,
    look::{Events, Files, Seen},
    network,
    options::Badge,
    owner::{self, Owner, PATIENCE},
    plan::Plan,
};
use crate::{Ending, Network, OutputCaps, ProxySockets, SpawnError};

/// A container that is made and looked at, and runs when it is finished. Dropping it removes the container.
#[derive(Debug)]
pub struct RunningContainer {
    leash: Leash,
    /// Holds the covers of what is hidden, and the binds open.
    plan: Plan,
    strength: ContainerStrength,
    events: Events,
    sockets: Option<ProxySockets>,
    due: Due,
}

impl Runtime {
    /// Makes a container and looks at it, while its deadline lasts. Nothing of it runs yet.
    pub async fn spawn(&self, jail: ContainerJail) -> Result<RunningContainer, SpawnError> {
        let runtime = Arc::new(self.clone());
        let due = Due { since: Instant::now(), deadline: jail.deadline };
        // Whoever lets go of this future lets go of its result, and a container without a holder is removed.
        let making = tokio::task::spawn_blocking(move || make(&runtime, jail, due));
        match timeout(due.deadline, making).await {
            Ok(made) => made.map_err(|error| SpawnError::Failed(error.to_string()))?,
            Err(_) => Err(SpawnError::Late),
        }
    }
}

/// When all must be over, the making included.
#[derive(Clone, Copy, Debug)]
struct Due {
    since: Instant,
    deadline: Duration,
}

impl Due {
    fn rest(self) -> Duration {
        self.deadline.saturating_sub(self.since.elapsed())
    }

    /// For one more step of the making. A runtime that is killed in the middle of one leaves a muddle, so that it gets a moment
    /// longer; nobody waits for it by then.
    fn patience(self) -> Result<Duration, SpawnError> {
        let rest = self.rest();
        if rest.is_zero() {
            return Err(SpawnError::Late);
        }
        Ok(rest.saturating_add(MOMENT).min(PATIENCE))
    }
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
        let Self { leash, plan, strength, events, sockets, due } = self;
        // Whoever did not take them wants nobody to answer.
        drop(sockets);
        let started = Instant::now();
        let (mut out, mut err) = (Captured::up_to(caps.stdout), Captured::up_to(caps.stderr));
        let end = match start(&leash) {
            Ok(client) => {
                let talk = Talk { leash: &leash, events: &events, deadline: due.rest() };
                talk.to_the_end(client, &stdin, &mut out, &mut err).await
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

fn make(runtime: &Arc<Runtime>, jail: ContainerJail, due: Due) -> Result<RunningContainer, SpawnError> {
    let required = jail.required;
    let failed = |why: String| SpawnError::Failed(format!("{}: {why}", runtime.program.kind.name()));
    if jail.network != Network::None {
        runtime.check_way_out().map_err(|why| failed(why.to_owned()))?;
    }
    let mut plan = Plan::check(jail)?;
    let badge = badge(&plan).map_err(|error| failed(error.to_string()))?;
    let mut leash = Leash::new(Arc::clone(runtime), badge.name.clone());
    let variables: Vec<String> = plan.env.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    let creation = runtime.creation(&plan, &badge);
    due.patience()?;
    // Not cut short: a runtime that is killed while it creates may go on, and leave a container that nobody knows of.
    let answer = client::ask(&runtime.program, &creation, variables.concat().as_bytes(), PATIENCE)
        .map_err(|error| failed(error.to_string()))?;
    answer.content().map_err(failed)?;
    if runtime.program.kind == RuntimeKind::Podman {
        runtime.tell(&["init".to_owned(), badge.name.clone()], due.patience()?).map_err(failed)?;
    }
    let inspected = inspect(runtime, &badge.name, due.patience()?).map_err(failed)?;
    let low_level = fs::read(&inspected.low_level_path).ok().and_then(|text| LowLevel::read(&text));
    if let Some(difference) = inspected.difference(&plan, low_level.as_ref()) {
        return Err(failed(format!("the container is not what was asked: {difference}")));
    }
    let mut seen = Seen::look(inspected.state.pid, &inspected.id, &plan);
    let walls = inspected.walls(runtime, &plan, low_level.as_ref(), &seen);
    let mut strength = ContainerStrength { runtime: runtime.program.kind, walls };
    leash.hold(seen.handle.take());
    let missing = strength.missing(required);
    if !missing.is_empty() {
        return Err(SpawnError::TooWeak { missing });
    }
    // Where it can be seen, it must be right: a bind that was exchanged under our hands shows something nobody checked.
    if seen.files == Files::Other {
        return Err(failed("a bind is not the file or folder that was checked; it was exchanged".to_owned()));
    }
    let sockets = match plan.network {
        Network::None => None,
        Network::Proxied { http_port } => {
            due.patience()?;
            let sockets = open_sockets(&leash, http_port).map_err(failed)?;
            strength.has_a_way_out();
            Some(sockets)
        }
    };
    // They may be secrets, and have arrived.
    plan.env.clear();
    Ok(RunningContainer { leash, plan, strength, events: std::mem::take(&mut seen.events), sockets, due })
}

fn open_sockets(leash: &Leash, http_port: u16) -> Result<ProxySockets, String> {
    let process =
        leash.held().ok_or("the container's first process cannot be told, and so not its network")?;
    network::open_sockets(process, http_port)
        .map_err(|error| format!("the sockets of its way out cannot be made: {error}"))
}

fn badge(plan: &Plan) -> io::Result<Badge> {
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(Badge {
        name: format!("toolgate-{}", random.trim()),
        owner: Owner::of_this_process()?.label(),
        expires: owner::expiry(plan.deadline),
    })
}

fn inspect(runtime: &Runtime, name: &str, patience: Duration) -> Result<Inspected, String> {
    let question = ["inspect".to_owned(), "--type=container".to_owned(), name.to_owned()];
    Inspected::read(&runtime.tell(&question, patience)?)
}

/// The client that starts the container and is its pipes.
fn start(leash: &Leash) -> io::Result<Child> {
    let mut command = tokio::process::Command::from(client::command(&leash.runtime().program));
    command.args(["start", "--attach", "--interactive"]).kill_on_drop(true);
    if leash.runtime().program.kind == RuntimeKind::Podman {
        // Docker's client passes no signals on that we could send.
        command.arg("--sig-proxy=false");
    }
    command.arg(&leash.name);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn()
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
        stdin: &[u8],
        out: &mut Captured,
        err: &mut Captured,
    ) -> End {
        let (input, stdout, stderr) = (client.stdin.take(), client.stdout.take(), client.stderr.take());
        let whole = async {
            let mut shortages = Vec::new();
            let pipes = async {
                tokio::join!(feed(input, stdin), out.hear_or_kill(stdout, self.leash), err.hear(stderr))
            };
            let client_ends = async { tokio::join!(pipes, client.wait()).1 };
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
    let inspected = tokio::task::spawn_blocking(move || inspect(&runtime, &name, PATIENCE)).await;
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

/// A command that does not read its input is none the worse for it.
async fn feed(pipe: Option<ChildStdin>, bytes: &[u8]) {
    if let Some(mut pipe) = pipe {
        let _ = pipe.write_all(bytes).await;
    }
}

const PIECE: usize = 16 * 1024;

/// How the code of something killed is written.
const KILLED: u8 = 128 + 9;

/// How long a killed container may take to end. Guards against hanging.
const LAST_BREATH: Duration = Duration::from_secs(5);

/// What a step of the making may go on after the deadline.
const MOMENT: Duration = Duration::from_secs(3);
