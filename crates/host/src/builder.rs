//! Puts a gateway together step by step, with the defaults of the configuration file.

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

/// Where things are.
impl Builder {
    /// The base of relative paths. The state is kept below it unless `state` says otherwise.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The folder that file tools see.
    #[must_use]
    pub fn workspace(mut self, workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        self.change(move |config| config.workspace = workspace);
        self
    }

    /// The folder of journal, keys and approvals.
    #[must_use]
    pub fn state(mut self, state: impl Into<PathBuf>) -> Self {
        let state = state.into();
        self.change(move |config| config.state = state);
        self
    }

    /// A tool document, or a folder of them; may be repeated.
    #[must_use]
    pub fn tools(mut self, path: impl Into<PathBuf>) -> Self {
        self.tools.push(path.into());
        self
    }
}

/// Settings. `docs/config.md` describes each.
impl Builder {
    /// Begins with a configuration that was read from a file or a text.
    #[must_use]
    pub fn config(mut self, config: Config) -> Self {
        self.base = ConfigBase::Config(Box::new(config));
        self
    }

    /// Begins with the text of a `toolgate.yaml`, such as `worker: {count: 2}`. `version: 1` may be left out. `build` reports
    /// unknown keys and values out of bounds.
    #[must_use]
    pub fn settings(mut self, yaml: impl Into<String>) -> Self {
        self.base = ConfigBase::Text(yaml.into());
        self
    }

    /// From which risk level a person is asked about tools that say nothing about approval.
    #[must_use]
    pub fn approvals(self, ask_from: AskFrom) -> Self {
        self.approval_settings(move |approvals| approvals.ask_from = ask_from)
    }

    /// Who is asked, how long an answer is waited for, and how long it counts.
    #[must_use]
    pub fn approval_settings(mut self, change: impl FnOnce(&mut Approvals) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.approvals));
        self
    }

    /// The journal: when records reach the disk, what happens when they cannot, and the webhook for alerts.
    #[must_use]
    pub fn audit(mut self, change: impl FnOnce(&mut Audit) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.audit));
        self
    }

    /// The worker processes of JavaScript tools: how many, how isolated, how strong their sandbox must be.
    #[must_use]
    pub fn worker(mut self, change: impl FnOnce(&mut WorkerSettings) + Send + 'static) -> Self {
        self.change(move |config| change(&mut config.worker));
        self
    }

    /// How many calls run and wait, and how large arguments may be.
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

    /// Who may call over HTTP, and as whom calls over stdio are made.
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
    /// A policy in code; asked at every call and for every listing, beside everything else. Repeated, all of them must allow.
    #[must_use]
    pub fn policy(mut self, policy: impl ToolPolicy + 'static) -> Self {
        self.extras.policy = Arc::new(self.extras.policy.and(policy));
        self
    }

    /// The policy of one agent, by the caller's subject. With any of these, a caller without a policy may call nothing, unless
    /// `policy_for_others` is set.
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

    /// Cedar policies in code; `name` stands for them in messages. They count like those of files; may be repeated.
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

    /// The command of the tool of this name, with arguments that are made in code. Its document is among `tools`, names the same
    /// command, and says everything else: the arguments of a call, and what the command may do. May be repeated.
    #[must_use]
    pub fn command(mut self, tool: impl Into<String>, command: CliCommand) -> Self {
        self.extras.commands.insert(tool.into(), command);
        self
    }

    /// Reads the standard output of the command tool of this name in code, in place of its `output`. May be repeated. The
    /// result still has to fit the document's output schema.
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

    /// Lets test runs change the workspace itself and everything else that the tools reach. By default a tool that writes is
    /// tested on a copy of the workspace, and one that could change more is not tested.
    #[must_use]
    pub const fn test_for_real(mut self) -> Self {
        self.extras.test_runs = TestRuns::ForReal;
        self
    }

    /// Opens the gateway. Needs a Tokio runtime, and [`run_if_worker`](crate::run_if_worker) first in `main`.
    pub async fn build(mut self) -> Result<Toolgate, OpenError> {
        startup::check()?;
        let given = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        // Without `..`: paths of the gateway that do not exist yet are blocked for tools by their names.
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
            let told: Vec<String> = errors.iter().map(ToString::to_string).collect();
            OpenError { part: "configuration", problem: told.join("; ") }
        })?;
        let is_default =
            |entry: &ConfigEntry| entry.key.starts_with("tools") && entry.origin == ConfigOrigin::Default;
        if config.entries().iter().any(is_default) {
            // A program names its tools; a folder that happens to be called `tools` is not meant.
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
