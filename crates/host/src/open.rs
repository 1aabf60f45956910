//! Puts a gateway together from one configuration. Opening fails at the first part that cannot be used.

mod loading;
mod narrowed;
mod parts;
mod records;
mod reload;
mod staying;
mod trials;

pub use self::{
    parts::{ask_threshold, open_egress, open_state},
    reload::{Beside, Reloaded, Watched},
    trials::{NotTested, TestRuns},
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
use toolgate_gate::{Call, Gate, Observer, Outcome, SystemClock, Workshop};
use toolgate_handlers::{CliCommand, OutputParser, ToolHandlers};
use toolgate_policy::{ALLOW_ALL, Arguments, Caller, ToolPolicy};
use toolgate_secrets::Detector;
use toolgate_spec::project::WireTarget;
use toolgate_store::{FileChanges, PassphraseSource, StateDb};
use toolgate_telemetry::Telemetry;

use self::parts::{compare_with_journals, gate_parts, open_alerts, workshop};
use crate::{
    alarm::Alarm,
    alerts::Alerts,
    builder::Builder,
    detector::open_detector,
    handlers::{CommandsInCode, check_described, check_own, open_handlers, own_variables},
    journal::FileJournal,
    journals::{Writes, open_journal},
    listing::ToolList,
    load::{InCode, LoadCache, Loaded, Origin, ToTry},
    restored::Revived,
    rust_tool::RustTool,
    secret_values::{SecretValues, open_vault},
    serve::Proofs,
    telemetry::{Observers, start_telemetry},
};

/// A gateway with its tools, its state and its journal.
pub struct Toolgate {
    gate: Gate,
    config: ArcSwap<Config>,
    workshop: ArcSwap<Workshop>,
    state: Arc<StateDb>,
    journal: FileJournal,
    secrets: Arc<Detector>,
    handlers: Arc<ToolHandlers>,
    secret_values: SecretValues,
    egress: Egress,
    writes: Writes,
    test_runs: TestRuns,
    alerts: Option<Arc<Alerts>>,
    telemetry: Option<Arc<Telemetry>>,
    pub(crate) proofs: Proofs,
    in_code: InCode,
    /// Kept for those who look after the workers, who hold it weakly.
    _alarm: Arc<Alarm>,
    loaded: Mutex<Arc<Loaded>>,
    cache: Mutex<LoadCache>,
    /// Tools and tokens of the state that the journal says were withdrawn. They were withdrawn again when this was opened.
    revived: Revived,
    /// Whoever changes what is in force does it alone, from reading to swapping.
    changing: tokio::sync::Mutex<()>,
}

/// What a program may add to the configuration.
pub struct Extras {
    /// Asked at every call, beside everything else.
    pub policy: Arc<dyn ToolPolicy>,
    /// Told of every call that has ended.
    pub observer: Option<Arc<dyn Observer>>,
    /// Commands whose arguments are made in code, by the names of their tools.
    pub commands: BTreeMap<String, CliCommand>,
    /// Parsers in code for the output of commands, by the names of their tools.
    pub parsers: BTreeMap<String, OutputParser>,
    /// Tools that are functions of the program.
    pub tools: Vec<RustTool>,
    /// Cedar policies in code, each with the name that messages give it; they count like those of the configuration.
    pub cedar: Vec<(String, String)>,
    /// A journal has one writer at a time, so commands beside a running gateway have one of their own.
    pub writes: Writes,
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
            writes: Writes::Gateway,
            test_runs: TestRuns::Contained,
            passphrase: None,
        }
    }
}

/// Which part could not be put in place, and why.
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

    /// Puts everything in place and loads the tools. Needs a runtime of tokio, for workers are watched on it. Programs use
    /// [`Builder::build`], which also checks that `run_if_worker` was called in time.
    pub async fn open(mut config: Config, extras: Extras) -> Result<Self, OpenError> {
        // A program that embeds the gateway reads no environment with its configuration.
        if config.secrets.key_file.is_none() {
            config.secrets.key_file = default_key_file(&|name| std::env::var(name).ok());
        }
        check_own(extras.commands.keys().chain(extras.parsers.keys()))?;
        let state = open_state(&config)?;
        let journal = open_journal(&config, extras.writes)?;
        let revived = compare_with_journals(&config, &state, &journal)?;
        let egress = open_egress(&config.state)?;
        let detector = open_detector(&config)?;
        let parts = gate_parts(&config, &journal, &state, Arc::clone(&detector));
        let telemetry = match extras.writes {
            Writes::Gateway => start_telemetry(&config)?,
            Writes::Command => None,
        };
        let told = Observers::of(extras.observer, telemetry.clone());
        let (alerts, observer) = open_alerts(&config, &egress, &journal, told)?;
        let gate = Gate::with(parts, extras.policy, Arc::new(SystemClock), observer);
        let metrics = Arc::clone(gate.metrics());
        let alarm = Arc::new(Alarm { journal: journal.clone(), metrics, alerts: alerts.clone() });
        let checks = extras.tools.iter().map(RustTool::check).collect();
        let in_code = InCode { tools: extras.tools, checks, cedar: extras.cedar };
        let commands = CommandsInCode { commands: extras.commands, parsers: extras.parsers };
        let vault = open_vault(&config.state, &config.workspace, &config.secrets, extras.passphrase);
        let own = own_variables(config.own_variables());
        let secret_values = SecretValues::with_store(vault, &config.secrets, own);
        let egress_of_tools = egress.clone();
        let handlers = Arc::new(open_handlers(
            &config,
            egress_of_tools,
            &detector,
            commands,
            &in_code,
            &secret_values,
            &alarm,
        )?);
        let workshop = workshop(&config, &handlers, &state, &secret_values)?;
        let toolgate = Self {
            gate,
            workshop: ArcSwap::from_pointee(workshop),
            state,
            journal,
            secrets: detector,
            handlers,
            secret_values,
            egress,
            writes: extras.writes,
            test_runs: extras.test_runs,
            alerts,
            telemetry,
            proofs: Proofs::default(),
            in_code,
            _alarm: alarm,
            loaded: Mutex::default(),
            cache: Mutex::default(),
            revived,
            changing: tokio::sync::Mutex::default(),
            config: ArcSwap::from_pointee(config),
        };
        if extras.writes == Writes::Gateway {
            toolgate.note(&json!({
                "kind": "gateway.started",
                "version": env!("CARGO_PKG_VERSION"),
                "debug": toolgate.config().audit.debug,
            }))?;
        }
        toolgate.load_first().await?;
        Ok(toolgate)
    }

    /// Puts the sound tools in force from the start, and reports the others.
    async fn load_first(&self) -> Result<(), OpenError> {
        let config = self.config();
        let mut loaded = self.load(&config, self.workshop(), &FileChanges::Everything);
        // Before anything is served: a client that lists at once sees all tools.
        if Box::pin(self.try_untried(&loaded, ToTry::Untried)).await {
            loaded = self.load(&config, self.workshop(), &FileChanges::default());
        }
        let cli = &self.handlers.cli;
        check_described(cli.commands.keys().chain(cli.parsers.keys()), &loaded)?;
        check_sound(&loaded)?;
        self.put_in_force(loaded, &config)
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

    /// The source of the tools' secrets.
    pub const fn secret_values(&self) -> &SecretValues {
        &self.secret_values
    }

    pub const fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Keeps every tool of this workspace from connecting to `listener`. Call it for each socket that serves this gateway,
    /// when it is bound and before it listens.
    pub fn register_listener(&self, listener: SocketAddr) -> io::Result<()> {
        self.egress.listeners().register(listener)
    }

    pub fn workshop(&self) -> Arc<Workshop> {
        self.workshop.load_full()
    }

    /// What was found at the last load.
    pub fn loaded(&self) -> Arc<Loaded> {
        Arc::clone(&self.loaded.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tools and tokens that a restored older state brought back. They were unpublished or revoked again when this was opened.
    pub const fn revived(&self) -> &Revived {
        &self.revived
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: impl Into<Arguments>, caller: &Caller) -> Outcome {
        self.gate.call(tool, arguments.into().into(), caller).await
    }

    /// Calls a tool with a deadline. A call that is not done within `time`, waiting included, is ended with the reason
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

    /// The tools that this caller may know of, with full definitions, as a request to a model in this form takes them.
    pub fn list_tools(&self, caller: &Caller, form: WireTarget) -> ToolList {
        ToolList::of(&self.gate.list(caller), form)
    }

    /// The names of the tools that this caller may know of, in order.
    pub fn list(&self, caller: &Caller) -> Vec<String> {
        self.gate.list(caller).iter().map(|tool| tool.name().to_owned()).collect()
    }

    /// Sends the telemetry that is left. Ends idle workers, which may raise alerts, and gives the webhook a few seconds to take
    /// the alerts that wait for it. `close` records those it does not take.
    pub async fn deliver_alerts(&self) {
        if let Some(telemetry) = &self.telemetry {
            telemetry.shutdown().await;
        }
        self.handlers.js.runner.retire_idle();
        if let Some(alerts) = &self.alerts {
            alerts.deliver().await;
        }
    }

    /// Refuses new calls, and closes the journal. Call it when the running calls have ended: `gate().idle()` waits for
    /// them, `gate().end_calls()` ends them.
    pub fn close(&self) -> Result<(), OpenError> {
        self.gate.seal();
        // What a worker attempted after its last call belongs into this journal too.
        self.handlers.js.runner.retire_idle();
        if let Some(alerts) = &self.alerts {
            alerts.give_up();
        }
        if self.writes == Writes::Gateway {
            self.note(&json!({ "kind": "gateway.stopped" }))?;
        }
        Ok(self.journal.files.close()?)
    }
}

/// A program whose own tool cannot be served has a mistake in it, and learns so at once.
fn check_sound(loaded: &Loaded) -> Result<(), OpenError> {
    let own = loaded.tools.iter().filter(|tool| tool.origin == Origin::Program);
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
