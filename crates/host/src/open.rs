//! Opens a gateway from one configuration. Fails at the first part that cannot be used.

mod kept_tools;
mod loading;
mod narrowing;
mod parts;
mod records;
mod reload;
mod trials;

pub use self::{
    parts::{ask_threshold, open_egress, open_state},
    reload::{ConfigFollower, ReloadReport, WatchStart},
    trials::{TestRunError, TestRuns},
};

use std::{
    collections::BTreeMap,
    fmt, io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use arc_swap::ArcSwap;
use serde_json::json;
use toolgate_config::{Config, model::default_key_file};
use toolgate_egress::Egress;
use toolgate_gate::{Call, Gate, Observer, Outcome, Publisher, SystemClock};
use toolgate_handlers::{CliCommand, OutputParser, ToolHandlers};
use toolgate_policy::{ALLOW_ALL, Arguments, Caller, ToolPolicy};
use toolgate_secrets::Detector;
use toolgate_spec::project::WireTarget;
use toolgate_store::{FileChanges, PassphraseSource, StateDb};
use toolgate_telemetry::Telemetry;

use self::parts::{compare_with_journals, gate_parts, open_alerts, publisher};
use crate::{
    alarm::EscapeAlarm,
    alerts::Alerts,
    builder::Builder,
    detector::open_detector,
    handlers::{CommandsInCode, check_described, check_own, open_handlers, own_variables},
    journal::FileJournal,
    journals::{JournalOwner, open_journal},
    listing::ToolList,
    load::{InCode, LoadCache, Loaded, ToolOrigin, TrialSelection},
    rollback::StateRollback,
    rust_tool::RustTool,
    secret_values::{SecretValues, open_vault},
    serve::CachedAuthenticator,
    telemetry::{Observers, start_telemetry},
    upstreams::ListingWatch,
};

/// A gateway with its tools, its state and its journal.
pub struct Toolgate {
    gate: Gate,
    config: ArcSwap<Config>,
    publisher: ArcSwap<Publisher>,
    state: Arc<StateDb>,
    journal: FileJournal,
    secrets: Arc<Detector>,
    handlers: Arc<ToolHandlers>,
    secret_values: SecretValues,
    egress: Egress,
    journal_owner: JournalOwner,
    test_runs: TestRuns,
    alerts: Option<Arc<Alerts>>,
    telemetry: Option<Arc<Telemetry>>,
    pub(crate) proofs: CachedAuthenticator,
    in_code: InCode,
    /// Owned here, because the worker pool holds a weak reference.
    _alarm: Arc<EscapeAlarm>,
    loaded: Mutex<Arc<Loaded>>,
    cache: Mutex<LoadCache>,
    /// Withdrawn tools and tokens that an older state brought back. They were withdrawn again when this was opened.
    rollback: StateRollback,
    /// Serializes changes of the active tools and settings, from reading to swapping.
    changing: tokio::sync::Mutex<()>,
}

/// Additions of an embedding program to the configuration.
pub struct Extras {
    /// Asked for every call, in addition to all other policies.
    pub policy: Arc<dyn ToolPolicy>,
    /// Called after every call.
    pub observer: Option<Arc<dyn Observer>>,
    /// Commands whose arguments are built in code, by tool name.
    pub commands: BTreeMap<String, CliCommand>,
    /// Parsers in code for the output of commands, by tool name.
    pub parsers: BTreeMap<String, OutputParser>,
    /// Tools that are Rust functions of the program.
    pub tools: Vec<RustTool>,
    /// Cedar policies in code, each with its name in messages. They have the same effect as those of the configuration.
    pub cedar: Vec<(String, String)>,
    /// A journal has one writer at a time, so CLI commands use another journal than a running gateway.
    pub journal_owner: JournalOwner,
    /// The effects that test runs of `publish_all` may have.
    pub test_runs: TestRuns,
    /// Asks for the passphrase of the secret store. `None`: it is read from the file that `TOOLGATE_PASSPHRASE_FILE` names.
    pub passphrase: Option<Arc<dyn PassphraseSource>>,
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            policy: Arc::new(ALLOW_ALL),
            observer: None,
            commands: BTreeMap::new(),
            parsers: BTreeMap::new(),
            tools: Vec::new(),
            cedar: Vec::new(),
            journal_owner: JournalOwner::Gateway,
            test_runs: TestRuns::Contained,
            passphrase: None,
        }
    }
}

/// The part that could not be opened, and why.
#[derive(Debug)]
pub struct OpenError {
    pub part: &'static str,
    pub problem: String,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.part, self.problem)
    }
}

impl std::error::Error for OpenError {}

impl Toolgate {
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Opens all parts and loads the tools. Needs a Tokio runtime, because tasks on it watch the workers. Programs use
    /// [`Builder::build`], which also checks that `run_if_worker` was called in time.
    pub async fn open(mut config: Config, extras: Extras) -> Result<Self, OpenError> {
        check_own(extras.commands.keys().chain(extras.parsers.keys()))?;
        let state = open_state(&config)?;
        let journal = open_journal(&config, extras.journal_owner)?;
        let rollback = compare_with_journals(&config, &state, &journal)?;
        let egress = open_egress(&config.state)?;
        let detector = open_detector(&config)?;
        let parts = gate_parts(&config, &journal, &state, Arc::clone(&detector));
        let telemetry = match extras.journal_owner {
            JournalOwner::Gateway => start_telemetry(&config)?,
            JournalOwner::Command => None,
        };
        let observers = Observers::of(extras.observer, telemetry.clone());
        let (alerts, observer) = open_alerts(&config, &egress, &journal, observers)?;
        let gate = Gate::with(parts, extras.policy, Arc::new(SystemClock), observer);
        let metrics = Arc::clone(gate.metrics());
        let alarm = Arc::new(EscapeAlarm { journal: journal.clone(), metrics, alerts: alerts.clone() });
        let checks = extras.tools.iter().map(RustTool::check).collect();
        let in_code = InCode { tools: extras.tools, checks, cedar: extras.cedar };
        let commands = CommandsInCode { commands: extras.commands, parsers: extras.parsers };
        let secret_values = open_secrets(&mut config, extras.passphrase);
        let handlers =
            open_handlers(&config, egress.clone(), &detector, commands, &in_code, &secret_values, &alarm)?;
        let (directory, passes) = (config.state.clone(), Arc::clone(&state));
        handlers.mcp.upstreams.observe(ListingWatch { directory, passes, journal: journal.clone() });
        let handlers = Arc::new(handlers);
        let publisher = publisher(&config, &handlers, &state, &secret_values)?;
        let toolgate = Self {
            gate,
            publisher: ArcSwap::from_pointee(publisher),
            state,
            journal,
            secrets: detector,
            handlers,
            secret_values,
            egress,
            journal_owner: extras.journal_owner,
            test_runs: extras.test_runs,
            alerts,
            telemetry,
            proofs: CachedAuthenticator::default(),
            in_code,
            _alarm: alarm,
            loaded: Mutex::default(),
            cache: Mutex::default(),
            rollback,
            changing: tokio::sync::Mutex::default(),
            config: ArcSwap::from_pointee(config),
        };
        if extras.journal_owner == JournalOwner::Gateway {
            toolgate.note(&json!({
                "kind": "gateway.started",
                "version": env!("CARGO_PKG_VERSION"),
                "debug": toolgate.config().audit.debug,
            }))?;
        }
        toolgate.load_first().await?;
        Ok(toolgate)
    }

    /// Activates all tools without problems, and reports the others.
    async fn load_first(&self) -> Result<(), OpenError> {
        let config = self.config();
        let mut loaded = self.load(&config, self.publisher(), &FileChanges::Everything);
        // Test before serving: a client that lists tools at once sees all of them.
        if Box::pin(self.test_untested(&loaded, TrialSelection::Untested)).await {
            loaded = self.load(&config, self.publisher(), &FileChanges::default());
        }
        let cli = &self.handlers.cli;
        check_described(cli.commands.keys().chain(cli.parsers.keys()), &loaded)?;
        check_sound(&loaded)?;
        self.activate(loaded, &config)
    }

    pub const fn gate(&self) -> &Gate {
        &self.gate
    }

    pub fn config(&self) -> Arc<Config> {
        self.config.load_full()
    }

    pub const fn state(&self) -> &Arc<StateDb> {
        &self.state
    }

    pub(crate) fn handlers(&self) -> &ToolHandlers {
        &self.handlers
    }

    /// The source of the tools' secrets.
    pub const fn secret_values(&self) -> &SecretValues {
        &self.secret_values
    }

    pub const fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Prevents every tool of this workspace from connecting to `listener`. Call it for each socket that serves this gateway,
    /// after it is bound and before it listens.
    pub fn register_listener(&self, listener: SocketAddr) -> io::Result<()> {
        self.egress.listeners().register(listener)
    }

    pub fn publisher(&self) -> Arc<Publisher> {
        self.publisher.load_full()
    }

    /// The result of the last load.
    pub fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.loaded.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tools and tokens that an older, restored state brought back. They were unpublished or revoked again when this was opened.
    pub const fn rollback(&self) -> &StateRollback {
        &self.rollback
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: impl Into<Arguments>, caller: &Caller) -> Outcome {
        self.gate.call(tool, arguments.into().into(), caller).await
    }

    /// Calls a tool with a deadline. A call that takes longer than `time`, including waiting, ends with the reason
    /// `execute.timeout`.
    pub async fn call_within(
        &self,
        time: Duration,
        tool: &str,
        arguments: impl Into<Arguments>,
        caller: &Caller,
    ) -> Outcome {
        let call = Call::from_program(tool, arguments.into().into(), caller);
        self.gate.handle_within(call, time).await
    }

    /// The tools that this caller may see, with full definitions, in the format of a model API.
    pub fn list_tools(&self, caller: &Caller, form: WireTarget) -> ToolList {
        ToolList::of(&self.gate.list(caller), form)
    }

    /// The names of the tools that this caller may see, in order.
    pub fn list(&self, caller: &Caller) -> Vec<String> {
        self.gate.list(caller).iter().map(|tool| tool.name().to_owned()).collect()
    }

    /// Sends the remaining telemetry. Ends idle workers, which may raise alerts, and waits a few seconds for the webhook to
    /// accept pending alerts. `close` records the rest.
    pub async fn deliver_alerts(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.shutdown().await;
        }
        self.handlers.js.runner.retire_idle();
        if let Some(alerts) = &self.alerts {
            alerts.deliver().await;
        }
    }

    /// Refuses new calls, and closes the journal. Call it when the running calls have ended: `gate().idle()` waits for them,
    /// `gate().end_calls()` ends them.
    pub fn close(&self) -> Result<(), OpenError> {
        self.gate.seal();
        // Escape attempts of idle workers belong in this journal too.
        self.handlers.js.runner.retire_idle();
        if let Some(alerts) = &self.alerts {
            alerts.give_up();
        }
        if self.journal_owner == JournalOwner::Gateway {
            self.note(&json!({ "kind": "gateway.stopped" }))?;
        }
        Ok(self.journal.files.close()?)
    }
}

fn open_secrets(config: &mut Config, passphrase: Option<Arc<dyn PassphraseSource>>) -> SecretValues {
    // A program that embeds the gateway reads no environment with its configuration.
    if config.secrets.key_file.is_none() {
        config.secrets.key_file = default_key_file(&|name| std::env::var(name).ok());
    }
    let vault = open_vault(&config.state, &config.workspace, &config.secrets, passphrase);
    SecretValues::with_store(vault, &config.secrets, own_variables(config.own_variables()))
}

/// Fails if a Rust tool of the program cannot be served, because that is a bug in the program.
fn check_sound(loaded: &Loaded) -> Result<(), OpenError> {
    let own = loaded.tools.iter().filter(|tool| tool.origin == ToolOrigin::Program);
    let broken: Vec<String> =
        own.filter_map(|tool| Some(format!("`{}`: {}", tool.name, tool.candidate.as_ref().err()?))).collect();
    if broken.is_empty() { Ok(()) } else { Err(OpenError { part: "tools", problem: broken.join("; ") }) }
}

impl fmt::Debug for Toolgate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Toolgate").field("gate", &self.gate).finish_non_exhaustive()
    }
}

impl fmt::Debug for Extras {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Extras").finish_non_exhaustive()
    }
}
