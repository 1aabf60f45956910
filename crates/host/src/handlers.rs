//! Builds the handlers that run tools: a worker pool for JavaScript, jails and containers for commands.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use toolgate_config::{
    Config, OwnNames,
    model::{RequiredJail, WorkerIsolation as Apart},
};
use toolgate_egress::Egress;
use toolgate_handlers::{
    AllowedCommands, CliCommand, CliHandlers, CommandHost, GatewayEnvironment, JsHandlers, JsRunner,
    McpHandlers, OutputParser, OwnVariables, Places, RustHandlers, ToolHandlers, Upstreams,
};
use toolgate_policy::SecretSource;
use toolgate_sandbox::{
    Isolation, JailKind, LayerSet, Namespaces, Pool, PoolConfig, WorkerEnd, container_egress,
};
use toolgate_secrets::Detector;

use crate::{
    OpenError,
    alarm::EscapeAlarm,
    catalog,
    commands::{Commands, ContainerSettings},
    load::{InCode, Loaded},
    secret_values::SecretValues,
};

/// Command lines and output parsers in code, by tool name.
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
    alarm: &Arc<EscapeAlarm>,
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
    let required = required_layers(config, JailKind::Command);
    let js = JsHandlers {
        runner: JsRunner::new(pool, Some(egress.clone()), Arc::clone(detector)),
        places: places.clone(),
        secrets: Arc::clone(&secrets),
    };
    let container = config.commands.image.clone();
    let layers = required_container_layers(config);
    let container = container.map(|image| ContainerSettings::for_workspace(image, &places.workspace, layers));
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
            container_egress: container_egress(),
        },
        secrets,
        detector: Arc::clone(detector),
        commands: made_in_code.commands,
        parsers: made_in_code.parsers,
    };
    let mcp = McpHandlers { places: cli.host.places.clone(), upstreams: Upstreams::default() };
    Ok(ToolHandlers { js, cli, rust, mcp })
}

/// The environment variables of the gateway itself. No tool gets them.
pub fn own_variables(names: OwnNames) -> OwnVariables {
    match names {
        OwnNames::Known(names) => OwnVariables::named(names),
        OwnNames::Unknown => OwnVariables::Unknown,
    }
}

fn required_layers(config: &Config, kind: JailKind) -> LayerSet {
    match config.worker.required {
        RequiredJail::Minimum => kind.minimum(),
        RequiredJail::Hardened => kind.hardened(),
    }
}

/// Containers must have limits, unless the operator sets `danger_unbounded_containers` without requiring a hardened jail.
fn required_container_layers(config: &Config) -> LayerSet {
    match (config.worker.required, config.commands.danger_unbounded_containers) {
        (RequiredJail::Minimum, true) => JailKind::Container.minimum(),
        (RequiredJail::Hardened, _) | (RequiredJail::Minimum, false) => JailKind::Container.hardened(),
    }
}

fn open_pool(config: &Config, program: PathBuf, alarm: &Arc<EscapeAlarm>) -> Result<Pool, OpenError> {
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
        required: required_layers(config, JailKind::Worker),
        namespaces: Namespaces::Enter,
        cpu_seconds: CPU_SECONDS,
    };
    let alarm = Arc::downgrade(alarm);
    let on_end = move |end: &WorkerEnd| {
        if let Some(alarm) = alarm.upgrade() {
            alarm.worker_ended(end);
        }
    };
    Pool::watched(pool, Arc::new(on_end))
        .map_err(|error| OpenError { part: "sandbox", problem: error.to_string() })
}

/// More workers than processors, because many calls wait for a server. Bounded, because each may use the memory of a call.
fn default_workers(processors: usize) -> usize {
    (4 * processors).clamp(8, 64).max(processors)
}

/// Programs must not replace the command or parser of a shipped tool, because only the shipped one was reviewed.
pub fn check_own<'n>(mut names: impl Iterator<Item = &'n String>) -> Result<(), OpenError> {
    match names.find(|name| catalog::reserved_by(name).is_some()) {
        Some(name) => Err(OpenError {
            part: "commands",
            problem: format!("`{name}` is the name of a shipped tool; give your tool another name"),
        }),
        None => Ok(()),
    }
}

/// Rejects commands and parsers in code for tools without a document. They would never be called.
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
    // The document may be in a file that cannot be read, so name those files.
    let unread: Vec<String> = loaded.unread.iter().map(ToString::to_string).collect();
    Err(OpenError {
        part: "tools",
        problem: format!(
            "no readable document describes a tool `{name}`; these files cannot be read: {}",
            unread.join("; ")
        ),
    })
}

const CPU_SECONDS: u64 = 3_600;

#[cfg(test)]
mod tests {
    use toolgate_config::Overrides;

    use super::*;
    use crate::load::{LoadProblem, LoadedTool, ToolOrigin};

    /// Otherwise a shell could use all memory of the host.
    #[test]
    fn containers_are_bounded_unless_the_operator_disables_it() {
        let layers = |keys: &str| {
            let text = format!("version: 1\n{keys}");
            let folder = std::env::temp_dir();
            let parsed = Config::parse(&text, &folder, &|_| None, &Overrides::default());
            required_container_layers(&parsed.unwrap()).names()
        };
        let bounded = ["memory-limit", "process-limit", "cpu-limit"];
        assert_eq!(layers(""), bounded);
        assert_eq!(layers("worker: {required: hardened}\n"), bounded);
        let danger = "commands: {danger_unbounded_containers: true}\n";
        assert_eq!(layers(danger), Vec::<String>::new());
        // `hardened` wins.
        assert_eq!(layers(&format!("{danger}worker: {{required: hardened}}\n")), bounded);
    }

    #[test]
    fn command_in_code_needs_a_described_tool_that_is_not_shipped() {
        let own = "pages".to_owned();
        assert!(check_own([&own].into_iter()).is_ok());
        for shipped in ["git_log", "Bash"] {
            let problem = check_own([&own, &shipped.to_owned()].into_iter()).unwrap_err().problem;
            assert!(problem.contains(shipped), "{problem}");
        }
        let mut loaded = Loaded::default();
        let missing = check_described([&own].into_iter(), &loaded).unwrap_err();
        assert_eq!(missing.to_string(), "commands: no document describes a tool `pages`");
        // A tool that cannot be loaded is described too. Its problem is reported elsewhere.
        let tool = LoadedTool {
            name: own.clone(),
            origin: ToolOrigin::File(PathBuf::from("pages.yaml")),
            candidate: Err("its command is not installed".to_owned()),
            is_exposed: false,
            document: None,
        };
        loaded.tools.insert(toolgate_gate::ListPosition::nth(0), Arc::new(tool));
        assert!(check_described([&own].into_iter(), &loaded).is_ok());
    }

    #[test]
    fn unreadable_document_is_named_as_the_reason() {
        let mut loaded = Loaded::default();
        let what = "invalid YAML".to_owned();
        loaded.unread.push(LoadProblem { place: "tools/pages.yaml".to_owned(), what });
        let problem = check_described([&"pages".to_owned()].into_iter(), &loaded).unwrap_err().to_string();
        assert_eq!(
            problem,
            "tools: no readable document describes a tool `pages`; these files cannot be read: \
             tools/pages.yaml: invalid YAML"
        );
    }
}
