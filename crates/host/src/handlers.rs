//! How are tools run here? A pool of workers for JavaScript, jails and containers for commands, as the configuration says.

use std::{path::PathBuf, sync::Arc};

use toolgate_config::{
    Config,
    model::{Isolation as Apart, RequiredJail},
};
use toolgate_egress::Egress;
use toolgate_handlers::{
    AllowedCommands, CliHandlers, CommandHost, EnvironmentSecrets, GatewayEnvironment, JsHandlers, JsRunner,
    Places, ToolHandlers,
};
use toolgate_sandbox::{CommandRequired, ContainerWall, Isolation, Namespaces, Pool, PoolConfig, Required};
use toolgate_secrets::Detector;

use crate::{
    OpenError,
    commands::{Commands, Container},
};

pub fn open_handlers(
    config: &Config,
    egress: Egress,
    detector: &Arc<Detector>,
) -> Result<ToolHandlers, OpenError> {
    let broken = |problem: String| OpenError { part: "sandbox", problem };
    let program: PathBuf = std::env::current_exe().map_err(|error| broken(error.to_string()))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pool = PoolConfig {
        program: program.clone(),
        workers: config.worker.count.map_or(cores, |count| count as usize),
        spares: 1,
        waiting: config.worker.queue as usize,
        recycle_after: config.worker.recycle_after,
        isolation: match config.worker.isolation {
            Apart::Shared => Isolation::Shared,
            Apart::PerCaller => Isolation::PerCaller,
            Apart::PerTool => Isolation::PerTool,
            Apart::PerCall => Isolation::PerCall,
        },
        required: match config.worker.required {
            RequiredJail::Minimum => Required::MINIMUM,
            RequiredJail::Hardened => Required::HARDENED,
        },
        namespaces: Namespaces::Enter,
        cpu_seconds: CPU_SECONDS,
    };
    let pool = Pool::new(pool).map_err(|error| broken(error.to_string()))?;
    let workspace = config.workspace.canonicalize().map_err(|error| OpenError {
        part: "workspace",
        problem: format!("`{}`: {error}", config.workspace.display()),
    })?;
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let places = Places { workspace, home, guarded: config.guarded_paths() };
    let required = match config.worker.required {
        RequiredJail::Minimum => CommandRequired::MINIMUM,
        RequiredJail::Hardened => CommandRequired::HARDENED,
    };
    let js = JsHandlers {
        runner: JsRunner::new(pool, Some(egress.clone()), Arc::clone(detector)),
        places: places.clone(),
        secrets: Arc::new(EnvironmentSecrets),
    };
    let walls: &[ContainerWall] = match config.worker.required {
        RequiredJail::Minimum => &[],
        RequiredJail::Hardened => ContainerWall::BOUNDED,
    };
    let container = config.commands.image.clone();
    let container = container.map(|image| Container::for_workspace(image, &places.workspace, walls));
    let cli = CliHandlers {
        launcher: Arc::new(Commands::new(program, egress, required, container)),
        host: CommandHost {
            places,
            allowed: match &config.commands.allowed {
                Some(list) => AllowedCommands::Only(list.clone()),
                None => AllowedCommands::Any,
            },
            environment: GatewayEnvironment::current(),
        },
        secrets: Arc::new(EnvironmentSecrets),
        detector: Arc::clone(detector),
    };
    Ok(ToolHandlers { js, cli })
}

const CPU_SECONDS: u64 = 3_600;
