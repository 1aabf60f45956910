//! Creates and inspects a container before its command runs.

use std::{
    fs, io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::spawn_blocking, time::timeout};

use super::{
    ContainerJail, ContainerStrength, Runtime, RuntimeKind, client,
    inspect::{Inspected, LowLevel},
    latch::Latched,
    leash::ContainerLeash,
    network,
    observation::{FileComparison, Observation},
    options::Badge,
    owner::{self, COMMAND_TIMEOUT, GatewayProcess},
    plan::Plan,
    running::RunningContainer,
};
use crate::{JailKind, LayerSet, Network, ProxySockets, SpawnError};

impl Runtime {
    /// Creates and inspects a container within its deadline. Its command does not run yet.
    pub async fn spawn(&self, jail: ContainerJail) -> Result<RunningContainer, SpawnError> {
        let runtime = Arc::new(self.clone());
        let due = Due { since: Instant::now(), deadline: jail.deadline };
        // Dropping this future drops what it created, and a container without a leash is removed.
        let making = async {
            let created = in_background(move || Created::create(&runtime, jail, due)).await?;
            let latched = created.latched().await?;
            in_background(move || created.inspect_and_finish(latched)).await
        };
        timeout(due.deadline, making).await.unwrap_or(Err(SpawnError::Late))
    }
}

async fn in_background<T: Send + 'static>(
    step: impl FnOnce() -> Result<T, SpawnError> + Send + 'static,
) -> Result<T, SpawnError> {
    spawn_blocking(step).await.map_err(|error| SpawnError::Failed(error.to_string()))?
}

/// The deadline for everything, including the creation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due {
    since: Instant,
    deadline: Duration,
}

impl Due {
    pub(super) fn rest(self) -> Duration {
        self.deadline.saturating_sub(self.since.elapsed())
    }

    /// The timeout for one more creation step. It exceeds the deadline slightly, because a runtime killed in the
    /// middle of a step leaves an inconsistent state. No caller waits for it by then.
    fn step_timeout(self) -> Result<Duration, SpawnError> {
        let rest = self.rest();
        if rest.is_zero() {
            return Err(SpawnError::Late);
        }
        Ok(rest.saturating_add(STEP_GRACE).min(COMMAND_TIMEOUT))
    }
}

/// A container that the runtime has created.
struct Created {
    leash: ContainerLeash,
    plan: Plan,
    required: LayerSet,
    due: Due,
}

impl Created {
    fn create(runtime: &Arc<Runtime>, jail: ContainerJail, due: Due) -> Result<Self, SpawnError> {
        let required = jail.required;
        let failed = |why: String| failed(runtime, &why);
        if jail.network != Network::None {
            runtime.check_egress().map_err(|why| failed(why.to_owned()))?;
        }
        let plan = Plan::check(jail, runtime.program.kind)?;
        let badge = badge(&plan).map_err(|error| failed(error.to_string()))?;
        let leash = ContainerLeash::new(Arc::clone(runtime), badge.name.clone());
        let variables: Vec<String> =
            plan.env.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
        let creation = runtime.creation(&plan, &badge);
        due.step_timeout()?;
        // Not interrupted: a runtime killed while it creates may continue, and leave an unknown container behind.
        let answer = client::ask(&runtime.program, &creation, variables.concat().as_bytes(), COMMAND_TIMEOUT)
            .map_err(|error| failed(error.to_string()))?;
        answer.success_output().map_err(failed)?;
        let created = Self { leash, plan, required, due };
        match runtime.program.kind {
            RuntimeKind::Podman => {
                let init = ["init".to_owned(), badge.name];
                runtime.run(&init, due.step_timeout()?).map_err(failed)?;
            }
            // Docker must start the container before it can be inspected, so the started program must be the latch.
            RuntimeKind::Docker => drop(created.inspect()?),
        }
        Ok(created)
    }

    /// Starts the latch, if the runtime needs one.
    async fn latched(&self) -> Result<Option<Latched>, SpawnError> {
        if !self.plan.has_latch() {
            return Ok(None);
        }
        Latched::start(&self.leash, &self.plan).await.map(Some).map_err(|why| self.failed(&why))
    }

    /// The runtime's description of the container; an error if it differs from the request.
    fn inspect(&self) -> Result<(Inspected, Option<LowLevel>), SpawnError> {
        let timeout_left = self.due.step_timeout()?;
        let inspected = Inspected::ask(self.leash.runtime(), &self.leash.name, timeout_left)
            .map_err(|why| self.failed(&why))?;
        let low_level = fs::read(&inspected.low_level_path).ok().and_then(|text| LowLevel::read(&text));
        match inspected.difference(&self.plan, low_level.as_ref()) {
            Some(difference) => {
                Err(self.failed(&format!("the container differs from the request: {difference}")))
            }
            None => Ok((inspected, low_level)),
        }
    }

    fn inspect_and_finish(self, latched: Option<Latched>) -> Result<RunningContainer, SpawnError> {
        let (inspected, low_level) = self.inspect()?;
        let runtime = Arc::clone(self.leash.runtime());
        let mut seen = Observation::take(inspected.state.pid, &inspected.id, &self.plan);
        if let (FileComparison::NotSeen, Some(latched)) = (seen.files, &latched) {
            seen.files = latched.files(&self.plan);
        }
        let layers = inspected.layers(&runtime, &self.plan, low_level.as_ref(), &seen);
        let mut strength = ContainerStrength { runtime: runtime.program.kind, layers };
        let handle = seen.handle.take();
        let Self { mut leash, mut plan, required, due } = self;
        leash.hold(handle);
        let failed = |why: &str| failed(&runtime, why);
        // A replaced bind shows files that were not checked.
        match seen.files {
            FileComparison::Same => {}
            FileComparison::Other => return Err(failed(REPLACED)),
            FileComparison::NotSeen => return Err(failed(UNVERIFIED)),
        }
        let missing = strength.layers.missing(JailKind::Container, required);
        if !missing.is_empty() {
            return Err(SpawnError::TooWeak { missing: missing.names() });
        }
        let sockets = match plan.network {
            Network::None => None,
            Network::Proxied { http_port } => {
                due.step_timeout()?;
                let sockets = open_sockets(&leash, http_port).map_err(|why| failed(&why))?;
                strength.add_egress();
                Some(sockets)
            }
        };
        // The values may be secrets, and are no longer needed.
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

fn open_sockets(leash: &ContainerLeash, http_port: u16) -> Result<ProxySockets, String> {
    let process = leash
        .held()
        .ok_or("the container's first process is unknown, so its network namespace cannot be entered")?;
    network::open_sockets(process, http_port)
        .map_err(|error| format!("cannot create the sockets of the egress proxy: {error}"))
}

fn badge(plan: &Plan) -> io::Result<Badge> {
    let random = fs::read_to_string("/proc/sys/kernel/random/uuid")?;
    Ok(Badge {
        name: format!("toolgate-{}", random.trim()),
        owner: GatewayProcess::of_this_process()?.label(),
        expires: owner::expiry(plan.deadline),
    })
}

const REPLACED: &str = "a bind is not the file or directory that was checked; it was replaced meanwhile";
const UNVERIFIED: &str = "cannot verify that the container shows the files that were checked; run the tool with `sandbox: process`, or \
    run the gateway on the same machine and as the same user as the container runtime";

/// How long a creation step may continue after the deadline.
const STEP_GRACE: Duration = Duration::from_secs(3);
