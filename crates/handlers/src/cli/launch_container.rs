//! How is an order carried out in a container? By the runtime that the host has, in the image that the operator chose.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use toolgate_sandbox::{
    ContainerJail, ContainerLimits, ContainerReport, ContainerUser, ContainerWall, ImageName, Network,
    Runtime, View,
};

use super::{
    launch::{Ended, Ending, Launch, Order, Usage},
    launch_jailed::{bind, caps},
};

/// Runs commands in containers.
#[derive(Clone)]
pub struct ContainerLauncher {
    pub runtime: Arc<Runtime>,
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
        if order.network.is_some() {
            return Err(
                "a container has no network; take `network` from the tool, or say `sandbox: process`"
                    .to_owned(),
            );
        }
        let (stdin, caps) = (std::mem::take(&mut order.stdin), caps(&order.limits));
        let running = self.runtime.spawn(self.jail(order)).await.map_err(|error| error.to_string())?;
        Ok(ended(running.finish(stdin, caps).await))
    }

    fn jail(&self, order: Order) -> ContainerJail {
        let limits = order.limits;
        let bounded = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        ContainerJail {
            image: self.image.clone(),
            argv: order.argv.into_iter().map(Into::into).collect(),
            env: order.env.into_iter().map(|(name, value)| (name.into(), value)).collect(),
            cwd: order.cwd,
            user: self.user,
            view: View {
                binds: order.binds.into_iter().map(bind).collect(),
                hidden: order.hidden,
                tmp_bytes: limits.tmp_bytes,
            },
            network: Network::None,
            limits: ContainerLimits {
                memory_bytes: limits.memory_bytes.max(LEAST_MEMORY),
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

fn ended(report: ContainerReport) -> Ended {
    Ended {
        ending: report.ending.into(),
        stdout: report.stdout,
        stderr: report.stderr,
        refused: Vec::new(),
        walls: report.strength.names(),
        effects: Vec::new(),
        usage: Usage { elapsed: report.elapsed, memory_bytes: 0 },
    }
}

impl fmt::Debug for ContainerLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerLauncher").field("image", &self.image).finish_non_exhaustive()
    }
}

const ONE_PROCESSOR: u32 = 1_000;

/// Runtimes put helpers of their own into a container's memory.
const LEAST_MEMORY: u64 = 64 << 20;
