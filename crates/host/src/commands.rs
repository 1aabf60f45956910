//! Where do commands run? In jails of this host, made ready with the first command.

use std::{
    future::Future,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
};

use tokio::{
    sync::OnceCell,
    time::{Instant, timeout},
};
use toolgate_egress::Egress;
use toolgate_handlers::{ContainerLauncher, Ended, Ending, JailedLauncher, Launch, Order, ServiceStart};
use toolgate_sandbox::{CommandRequired, ContainerUser, ContainerWall, ImageName, Jailer, probe_runtime};
use toolgate_spec::model::SandboxKind;

/// Carries orders out in the kind of sandbox that each asks for.
#[derive(Clone)]
pub struct Commands(Arc<Inner>);

struct Inner {
    /// This very program, which is the jailer too under another name.
    program: PathBuf,
    egress: Egress,
    required: CommandRequired,
    /// How many jails are kept ready at most.
    prepared_jails: usize,
    /// The image for containers, and what its walls must be.
    container: Option<Container>,
    /// Kept once they work: what failed is tried again with the next command.
    jailed: OnceCell<JailedLauncher>,
    in_containers: OnceCell<ContainerLauncher>,
}

/// Where commands run that ask for a container.
#[derive(Clone, Debug)]
pub struct Container {
    pub image: String,
    /// Who commands are inside; root is refused.
    pub user: ContainerUser,
    pub required: &'static [ContainerWall],
}

impl Container {
    /// As the owner of the workspace, so that what is written there belongs to whom it should, unless that is root.
    pub fn for_workspace(image: String, workspace: &Path, required: &'static [ContainerWall]) -> Self {
        let owner = std::fs::metadata(workspace).ok().map(|folder| (folder.uid(), folder.gid()));
        let (uid, gid) = owner.filter(|(uid, gid)| *uid != 0 && *gid != 0).unwrap_or(NOBODY_IN_PARTICULAR);
        Self { image, user: ContainerUser { uid, gid }, required }
    }
}

impl Commands {
    /// Starts nothing yet. With 0 prepared jails each jail is made when its command comes.
    pub fn new(
        program: PathBuf,
        egress: Egress,
        required: CommandRequired,
        prepared_jails: usize,
        container: Option<Container>,
    ) -> Self {
        let (jailed, in_containers) = (OnceCell::new(), OnceCell::new());
        let inner = Inner { program, egress, required, prepared_jails, container, jailed, in_containers };
        Self(Arc::new(inner))
    }
}

impl Inner {
    async fn jailed(&self) -> Result<&JailedLauncher, String> {
        let start = || async {
            let jailer = Jailer::start_with(&self.program, self.prepared_jails)
                .map_err(|error| format!("the jailer cannot start: {error}"))?;
            Ok::<_, String>(JailedLauncher {
                jailer,
                egress: Some(self.egress.clone()),
                required: self.required,
            })
        };
        self.jailed.get_or_try_init(start).await
    }

    async fn in_containers(&self) -> Result<&ContainerLauncher, String> {
        let Some(container) = self.container.clone() else { return Err(NO_IMAGE.to_owned()) };
        let egress = Some(self.egress.clone());
        // Asking a runtime blocks, and so does taking away what an earlier gateway left behind.
        let made = || async {
            tokio::task::spawn_blocking(move || {
                let image = ImageName::parse(&container.image)?;
                let runtime = probe_runtime().map_err(|error| error.to_string())?;
                runtime.sweep()?;
                let Container { user, required, .. } = container;
                Ok(ContainerLauncher { runtime: Arc::new(runtime), egress, image, user, required })
            })
            .await
            .unwrap_or_else(|_| Err("the container runtime could not be asked".to_owned()))
        };
        self.in_containers.get_or_try_init(made).await
    }

    /// Finding the runtime counts: a call has one deadline.
    async fn in_a_container(&self, mut order: Order) -> Ended {
        let started = Instant::now();
        match timeout(order.deadline, self.in_containers()).await {
            Ok(Ok(launcher)) => {
                order.deadline = order.deadline.saturating_sub(started.elapsed());
                launcher.launch(order).await
            }
            Ok(Err(why)) => Ended::at_once(Ending::NoJail(why)),
            Err(_) => Ended::at_once(Ending::TimedOut),
        }
    }
}

impl Launch for Commands {
    fn launch(&self, order: Order) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match order.sandbox {
                // `none` asks for no wall; a jail is no less than that, and the same for every command.
                SandboxKind::Process | SandboxKind::None => match inner.jailed().await {
                    Ok(jailed) => jailed.launch(order).await,
                    Err(why) => Ended::at_once(Ending::NoJail(why)),
                },
                SandboxKind::Container => inner.in_a_container(order).await,
            }
        })
    }

    fn start(&self, order: Order) -> ServiceStart {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match order.sandbox {
                SandboxKind::Process | SandboxKind::None => inner.jailed().await?.start(order).await,
                SandboxKind::Container => Err("long-lived commands do not run in containers yet".to_owned()),
            }
        })
    }
}

impl std::fmt::Debug for Commands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Commands").field("program", &self.0.program).finish_non_exhaustive()
    }
}

const NO_IMAGE: &str = "it asks for a container, and this gateway has no image for them; set `commands.image` in `toolgate.yaml`";

/// The first ordinary user of most images.
const NOBODY_IN_PARTICULAR: (u32, u32) = (1000, 1000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jailer_that_could_not_start_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("toolgate");
        let egress = crate::open::open_egress(folder.path()).unwrap();
        let commands = Commands::new(program.clone(), egress, CommandRequired::MINIMUM, 0, None);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let problem = || runtime.block_on(commands.0.jailed()).err().unwrap();
        let absent = problem();
        // A file that is no program fails for another reason, which is told only by whoever tries again.
        std::fs::write(program, "").unwrap();
        assert_ne!(problem(), absent);
    }
}
