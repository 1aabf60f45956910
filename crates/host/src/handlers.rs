//! How are tools run here? A pool of workers for JavaScript, jails and containers for commands, as the configuration says.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use toolgate_config::{
    Config, OwnNames,
    model::{RequiredJail, WorkerIsolation as Apart},
};
use toolgate_egress::Egress;
use toolgate_handlers::{
    AllowedCommands, CliCommand, CliHandlers, CommandHost, GatewayEnvironment, JsHandlers, JsRunner,
    OutputParser, OwnVariables, Places, RustHandlers, ToolHandlers,
};
use toolgate_policy::SecretSource;
use toolgate_sandbox::{
    CommandRequired, ContainerWall, Isolation, Namespaces, Pool, PoolConfig, Required, WorkerEnd,
    container_egress,
};
use toolgate_secrets::Detector;

use crate::{
    OpenError,
    alarm::Alarm,
    catalog,
    commands::{Commands, Container},
    load::{InCode, Loaded},
    secret_values::SecretValues,
};

/// Command lines and output parsers in code, by the names of their tools.
pub struct CommandsInCode {
    pub commands: BTreeMap<String, CliCommand>,
    pub parsers: BTreeMap<String, OutputParser>,
}

pub fn open_handlers(
    config: &Config,
    egress: Egress,
    detector: &Arc<Detector>,
    made_in_code: CommandsInCode,
    in_code: &InCode,
    secrets: &SecretValues,
    alarm: &Arc<Alarm>,
) -> Result<ToolHandlers, OpenError> {
    let broken = |problem: String| OpenError { part: "sandbox", problem };
    let program: PathBuf = std::env::current_exe().map_err(|error| broken(error.to_string()))?;
    let pool = open_pool(config, program.clone(), alarm)?;
    let workspace = config.workspace.canonicalize().map_err(|error| OpenError {
        part: "workspace",
        problem: format!("`{}`: {error}", config.workspace.display()),
    })?;
    let home = toolgate_handlers::home().map_err(|problem| OpenError { part: "home folder", problem })?;
    let places = Places { workspace, home, state: config.state.clone(), guarded: config.guarded_paths() };
    let own = own_variables(config.own_variables());
    let secrets: Arc<dyn SecretSource> = Arc::new(secrets.clone());
    let required = match config.worker.required {
        RequiredJail::Minimum => CommandRequired::MINIMUM,
        RequiredJail::Hardened => CommandRequired::HARDENED,
    };
    let js = JsHandlers {
        runner: JsRunner::new(pool, Some(egress.clone()), Arc::clone(detector)),
        places: places.clone(),
        secrets: Arc::clone(&secrets),
    };
    let container = config.commands.image.clone();
    let walls = walls_of_containers(config);
    let container = container.map(|image| Container::for_workspace(image, &places.workspace, walls));
    let functions = in_code.tools.iter().map(|tool| (tool.name().to_owned(), tool.function().clone()));
    let rust = RustHandlers { places: places.clone(), functions: functions.collect() };
    let cli = CliHandlers {
        launcher: Arc::new(Commands::new(
            program,
            egress,
            required,
            config.commands.prepared_jails,
            container,
        )),
        host: CommandHost {
            places,
            allowed: match &config.commands.allowed {
                Some(list) => AllowedCommands::Only(list.clone()),
                None => AllowedCommands::Any,
            },
            environment: GatewayEnvironment::current(own),
            way_out_of_containers: container_egress(),
        },
        secrets,
        detector: Arc::clone(detector),
        commands: made_in_code.commands,
        parsers: made_in_code.parsers,
    };
    Ok(ToolHandlers { js, cli, rust })
}

/// Kept from every tool.
pub fn own_variables(names: OwnNames) -> OwnVariables {
    match names {
        OwnNames::Known(names) => OwnVariables::named(names),
        OwnNames::Unknown => OwnVariables::Unknown,
    }
}

/// Bounded, unless the operator chose otherwise by name and asked for no hardened jail.
fn walls_of_containers(config: &Config) -> &'static [ContainerWall] {
    match (config.worker.required, config.commands.danger_unbounded_containers) {
        (RequiredJail::Minimum, true) => &[],
        (RequiredJail::Hardened, _) | (RequiredJail::Minimum, false) => ContainerWall::BOUNDED,
    }
}

fn open_pool(config: &Config, program: PathBuf, alarm: &Arc<Alarm>) -> Result<Pool, OpenError> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let pool = PoolConfig {
        program,
        workers: config.worker.count.map_or_else(|| default_workers(processors), |count| count as usize),
        processors,
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
    let alarm = Arc::downgrade(alarm);
    let on_end = move |end: &WorkerEnd| {
        if let Some(alarm) = alarm.upgrade() {
            alarm.hear(end);
        }
    };
    Pool::watched(pool, Arc::new(on_end))
        .map_err(|error| OpenError { part: "sandbox", problem: error.to_string() })
}

/// More than processors, since many calls wait for a server. Bounded, since each may take the memory of a call.
fn default_workers(processors: usize) -> usize {
    (4 * processors).clamp(8, 64).max(processors)
}

/// What a shipped tool runs was reviewed, and no program puts something else in its place.
pub fn check_own<'n>(mut names: impl Iterator<Item = &'n String>) -> Result<(), OpenError> {
    match names.find(|name| catalog::reserved_by(name).is_some()) {
        Some(name) => Err(OpenError {
            part: "commands",
            problem: format!("`{name}` is the name of a shipped tool; give yours a name of its own"),
        }),
        None => Ok(()),
    }
}

/// A command in code for a tool that no document describes would never be called, and nobody would notice.
pub fn check_described<'n>(
    mut names: impl Iterator<Item = &'n String>,
    loaded: &Loaded,
) -> Result<(), OpenError> {
    let is_described = |name: &String| loaded.tools.iter().any(|tool| tool.name == *name);
    let Some(name) = names.find(|name| !is_described(name)) else { return Ok(()) };
    if loaded.unread.is_empty() {
        let problem = format!("no document describes a tool `{name}`");
        return Err(OpenError { part: "commands", problem });
    }
    // It may well be in there, and whoever looks for a missing document would look for the wrong thing.
    let unread: Vec<String> = loaded.unread.iter().map(ToString::to_string).collect();
    Err(OpenError {
        part: "tools",
        problem: format!(
            "no document that can be read describes a tool `{name}`; what cannot be read: {}",
            unread.join("; ")
        ),
    })
}

const CPU_SECONDS: u64 = 3_600;

#[cfg(test)]
mod tests {
    use toolgate_config::Overrides;

    use super::*;
    use crate::load::{Origin, Problem, Surveyed};

    /// With the defaults a shell would have run with all the memory that the host has, where nothing bounds it.
    #[test]
    fn containers_are_bounded_unless_the_operator_names_the_danger() {
        let walls = |keys: &str| {
            let text = format!("version: 1\n{keys}");
            let folder = std::env::temp_dir();
            let parsed = Config::parse(&text, &folder, &|_| None, &Overrides::default());
            walls_of_containers(&parsed.unwrap()).to_vec()
        };
        assert_eq!(walls(""), ContainerWall::BOUNDED);
        assert_eq!(walls("worker: {required: hardened}\n"), ContainerWall::BOUNDED);
        let danger = "commands: {danger_unbounded_containers: true}\n";
        assert_eq!(walls(danger), []);
        // Who asks for the harder jail gets it.
        assert_eq!(walls(&format!("{danger}worker: {{required: hardened}}\n")), ContainerWall::BOUNDED);
    }

    #[test]
    fn a_command_in_code_belongs_to_a_tool_of_the_programs_own() {
        let own = "pages".to_owned();
        assert!(check_own([&own].into_iter()).is_ok());
        for shipped in ["git_log", "Bash"] {
            let problem = check_own([&own, &shipped.to_owned()].into_iter()).unwrap_err().problem;
            assert!(problem.contains(shipped), "{problem}");
        }
        let mut loaded = Loaded::default();
        let missing = check_described([&own].into_iter(), &loaded).unwrap_err();
        assert_eq!(missing.to_string(), "commands: no document describes a tool `pages`");
        // One that cannot be loaded is described all the same; why not is told elsewhere.
        let tool = Surveyed {
            name: own.clone(),
            origin: Origin::File(PathBuf::from("pages.yaml")),
            candidate: Err("its command is not installed".to_owned()),
            is_exposed: false,
            document: None,
        };
        loaded.tools.insert(toolgate_gate::ListPosition::nth(0), Arc::new(tool));
        assert!(check_described([&own].into_iter(), &loaded).is_ok());
    }

    #[test]
    fn a_document_that_cannot_be_read_is_named_as_the_reason() {
        let mut loaded = Loaded::default();
        let what = "it is no YAML".to_owned();
        loaded.unread.push(Problem { place: "tools/pages.yaml".to_owned(), what });
        let told = check_described([&"pages".to_owned()].into_iter(), &loaded).unwrap_err().to_string();
        assert_eq!(
            told,
            "tools: no document that can be read describes a tool `pages`; what cannot be read: \
             tools/pages.yaml: it is no YAML"
        );
    }
}
