//! Where do commands run? In jails of this host, made ready with the first command.

use std::{
    future::Future,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, OnceLock},
};

use toolgate_egress::Egress;
use toolgate_handlers::{Ended, Ending, JailedLauncher, Launch, Order};
use toolgate_sandbox::{CommandRequired, Jailer};
use toolgate_spec::model::SandboxKind;

/// Carries orders out in the kind of sandbox that each asks for.
#[derive(Clone)]
pub struct Commands(Arc<Inner>);

struct Inner {
    /// This very program, which is the jailer too under another name.
    program: PathBuf,
    egress: Egress,
    required: CommandRequired,
    jailed: OnceLock<Result<JailedLauncher, String>>,
}

impl Commands {
    /// Starts nothing yet.
    pub fn new(program: PathBuf, egress: Egress, required: CommandRequired) -> Self {
        Self(Arc::new(Inner { program, egress, required, jailed: OnceLock::new() }))
    }
}

impl Inner {
    fn jailed(&self) -> Result<&JailedLauncher, String> {
        let start = || {
            let jailer =
                Jailer::start(&self.program).map_err(|error| format!("the jailer cannot start: {error}"))?;
            Ok(JailedLauncher { jailer, egress: Some(self.egress.clone()), required: self.required })
        };
        self.jailed.get_or_init(start).as_ref().map_err(Clone::clone)
    }
}

impl Launch for Commands {
    fn launch(&self, order: Order) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            match order.sandbox {
                // `none` asks for no wall; a jail is no less than that, and the same for every command.
                SandboxKind::Process | SandboxKind::None => match inner.jailed() {
                    Ok(jailed) => jailed.launch(order).await,
                    Err(why) => Ended::at_once(Ending::NoJail(why)),
                },
                SandboxKind::Container => Ended::at_once(Ending::NoJail(NO_CONTAINERS.to_owned())),
            }
        })
    }
}

impl std::fmt::Debug for Commands {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Commands").field("program", &self.0.program).finish_non_exhaustive()
    }
}

const NO_CONTAINERS: &str = "it asks for a container, and this gateway runs none";
