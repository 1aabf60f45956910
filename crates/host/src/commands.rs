//! Runs commands in jails or containers. The jailer and the container runtime start with the first command that needs them.

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
use toolgate_handlers::{
    CommandOrder, CommandOutcome, ContainerLauncher, JailedLauncher, Launch, ServiceStart,
};
use toolgate_sandbox::Ending;
use toolgate_sandbox::{ContainerUser, ImageName, Jailer, LayerSet, probe_runtime};
use toolgate_spec::model::SandboxKind;

/// Runs each command in the kind of sandbox that it requires.
#[derive(Clone)]
pub struct Commands(Arc<CommandsInner>);

struct CommandsInner {
    /// The file of this program, which is also the jailer under another name.
    program: PathBuf,
    egress: Egress,
    required: LayerSet,
    /// The maximum number of jails that are prepared in advance.
    prepared_jails: usize,
    container: Option<ContainerSettings>,
    /// Set once it has started. After a failure the next command tries again.
    jailed: OnceCell<JailedLauncher>,
    in_containers: OnceCell<ContainerLauncher>,
}

/// The image, the user and the required layers of containers.
#[derive(Clone, Debug)]
pub struct ContainerSettings {
    pub image: String,
    /// The user of commands in the container. Root is rejected.
    pub user: ContainerUser,
    pub required: LayerSet,
}

impl ContainerSettings {
    /// Commands run as the owner of the workspace, who then owns new files too. If that is root, they run as an ordinary user.
    pub fn for_workspace(image: String, workspace: &Path, required: LayerSet) -> Self {
        let owner = std::fs::metadata(workspace).ok().map(|folder| (folder.uid(), folder.gid()));
        let (uid, gid) = owner.filter(|(uid, gid)| *uid != 0 && *gid != 0).unwrap_or(ORDINARY_USER);
        Self { image, user: ContainerUser { uid, gid }, required }
    }
}

impl Commands {
    /// Starts nothing yet. With 0 prepared jails, each jail is made when its command starts.
    pub fn new(
        program: PathBuf,
        egress: Egress,
        required: LayerSet,
        prepared_jails: usize,
        container: Option<ContainerSettings>,
    ) -> Self {
        let (jailed, in_containers) = (OnceCell::new(), OnceCell::new());
        let inner =
            CommandsInner { program, egress, required, prepared_jails, container, jailed, in_containers };
        Self(Arc::new(inner))
    }
}

impl CommandsInner {
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
        // Probing the runtime and removing leftover containers block.
        let made = || async {
            tokio::task::spawn_blocking(move || {
                let image = ImageName::parse(&container.image)?;
                let runtime = probe_runtime().map_err(|error| error.to_string())?;
                runtime.sweep()?;
                let ContainerSettings { user, required, .. } = container;
                Ok(ContainerLauncher { runtime: Arc::new(runtime), egress, image, user, required })
            })
            .await
            .unwrap_or_else(|_| Err("the container runtime could not be probed".to_owned()))
        };
        self.in_containers.get_or_try_init(made).await
    }

    /// The deadline includes the time to find the runtime.
    async fn in_a_container(&self, mut order: CommandOrder) -> CommandOutcome {
        let started = Instant::now();
        match timeout(order.deadline, self.in_containers()).await {
            Ok(Ok(launcher)) => {
                order.deadline = order.deadline.saturating_sub(started.elapsed());
                launcher.launch(order).await
            }
            Ok(Err(why)) => CommandOutcome::at_once(Ending::JailFailed(why)),
            Err(_) => CommandOutcome::at_once(Ending::TimedOut),
        }
    }
}

impl Launch for Commands {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match order.sandbox {
                // `none` requires no isolation. A jail is stronger, and the same code for every command.
                SandboxKind::Process | SandboxKind::None => match inner.jailed().await {
                    Ok(jailed) => jailed.launch(order).await,
                    Err(why) => CommandOutcome::at_once(Ending::JailFailed(why)),
                },
                SandboxKind::Container => inner.in_a_container(order).await,
            }
        })
    }

    fn start(&self, order: CommandOrder) -> ServiceStart {
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

const NO_IMAGE: &str =
    "the tool requires a container, and no image is configured; set `commands.image` in `toolgate.yaml`";

/// User and group id of the first ordinary user in most images.
const ORDINARY_USER: (u32, u32) = (1000, 1000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jailer_that_could_not_start_is_retried() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("toolgate");
        let egress = crate::open::open_egress(folder.path()).unwrap();
        let commands =
            Commands::new(program.clone(), egress, toolgate_sandbox::JailKind::Command.minimum(), 0, None);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let problem = || runtime.block_on(commands.0.jailed()).err().unwrap();
        let absent = problem();
        // An empty file fails for another reason, so a different message proves a second attempt.
        std::fs::write(program, "").unwrap();
        assert_ne!(problem(), absent);
    }
}
