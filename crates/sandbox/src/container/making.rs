//! How is a container made and looked at, before anything of its command runs?

use std::{
    fs, io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::spawn_blocking, time::timeout};

use super::{
    ContainerJail, ContainerStrength, ContainerWall, Runtime, RuntimeKind, client,
    inspect::{Inspected, LowLevel},
    latch::Latched,
    leash::Leash,
    look::{Files, Seen},
    network,
    options::Badge,
    owner::{self, Owner, PATIENCE},
    plan::Plan,
    running::RunningContainer,
};
use crate::{Network, ProxySockets, SpawnError};

impl Runtime {
    /// Makes a container and looks at it, while its deadline lasts. Nothing of its command runs yet.
    pub async fn spawn(&self, jail: ContainerJail) -> Result<RunningContainer, SpawnError> {
        let runtime = Arc::new(self.clone());
        let due = Due { since: Instant::now(), deadline: jail.deadline };
        // Whoever lets go of this future lets go of what it made, and a container without a holder is removed.
        let making = async {
            let created = in_background(move || Created::make(&runtime, jail, due)).await?;
            let latched = created.latched().await?;
            in_background(move || created.look(latched)).await
        };
        timeout(due.deadline, making).await.unwrap_or(Err(SpawnError::Late))
    }
}

async fn in_background<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, SpawnError> + Send + 'static,
) -> Result<T, SpawnError> {
    spawn_blocking(step).await.map_err(|error| SpawnError::Failed(error.to_string()))?
}

/// When all must be over, the making included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    since: Instant,
    deadline: Duration,
}

impl Due {
    pub(super) fn rest(self) -> Duration {
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

/// A container that the runtime knows of.
struct Created {
    leash: Leash,
    plan: Plan,
    required: &'static [ContainerWall],
    due: Due,
}

impl Created {
    fn make(runtime: &Arc<Runtime>, jail: ContainerJail, due: Due) -> Result<Self, SpawnError> {
        let required = jail.required;
        let failed = |why: String| failed(runtime, &why);
        if jail.network != Network::None {
            runtime.check_way_out().map_err(|why| failed(why.to_owned()))?;
        }
        let plan = Plan::check(jail, runtime.program.kind)?;
        let badge = badge(&plan).map_err(|error| failed(error.to_string()))?;
        let leash = Leash::new(Arc::clone(runtime), badge.name.clone());
        let variables: Vec<String> =
            plan.env.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let creation = runtime.creation(&plan, &badge);
        due.patience()?;
        // Not cut short: a runtime that is killed while it creates may go on, and leave a container that nobody knows of.
        let answer = client::ask(&runtime.program, &creation, variables.concat().as_bytes(), PATIENCE)
            .map_err(|error| failed(error.to_string()))?;
        answer.content().map_err(failed)?;
        let created = Self { leash, plan, required, due };
        match runtime.program.kind {
            RuntimeKind::Podman => {
                let init = ["init".to_owned(), badge.name];
                runtime.tell(&init, due.patience()?).map_err(failed)?;
            }
            // It has to be started to be looked at, and what is started must be the latch.
            RuntimeKind::Docker => drop(created.inspect()?),
        }
        Ok(created)
    }

    /// Starts the latch, where the runtime needs one.
    async fn latched(&self) -> Result<Option<Latched>, SpawnError> {
        if !self.plan.has_latch() {
            return Ok(None);
        }
        Latched::start(&self.leash, &self.plan).await.map(Some).map_err(|why| self.failed(&why))
    }

    /// What the runtime says that it made; an error where it is not what was asked.
    fn inspect(&self) -> Result<(Inspected, Option<LowLevel>), SpawnError> {
        let patience = self.due.patience()?;
        let inspected = Inspected::ask(self.leash.runtime(), &self.leash.name, patience)
            .map_err(|why| self.failed(&why))?;
        let low_level = fs::read(&inspected.low_level_path).ok().and_then(|text| LowLevel::read(&text));
        match inspected.difference(&self.plan, low_level.as_ref()) {
            Some(difference) => {
                Err(self.failed(&format!("the container is not what was asked: {difference}")))
            }
            None => Ok((inspected, low_level)),
        }
    }

    fn look(self, latched: Option<Latched>) -> Result<RunningContainer, SpawnError> {
        let (inspected, low_level) = self.inspect()?;
        let runtime = Arc::clone(self.leash.runtime());
        let mut seen = Seen::look(inspected.state.pid, &inspected.id, &self.plan);
        if let (Files::NotSeen, Some(latched)) = (seen.files, &latched) {
            seen.files = latched.files(&self.plan);
        }
        let walls = inspected.walls(&runtime, &self.plan, low_level.as_ref(), &seen);
        let mut strength = ContainerStrength { runtime: runtime.program.kind, walls };
        let handle = seen.handle.take();
        let Self { mut leash, mut plan, required, due } = self;
        leash.hold(handle);
        let failed = |why: &str| failed(&runtime, why);
        // A bind that was exchanged under our hands shows something nobody checked.
        match seen.files {
            Files::Same => {}
            Files::Other => return Err(failed(EXCHANGED)),
            Files::NotSeen => return Err(failed(UNSEEN)),
        }
        let missing = strength.missing(required);
        if !missing.is_empty() {
            return Err(SpawnError::TooWeak { missing });
        }
        let sockets = match plan.network {
            Network::None => None,
            Network::Proxied { http_port } => {
                due.patience()?;
                let sockets = open_sockets(&leash, http_port).map_err(|why| failed(&why))?;
                strength.has_a_way_out();
                Some(sockets)
            }
        };
        // They may be secrets, and have arrived.
        plan.env.clear();
        let client = latched.map(|latched| latched.client);
        Ok(RunningContainer { leash, plan, strength, events: seen.events, sockets, client, due })
    }

    fn failed(&self, why: &str) -> SpawnError {
        failed(self.leash.runtime(), why)
    }
}

fn failed(runtime: &Runtime, why: &str) -> SpawnError {
    SpawnError::Failed(format!("{}: {why}", runtime.program.kind.name()))
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

const EXCHANGED: &str = "a bind is not the file or folder that was checked; it was exchanged";
const UNSEEN: &str = "nobody can see whether the container is shown the files that were checked; run the tool with `sandbox: process`, or \
    the gateway on the machine and as the user that run the containers";

/// What a step of the making may go on after the deadline.
const MOMENT: Duration = Duration::from_secs(3);
