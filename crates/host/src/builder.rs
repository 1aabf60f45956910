//! Builds a gateway step by step. Everything that is not set has the default of the configuration file.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
};

use toolgate_config::{
    Config, ConfigEntry, ConfigOrigin, Overrides,
    model::{
        Approvals, AskFrom, Audit, Auth, JwtIssuer, LimitSettings, Otlp, ServerSettings, WorkerSettings,
    },
};
use toolgate_gate::Observer;
use toolgate_handlers::{CliCommand, OutputParser};
use toolgate_policy::{PerCaller, ToolPolicy, per_caller};

use crate::{
    open::{Extras, OpenError, TestRuns, Toolgate},
    rust_tool::RustTool,
    startup,
};

/// The differences from the defaults. Settings are applied in the order of the calls, on top of `config` or `settings`.
#[derive(Default)]
pub struct Builder {
    folder: PathBuf,
    base: ConfigBase,
    changes: Vec<ConfigChange>,
    tools: Vec<PathBuf>,
    cedar: Vec<PathBuf>,
    agents: Option<PerCaller>,
    extras: Extras,
}

type ConfigChange = Box<dyn FnOnce(&mut Config) + Send>;

#[derive(Default)]
enum ConfigBase {
    #[default]
    Defaults,
    Text(String),
    Config(Box<Config>),
}

/// Paths.
impl Builder {
    /// The base of relative paths. The state directory is below it unless `state` is set.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The directory that file tools see.
    #[must_use]
    pub fn workspace(mut self, workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        self.change(move |config| config.workspace = workspace);
        self
    }

    /// The directory of journal, keys and approvals.
    #[must_use]
    pub fn state(mut self, state: impl Into<PathBuf>) -> Self {
        let state = state.into();
        self.change(move |config| config.state = state);
        self
    }

    /// A tool document, or a directory of them; may be repeated.
    #[must_use]
    pub fn tools(mut self, path: impl Into<PathBuf>) -> Self {
        self.tools.push(path.into());
        self
    }
}

/// Settings. `docs/config.md` describes each.
impl Builder {
    /// Starts from a configuration that was read from a file or a text.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.base = ConfigBase::Config(Box::new(config));
        self
    }

    /// Starts from the text of a `toolgate.yaml`, such as `worker: {count: 2}`. `version: 1` may be omitted. `build` reports
    /// unknown keys and values out of range.
    #[must_use]
    pub fn settings(mut self, yaml: impl Into<String>) -> Self {
        self.base = ConfigBase::Text(yaml.into());
        self
    }

    /// The lowest risk level at which a person must approve calls of tools without approval settings.
    #[must_use]
    pub fn approvals(self, ask_from: AskFrom) -> Self {
        self.approval_settings(move |approvals| approvals.ask_from = ask_from)
    }

    /// Who approves calls, how long a call waits for the answer, and how long the answer is valid.
    #[must_use]
    pub fn approval_settings(mut self, change: impl FnOnce(&mut Approvals) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.approvals));
        self
    }

    /// The journal: when records are synced to the disk, what happens if a write fails, and the webhook for alerts.
    #[must_use]
    pub fn audit(mut self, change: impl FnOnce(&mut Audit) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.audit));
        self
    }

    /// The worker processes of JavaScript tools: their number, their isolation, and the required sandbox strength.
    #[must_use]
    pub fn worker(mut self, change: impl FnOnce(&mut WorkerSettings) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.worker));
        self
    }

    /// The limits on running and waiting calls, and on the size of arguments.
    #[must_use]
    pub fn limits(mut self, change: impl FnOnce(&mut LimitSettings) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.limits));
        self
    }

    /// Sends traces and metrics to an OpenTelemetry collector.
    #[must_use]
    pub fn telemetry(mut self, collector: Otlp) -> Self {
        self.change(move |config| config.metrics.otlp = Some(collector));
        self
    }

    /// Accepts tokens of this issuer; may be repeated. See `Toolgate::authenticate` and `Toolgate::serve_http`.
    #[must_use]
    pub fn jwt(mut self, issuer: JwtIssuer) -> Self {
        self.change(move |config| config.auth.jwt.push(issuer));
        self
    }

    /// Who may call over HTTP, and the caller of stdio.
    #[must_use]
    pub fn auth(mut self, change: impl FnOnce(&mut Auth) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.auth));
        self
    }

    /// The address and the limits of `Toolgate::serve_http`.
    #[must_use]
    pub fn server(mut self, change: impl FnOnce(&mut ServerSettings) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.server));
        self
    }
}

/// Policies.
impl Builder {
    /// A policy in code. It is asked for every call and every listing, in addition to all other policies. May be repeated;
    /// then all of them must allow.
    #[must_use]
    pub fn policy(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.extras.policy = Arc::new(self.extras.policy.and(policy));
        self
    }

    /// The policy of one agent, by the caller's subject. As soon as one agent has a policy, callers without one may call
    /// nothing, unless `policy_for_others` is set.
    #[must_use]
    pub fn policy_for(mut self, agent: impl Into<String>, policy: impl ToolPolicy + 'static) -> Self {
        self.agents = Some(self.agents.unwrap_or_else(per_caller).with(agent, policy));
        self
    }

    /// The policy of every caller that `policy_for` does not name.
    #[must_use]
    pub fn policy_for_others(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.agents = Some(self.agents.unwrap_or_else(per_caller).otherwise(policy));
        self
    }

    /// A file of Cedar policies; may be repeated.
    #[must_use]
    pub fn cedar(mut self, file: impl Into<PathBuf>) -> Self {
        self.cedar.push(file.into());
        self
    }

    /// Cedar policies in code, with the same effect as those of files. Messages call them `name`. May be repeated.
    #[must_use]
    pub fn cedar_text(mut self, name: impl Into<String>, policies: impl Into<String>) -> Self {
        self.extras.cedar.push((name.into(), policies.into()));
        self
    }
}

/// Code of the program.
impl Builder {
    /// A tool that is an async function of this program; may be repeated.
    #[must_use]
    pub fn tool(mut self, tool: RustTool) -> Self {
        self.extras.tools.push(tool);
        self
    }

    /// Builds the arguments of a command tool in code. The document of the tool is among `tools` and names the same command.
    /// It defines everything else: the parameters, and what the command may do. May be repeated.
    #[must_use]
    pub fn command(mut self, tool: impl Into<String>, command: CliCommand) -> Self {
        self.extras.commands.insert(tool.into(), command);
        self
    }

    /// Parses the standard output of a command tool in code, instead of by its `output`. The result must still match the
    /// document's output schema. May be repeated.
    #[must_use]
    pub fn output_parser(mut self, tool: impl Into<String>, parser: OutputParser) -> Self {
        self.extras.parsers.insert(tool.into(), parser);
        self
    }

    /// Called after every call.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.extras.observer = Some(observer);
        self
    }

    /// Lets test runs change the workspace itself and everything else that the tools can reach. By default, a tool that writes
    /// is tested on a copy of the workspace, and a tool that could change more is not tested.
    #[must_use]
    pub const fn test_for_real(mut self) -> Self {
        self.extras.test_runs = TestRuns::ForReal;
        self
    }

    /// Opens the gateway. Needs a Tokio runtime, and [`run_if_worker`](crate::run_if_worker) first in `main`.
    pub async fn build(mut self) -> Result<Toolgate, OpenError> {
        startup::check()?;
        let given = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        // Remove `..`: paths of the gateway that do not exist yet are blocked for tools by name.
        let folder = given.canonicalize().map_err(|error| OpenError {
            part: "folder",
            problem: format!("`{}`: {error}", given.display()),
        })?;
        let mut config = self.base.read(&folder)?;
        for change in self.changes {
            change(&mut config);
        }
        let absolute = |path: PathBuf| folder.join(path);
        config.workspace = absolute(config.workspace);
        config.state = absolute(config.state);
        config.tools.extend(self.tools.into_iter().map(absolute));
        config.policy.cedar.extend(self.cedar.into_iter().map(absolute));
        if let Some(agents) = self.agents {
            self.extras.policy = Arc::new(self.extras.policy.and(agents));
        }
        Toolgate::open(config, self.extras).await
    }

    fn change(&mut self, change: impl FnOnce(&mut Config) + Send + 'static) {
        self.changes.push(Box::new(change));
    }
}

impl ConfigBase {
    fn read(self, folder: &Path) -> Result<Config, OpenError> {
        let text = match self {
            Self::Config(config) => return Ok(*config),
            Self::Defaults => DEFAULTS.to_owned(),
            Self::Text(text) if text.lines().any(|line| line.starts_with("version:")) => text,
            Self::Text(text) => format!("version: 1\n{text}"),
        };
        let parsed = Config::parse(&text, folder, &|_| None, &Overrides::default());
        let mut config = parsed.map_err(|errors| {
            let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
            OpenError { part: "configuration", problem: problems.join("; ") }
        })?;
        let is_default =
            |entry: &ConfigEntry| entry.key.starts_with("tools") && entry.origin == ConfigOrigin::Default;
        if config.entries().iter().any(is_default) {
            // A program names its tools explicitly. A directory that happens to be called `tools` is ignored.
            config.tools.clear();
        }
        Ok(config)
    }
}

const DEFAULTS: &str = "version: 1\n";

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("folder", &self.folder)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}
