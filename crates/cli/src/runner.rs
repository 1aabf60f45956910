//! What is needed to run a tool from the command line? A small pool, a way out, and the tool made ready.

use std::{path::PathBuf, sync::Arc};

use serde_json::{Map, Value};
use tokio::runtime::Runtime;
use toolgate_handlers::{EnvironmentSecrets, JsReport, JsRunner, JsTool, Places, missing_helpers};
use toolgate_policy::EffectivePolicy;
use toolgate_sandbox::{Isolation, Namespaces, Pool, PoolConfig, Required};
use toolgate_secrets::Detector;
use toolgate_spec::{
    model::{NetworkMode, ParamType, ToolSpec},
    parse_test_value,
};

use crate::{Failure, args::SandboxArgs, terminal::visible};

/// Runs tools one after the other.
pub struct Runner {
    runtime: Runtime,
    pool: Pool,
    places: Places,
}

impl Runner {
    pub fn new(args: &SandboxArgs) -> Result<Self, Failure> {
        let told = |what: &str, error: std::io::Error| Failure::new(format!("{what}: {error}"));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|error| told("no runtime", error))?;
        let program =
            std::env::current_exe().map_err(|error| told("this program cannot be found again", error))?;
        let config = PoolConfig {
            program,
            workers: 1,
            spares: 0,
            waiting: 0,
            recycle_after: RECYCLE_AFTER,
            // Tools of one person, run by that person; but each with a worker of its own.
            isolation: Isolation::PerTool,
            required: if args.hardened { Required::HARDENED } else { Required::MINIMUM },
            namespaces: Namespaces::Enter,
            cpu_seconds: CPU_SECONDS,
        };
        let pool = Pool::new(config).map_err(|error| told("no sandbox", error))?;
        let workspace = args
            .workspace
            .canonicalize()
            .map_err(|error| Failure::at(&args.workspace, format!("no workspace: {error}")))?;
        let home = std::env::var_os("HOME").map(Into::into).filter(|home: &PathBuf| home.is_absolute());
        Ok(Self { runtime, pool, places: Places { workspace, home, guarded: Vec::new() } })
    }

    /// `None` for a tool that is not JavaScript.
    pub fn run(
        &self,
        spec: &Arc<ToolSpec>,
        policy: &EffectivePolicy,
        arguments: &Map<String, Value>,
    ) -> Result<Option<JsReport>, Failure> {
        let Some(tool) = JsTool::new(Arc::clone(spec), policy, &self.places) else { return Ok(None) };
        let lacks = missing_helpers(spec);
        if let Some(helper) = lacks.first() {
            let (name, helper) = (visible(&spec.name), visible(helper));
            return Err(Failure::Findings(format!(
                "`{name}` asks for the helper `{helper}`, which is not offered here"
            )));
        }
        let _runtime = self.runtime.enter();
        let egress = if policy.network.mode.value == NetworkMode::Blocked {
            None
        } else {
            Some(toolgate::open_egress().map_err(|error| Failure::new(error.to_string()))?)
        };
        let detector = Detector::shipped().map_err(|error| Failure::new(error.to_string()))?;
        let runner = JsRunner::new(self.pool.clone(), egress, detector);
        let survey = tool
            .survey(arguments)
            .map_err(|refusal| Failure::Findings(format!("{}; {}", refusal.message, refusal.remedy)))?;
        let run = runner.run(&tool, arguments, &survey, &EnvironmentSecrets, "command line");
        Ok(Some(self.runtime.block_on(run)))
    }
}

/// `name=value` and `name:=JSON`, in the types that the tool declares.
pub fn arguments(spec: &ToolSpec, given: &[String]) -> Result<Map<String, Value>, Failure> {
    let mut arguments = Map::new();
    for argument in given {
        let shown = visible(argument);
        let (name, value) = argument.split_once('=').ok_or_else(|| {
            Failure::new(format!("`{shown}` is no argument; write name=value or name:=JSON"))
        })?;
        let (name, is_json) = name.strip_suffix(':').map_or((name, false), |name| (name, true));
        let param = spec.params.iter().find(|param| param.name == name).ok_or_else(|| {
            let known: Vec<&str> = spec.params.iter().map(|param| param.name.as_str()).collect();
            Failure::new(format!(
                "no parameter is called `{}`; there are: {}",
                visible(name),
                visible(&known.join(", "))
            ))
        })?;
        let kind = if is_json { ParamType::Object } else { param.kind };
        let value = if is_json {
            serde_json::from_str(value).map_err(|error| error.to_string())
        } else {
            parse_test_value(kind, value)
        };
        let value =
            value.map_err(|problem| Failure::new(format!("`{}`: {}", visible(name), visible(&problem))))?;
        arguments.insert(name.to_owned(), value);
    }
    let missing = spec.params.iter().find(|param| param.required && !arguments.contains_key(&param.name));
    match missing {
        Some(param) => Err(Failure::new(format!(
            "`{}` is required; add {}=…",
            visible(&param.name),
            visible(&param.name)
        ))),
        None => Ok(arguments),
    }
}

const RECYCLE_AFTER: u32 = 1_000;
const CPU_SECONDS: u64 = 3_600;
