//! How is an order carried out in a container? By the runtime that the host has, in the image that the operator chose.

use std::{ffi::OsString, fmt, future::Future, pin::Pin, sync::Arc};

use toolgate_egress::{Egress, ProxyReport};
use toolgate_sandbox::{
    ContainerJail, ContainerLimits, ContainerReport, ContainerUser, ContainerWall, ImageName, Network,
    Runtime, Shortage, SpawnError, View,
};

use super::{
    egress::{self, Outlet},
    jailed::{bind, caps},
    launch::{Access, Ended, Ending, Launch, Order, OrderLimits, Refused, Usage},
};

/// Runs commands in containers.
#[derive(Clone)]
pub struct ContainerLauncher {
    pub runtime: Arc<Runtime>,
    /// Without it, commands that reach out are not run.
    pub egress: Option<Egress>,
    pub image: ImageName,
    pub user: ContainerUser,
    /// Walls that must hold beyond those without which nothing runs.
    pub required: &'static [ContainerWall],
}

impl Launch for ContainerLauncher {
    fn launch(&self, order: Order) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        let launcher = self.clone();
        Box::pin(async move {
            launcher.run(order).await.unwrap_or_else(|why| Ended::at_once(Ending::NoJail(why)))
        })
    }
}

impl ContainerLauncher {
    async fn run(&self, mut order: Order) -> Result<Ended, String> {
        let outlet = Outlet::of(&order, self.egress.as_ref())?;
        let so_far = Arc::clone(&order.so_far);
        let (stdin, caps) = (std::mem::take(&mut order.stdin), caps(&order.limits));
        let bounds = Bounds::of(&order);
        let mut running = match self.runtime.spawn(self.jail(order)).await {
            Ok(running) => running,
            // Making the container counts: a call has one deadline.
            Err(SpawnError::Late) => return Ok(Ended::at_once(Ending::TimedOut)),
            Err(error) => return Err(error.to_string()),
        };
        let outlet = outlet.open(running.take_sockets())?;
        let passed = outlet.witness();
        so_far.told_by(move || {
            let (passed, mut refused) = (passed(), Vec::new());
            egress::add_refusals(&passed, &mut refused);
            (egress::effects(&passed), refused.into())
        });
        let report = running.finish(stdin, caps).await;
        Ok(ended(report, &outlet.finish().await, &bounds))
    }

    fn jail(&self, order: Order) -> ContainerJail {
        let (mut env, network) = egress::environment(&order);
        if network != Network::None {
            // The image may have them, too, and nothing can be dialled directly.
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
            view: View {
                binds: order.binds.into_iter().map(bind).collect(),
                hidden: order.hidden,
                hidden_large: order.hidden_large,
                tmp_bytes: limits.tmp_bytes,
            },
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

fn ended(report: ContainerReport, passed: &ProxyReport, bounds: &Bounds) -> Ended {
    let mut refused: Vec<Refused> =
        report.shortages.iter().map(|shortage| Refused::Other(bounds.shortage(*shortage))).collect();
    egress::add_refusals(passed, &mut refused);
    refused.push(Refused::Lack(bounds.describe(|wall| report.strength.has(wall))));
    Ended {
        ending: report.ending.into(),
        stdout: report.stdout,
        stderr: report.stderr,
        refused: refused.into(),
        walls: report.strength.names(),
        effects: egress::effects(passed),
        usage: Usage { elapsed: report.elapsed, memory_bytes: 0 },
    }
}

/// What a command in there can run into. A runtime tells nobody what it refuses.
#[derive(Debug)]
struct Bounds {
    writable: Vec<String>,
    limits: OrderLimits,
}

impl Bounds {
    fn of(order: &Order) -> Self {
        let writable = order.binds.iter().filter(|bind| bind.access == Access::Write);
        Self {
            writable: writable.map(|bind| bind.path.display().to_string()).collect(),
            limits: order.limits,
        }
    }

    fn describe(&self, holds: impl Fn(ContainerWall) -> bool) -> String {
        let limits = &self.limits;
        let first = self.writable.iter().take(FIRST_WRITABLE).map(|path| format!("`{path}`, "));
        let more = match self.writable.len().saturating_sub(FIRST_WRITABLE) {
            0 => String::new(),
            more => format!("{more} more and "),
        };
        let beyond = if holds(ContainerWall::NetworkNamespace) { " but its way out" } else { "" };
        let mut said = format!(
            "no network{beyond}, nothing to write to but {}{more}`/tmp` ({} bytes), {} open files, files of {} bytes",
            first.collect::<String>(),
            limits.tmp_bytes,
            limits.open_files,
            limits.file_bytes
        );
        // Not every host bounds these.
        if holds(ContainerWall::MemoryLimit) {
            said = format!("{said}, {} bytes of memory", memory(limits));
        }
        if holds(ContainerWall::ProcessLimit) {
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

/// Runtimes put helpers of their own into a container's memory.
const LEAST_MEMORY: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(writable: &[&str]) -> Bounds {
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
        Bounds { writable: writable.iter().map(|path| (*path).to_owned()).collect(), limits }
    }

    #[test]
    fn what_a_container_has_is_said() {
        assert_eq!(
            bounds(&[]).describe(|_| false),
            "no network, nothing to write to but `/tmp` (10 bytes), 8 open files, files of 9 bytes"
        );
        assert_eq!(
            bounds(&["/a", "/b"]).describe(|_| true),
            "no network but its way out, nothing to write to but `/a`, `/b`, `/tmp` (10 bytes), 8 open files, files of 9 bytes, \
             134217728 bytes of memory, 7 processes"
        );
        let many = bounds(&["/a", "/b", "/c", "/d", "/e"]).describe(|_| false);
        assert!(many.contains("`/c`, 2 more and `/tmp`"), "{many}");
    }

    #[test]
    fn what_there_was_too_little_of_is_said() {
        assert!(bounds(&[]).shortage(Shortage::Memory).starts_with("more than 134217728 bytes"));
        assert!(bounds(&[]).shortage(Shortage::Processes).starts_with("more than 7 processes"));
    }
}
