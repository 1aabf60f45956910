//! Runs orders in containers, through the runtime of the host and in the operator's image.

use std::{ffi::OsString, fmt, future::Future, pin::Pin, sync::Arc};

use toolgate_egress::{Egress, ProxyReport};
use toolgate_sandbox::{
    Access, CommandUsage, ContainerJail, ContainerLimits, ContainerReport, ContainerUser, Ending, ImageName,
    Layer, LayerSet, Network, Runtime, Shortage, SpawnError,
};

use super::{
    egress::{self, EgressPlan},
    jailed::caps,
    order::{CommandOrder, CommandOutcome, Launch, OrderLimits},
};

use crate::cli::report::denial::Denial;

/// Runs commands in containers.
#[derive(Clone)]
pub struct ContainerLauncher {
    pub runtime: Arc<Runtime>,
    /// Without it, commands with network access do not run.
    pub egress: Option<Egress>,
    pub image: ImageName,
    pub user: ContainerUser,
    /// Layers required in addition to the mandatory ones.
    pub required: LayerSet,
}

impl Launch for ContainerLauncher {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        let launcher = self.clone();
        Box::pin(async move {
            launcher.run(order).await.unwrap_or_else(|why| CommandOutcome::at_once(Ending::JailFailed(why)))
        })
    }
}

impl ContainerLauncher {
    async fn run(&self, mut order: CommandOrder) -> Result<CommandOutcome, String> {
        let outlet = EgressPlan::of(&order, self.egress.as_ref())?;
        let progress = Arc::clone(&order.progress);
        let (stdin, caps) = (std::mem::take(&mut order.stdin), caps(&order.limits));
        let bounds = ContainerBounds::of(&order);
        let mut running = match self.runtime.spawn(self.jail(order)).await {
            Ok(running) => running,
            // Creating the container counts towards the deadline of the call.
            Err(SpawnError::Late) => return Ok(CommandOutcome::at_once(Ending::TimedOut)),
            Err(error) => return Err(error.to_string()),
        };
        let outlet = outlet.open(running.take_sockets())?;
        let passed = outlet.witness();
        progress.set_source(move || {
            let (passed, mut refused) = (passed(), Vec::new());
            egress::add_refusals(&passed, &mut refused);
            (egress::effects(&passed), refused.into())
        });
        let report = running.finish(stdin, caps).await;
        Ok(ended(report, &outlet.finish().await, &bounds))
    }

    fn jail(&self, order: CommandOrder) -> ContainerJail {
        let (mut env, network) = egress::environment(&order);
        if network != Network::None {
            // The image may set them, and no host can be reached directly.
            let given = |name: &str| env.iter().any(|(known, _)| known == name);
            let silenced: Vec<&str> = NO_PROXY.into_iter().filter(|name| !given(name)).collect();
            env.extend(silenced.into_iter().map(|name| (name.into(), OsString::new())));
        }
        let limits = order.limits;
        let bounded = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        ContainerJail {
            image: self.image.clone(),
            argv: order.argv.into_iter().map(Into::into).collect(),
            env,
            cwd: order.cwd,
            user: self.user,
            view: order.view,
            network,
            limits: ContainerLimits {
                memory_bytes: memory(&limits),
                millicpus: ONE_PROCESSOR,
                processes: bounded(limits.processes),
                open_files: bounded(limits.open_files),
                file_bytes: limits.file_bytes,
            },
            required: self.required,
            deadline: order.deadline,
        }
    }
}

fn ended(report: ContainerReport, passed: &ProxyReport, bounds: &ContainerBounds) -> CommandOutcome {
    let mut refused: Vec<Denial> =
        report.shortages.iter().map(|shortage| Denial::Other(bounds.shortage(*shortage))).collect();
    egress::add_refusals(passed, &mut refused);
    refused.push(Denial::Bounds(bounds.describe(|layer| report.strength.has(layer))));
    CommandOutcome {
        ending: report.ending,
        stdout: report.stdout,
        stderr: report.stderr,
        refused: refused.into(),
        layers: report.strength.names(),
        effects: egress::effects(passed),
        usage: CommandUsage { elapsed: report.elapsed, ..CommandUsage::default() },
    }
}

/// The limits of a container. A runtime does not report what it denies.
#[derive(Debug)]
struct ContainerBounds {
    writable: Vec<String>,
    limits: OrderLimits,
}

impl ContainerBounds {
    fn of(order: &CommandOrder) -> Self {
        let writable = order.view.binds.iter().filter(|bind| bind.access == Access::Write);
        Self { writable: writable.map(|bind| bind.at.display().to_string()).collect(), limits: order.limits }
    }

    fn describe(&self, holds: impl Fn(Layer) -> bool) -> String {
        let limits = &self.limits;
        let first = self.writable.iter().take(FIRST_WRITABLE).map(|path| format!("`{path}`, "));
        let more = match self.writable.len().saturating_sub(FIRST_WRITABLE) {
            0 => String::new(),
            more => format!("{more} more and "),
        };
        let beyond = if holds(Layer::NetworkNamespace) { " except the egress proxy" } else { "" };
        let mut said = format!(
            "no network{beyond}, nothing writable but {}{more}`/tmp` ({} bytes), {} open files, files of {} bytes",
            first.collect::<String>(),
            limits.tmp_bytes,
            limits.open_files,
            limits.file_bytes
        );
        // Not every host can enforce these limits.
        if holds(Layer::MemoryLimit) {
            said = format!("{said}, {} bytes of memory", memory(limits));
        }
        if holds(Layer::ProcessLimit) {
            said = format!("{said}, {} processes", limits.processes);
        }
        said
    }

    fn shortage(&self, shortage: Shortage) -> String {
        match shortage {
            Shortage::Memory => {
                format!("more than {} bytes of memory (a process was killed)", memory(&self.limits))
            }
            Shortage::Processes => {
                format!("more than {} processes (one was not started)", self.limits.processes)
            }
        }
    }
}

fn memory(limits: &OrderLimits) -> u64 {
    limits.memory_bytes.max(LEAST_MEMORY)
}

impl fmt::Debug for ContainerLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerLauncher").field("image", &self.image).finish_non_exhaustive()
    }
}

const ONE_PROCESSOR: u32 = 1_000;
const FIRST_WRITABLE: usize = 3;
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Runtimes run helper processes inside a container's memory limit.
const LEAST_MEMORY: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(writable: &[&str]) -> ContainerBounds {
        let limits = OrderLimits {
            memory_bytes: 128 << 20,
            cpu_seconds: 1,
            processes: 7,
            open_files: 8,
            file_bytes: 9,
            tmp_bytes: 10,
            stdout_bytes: 11,
            stderr_bytes: 12,
        };
        ContainerBounds { writable: writable.iter().map(|path| (*path).to_owned()).collect(), limits }
    }

    #[test]
    fn container_limits_are_described() {
        assert_eq!(
            bounds(&[]).describe(|_| false),
            "no network, nothing writable but `/tmp` (10 bytes), 8 open files, files of 9 bytes"
        );
        assert_eq!(
            bounds(&["/a", "/b"]).describe(|_| true),
            "no network except the egress proxy, nothing writable but `/a`, `/b`, `/tmp` (10 bytes), 8 open files, files of 9 bytes, \
             134217728 bytes of memory, 7 processes"
        );
        let many = bounds(&["/a", "/b", "/c", "/d", "/e"]).describe(|_| false);
        assert!(many.contains("`/c`, 2 more and `/tmp`"), "{many}");
    }

    #[test]
    fn exceeded_limits_are_described() {
        assert!(bounds(&[]).shortage(Shortage::Memory).starts_with("more than 134217728 bytes"));
        assert!(bounds(&[]).shortage(Shortage::Processes).starts_with("more than 7 processes"));
    }
}
