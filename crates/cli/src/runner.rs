//! Runs a tool from the command line: a small worker pool, an egress proxy and the prepared tool.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use toolgate_gate::{
    ApprovedSecrets, DiskCheckPermits, Handlers as _, Purpose, RunReport, RunRequest, StopFlag,
    UnreportedEffects,
};
use toolgate_handlers::{
    AllowedCommands, CliHandlers, CommandHost, GatewayEnvironment, JsHandlers, JsRunner, McpHandlers,
    OwnVariables, Places, RustHandlers, ToolHandlers, Upstreams,
};
use toolgate_policy::{EffectivePolicy, SecretSource};
use toolgate_sandbox::{Isolation, JailKind, LayerSet, Namespaces, Pool, PoolConfig, container_egress};
use toolgate_secrets::Detector;
use toolgate_spec::{
    model::{ParamType, ToolSpec},
    parse_test_value, project,
};

use crate::{Failure, args::SandboxArgs, passphrase, terminal::visible};

/// Runs tools one after another.
pub struct Runner {
    runtime: Runtime,
    pool: Pool,
    places: Places,
    own: OwnVariables,
    secrets: Arc<dyn SecretSource>,
    program: PathBuf,
    required: LayerSet,
}

impl Runner {
    pub fn new(args: &SandboxArgs) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| Failure::new(format!("{what}: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| failed("the async runtime cannot start", error))?;
        let program =
            std::env::current_exe().map_err(|error| failed("the path of this program is unknown", error))?;
        let required = if args.hardened { JailKind::hardened } else { JailKind::minimum };
        let config = PoolConfig {
            program: program.clone(),
            workers: 1,
            processors: 1,
            spares: 0,
            waiting: 0,
            recycle_after: RECYCLE_AFTER,
            // All tools belong to the user who runs them; one worker per tool keeps them apart.
            isolation: Isolation::PerTool,
            required: required(JailKind::Worker),
            namespaces: Namespaces::Enter,
            cpu_seconds: CPU_SECONDS,
        };
        let pool = Pool::new(config).map_err(|error| failed("the sandbox cannot start", error))?;
        let workspace = args.workspace().canonicalize().map_err(|error| {
            Failure::at(args.workspace(), format!("the workspace cannot be opened: {error}"))
        })?;
        let home = toolgate_handlers::home()
            .map_err(|problem| Failure::new(format!("the home directory is unknown: {problem}")))?;
        let environment = |name: &str| std::env::var(name).ok();
        let guarded = toolgate_config::guarded_in(&workspace, &environment);
        let own = toolgate::own_variables(toolgate_config::own_variables_in(&workspace, &environment));
        let state = toolgate_config::state_in(&workspace, &environment);
        let secrets = passphrase::secrets_of_drafts(&workspace, &state, own.clone(), &environment);
        let places = Places { workspace, home, state, guarded };
        let (secrets, required) = (Arc::new(secrets), required(JailKind::Command));
        Ok(Self { runtime, pool, places, own, secrets, program, required })
    }

    /// Runs a draft once for its author. Effects that need approval count as approved.
    pub fn run(
        &self,
        spec: &Arc<ToolSpec>,
        policy: &EffectivePolicy,
        arguments: &Map<String, Value>,
    ) -> Result<RunReport, Failure> {
        let _runtime = self.runtime.enter();
        let name = visible(&spec.name);
        let tool = self
            .handlers()?
            .prepare(spec, policy)
            .map_err(|why| Failure::Findings(format!("`{name}`: {}", visible(&why))))?;
        let survey = tool.survey(arguments, &StopFlag::default()).map_err(|refusal| {
            Failure::Findings(format!("{}; {}", visible(&refusal.message), visible(&refusal.remedy)))
        })?;
        let request = RunRequest {
            arguments,
            approved_secrets: &ApprovedSecrets::default(),
            unreported: &UnreportedEffects::default(),
            caller: "command line",
            purpose: Purpose::LocalPass,
            disk_checks: &DiskCheckPermits::default(),
        };
        Ok(self.runtime.block_on(survey.call.run(request)))
    }

    fn handlers(&self) -> Result<ToolHandlers, Failure> {
        let egress =
            toolgate::open_egress(&self.places.state).map_err(|error| Failure::new(error.to_string()))?;
        let detector = Detector::shipped().map_err(|error| Failure::new(error.to_string()))?;
        // A single run needs no spare jails.
        let commands = toolgate::Commands::new(self.program.clone(), egress.clone(), self.required, 0, None);
        Ok(ToolHandlers {
            js: JsHandlers {
                runner: JsRunner::new(self.pool.clone(), Some(egress), Arc::clone(&detector)),
                places: self.places.clone(),
                secrets: Arc::clone(&self.secrets),
            },
            cli: CliHandlers {
                launcher: Arc::new(commands),
                host: CommandHost {
                    places: self.places.clone(),
                    allowed: AllowedCommands::Any,
                    environment: GatewayEnvironment::current(self.own.clone()),
                    container_egress: container_egress(),
                },
                secrets: Arc::clone(&self.secrets),
                detector,
                commands: BTreeMap::new(),
                parsers: BTreeMap::new(),
            },
            rust: RustHandlers { places: self.places.clone(), functions: BTreeMap::new() },
            mcp: McpHandlers { places: self.places.clone(), upstreams: Upstreams::default() },
        })
    }
}

/// Parses `name=value` and `name:=JSON` with the types that the tool declares.
pub fn arguments(spec: &ToolSpec, given: &[String]) -> Result<Map<String, Value>, Failure> {
    let schema = project::input_schema(spec).map_err(|error| Failure::new(error.to_string()))?;
    let declared = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut arguments = Map::new();
    for argument in given {
        let shown = visible(argument);
        let (name, value) = argument.split_once('=').ok_or_else(|| {
            Failure::new(format!("invalid argument `{shown}`; write name=value or name:=JSON"))
        })?;
        let (name, is_json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
        let property = declared.get(name).ok_or_else(|| {
            let known: Vec<&str> = declared.keys().map(String::as_str).collect();
            Failure::new(format!(
                "unknown argument `{}`; this tool takes: {}",
                visible(name),
                visible(&known.join(", "))
            ))
        })?;
        let value = if is_json {
            serde_json::from_str(value).map_err(|error| error.to_string())
        } else {
            parse_test_value(kind_of(property), value)
        };
        let value =
            value.map_err(|problem| Failure::new(format!("`{}`: {}", visible(name), visible(&problem))))?;
        arguments.insert(name.to_owned(), value);
    }
    let required = schema.get("required").and_then(Value::as_array);
    let missing =
        required.into_iter().flatten().filter_map(Value::as_str).find(|name| !arguments.contains_key(*name));
    match missing {
        Some(name) => {
            Err(Failure::new(format!("missing argument `{}`; add {}=…", visible(name), visible(name))))
        }
        None => Ok(arguments),
    }
}

fn kind_of(property: &Value) -> ParamType {
    match property.get("type").and_then(Value::as_str) {
        Some("integer") => ParamType::Integer,
        Some("number") => ParamType::Number,
        Some("boolean") => ParamType::Boolean,
        Some("object") => ParamType::Object,
        Some("array") => ParamType::Array,
        _ => ParamType::String,
    }
}

const RECYCLE_AFTER: u32 = 1_000;
const CPU_SECONDS: u64 = 3_600;
