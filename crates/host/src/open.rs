//! How is a gateway put together? From one configuration, in one place, refusing at the first part that is not in order.

mod narrowed;
mod reload;
mod trials;

pub use self::{
    reload::{Beside, Reloaded, Watched},
    trials::{NotTested, TestRuns},
};

use std::{
    collections::BTreeMap,
    fmt, io,
    net::SocketAddr,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use serde_json::{Value, json};
use toolgate_config::{
    Config,
    model::{Approvals, AskFrom, OnAuditFailure},
};
use toolgate_egress::{Egress, EgressLimits, Listeners, SystemResolver, TlsRoots};
use toolgate_gate::{
    ApprovalSettings, ArgumentLimits, Call, CallLimits, Candidate, Gate, GateParts, LiveSet, LiveTool,
    LookLimits, Observer, OnJournalFailure, Outcome, Shows, SystemClock, Workshop,
};
use toolgate_handlers::{CliCommand, OutputParser, ToolHandlers};
use toolgate_policy::{ALLOW_ALL, Arguments, AskThreshold, Caller, RiskLevel, ToolPolicy};
use toolgate_secrets::Detector;
use toolgate_spec::project::WireTarget;
use toolgate_store::{ApprovalLimits as QueueLimits, FileChanges, StateDb};
use toolgate_telemetry::Telemetry;

use crate::{
    alarm::Alarm,
    alerts::Alerts,
    builder::Builder,
    decisions::recorded_queue,
    detector::open_detector,
    handlers::{CommandsInCode, check_described, check_own, open_handlers},
    journal::FileJournal,
    journals::{Writes, open_journal},
    listing::ToolList,
    load::{InCode, LoadCache, Loaded, Origin, ToTry},
    policies::{overrides_from, policies_from},
    restored::{Revived, remember_compared, withdraw_revived},
    rust_tool::RustTool,
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
    pub async fn open(config: Config, extras: Extras) -> Result<Self, OpenError> {
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
        let handlers = open_handlers(&config, egress.clone(), &detector, commands, &in_code, &alarm)?;
        let handlers = Arc::new(handlers);
        let workshop = workshop(&config, &handlers, &state)?;
        let toolgate = Self {
            gate,
            workshop: ArcSwap::from_pointee(workshop),
            state,
            journal,
            secrets: detector,
            handlers,
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
        let mut loaded = self.load(&config, &self.workshop(), &FileChanges::Everything);
        // Before anything is served: a client that lists at once sees all tools.
        if Box::pin(self.try_untried(&loaded, ToTry::Untried)).await {
            loaded = self.load(&config, &self.workshop(), &FileChanges::default());
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

    /// Writes an event that is no call.
    pub fn note(&self, entry: &Value) -> Result<(), OpenError> {
        Ok(self.journal.write(entry)?)
    }

    /// Writes down that a tool may be served from now on, or may not any more: `tool.published`, `tool.unpublished`.
    pub fn note_publication(&self, kind: &str, tool: &LiveTool, by: &str) -> Result<(), OpenError> {
        let tool = json!({ "name": tool.name(), "digest": tool.digest() });
        self.note(&json!({ "kind": kind, "tool": tool, "by": by }))
    }

    /// Records that a tool is published, with the codes of the findings that its operator accepted.
    pub fn note_published(&self, candidate: &Candidate, by: &str) -> Result<(), OpenError> {
        let tool = json!({ "name": candidate.tool.name(), "digest": candidate.tool.digest() });
        let mut entry = json!({ "kind": "tool.published", "tool": tool, "by": by });
        if let (false, Some(members)) = (candidate.accepted.is_empty(), entry.as_object_mut()) {
            members.insert("accepted".to_owned(), json!(candidate.accepted));
        }
        self.note(&entry)
    }

    /// How far the system clock is behind the newest record of the journal, from a second on. Smaller steps are usual.
    pub fn clock_behind(&self) -> Option<Duration> {
        Some(self.journal.files.clock_behind()).filter(|behind| *behind >= Duration::from_secs(1))
    }

    /// Why the journal could not be written at the last try, if it could not.
    pub fn journal_problem(&self) -> Option<String> {
        self.journal.problem()
    }

    /// How many records could not be written since the start, and why the last could not. Also counts what was over
    /// before anybody asked for the [problem](Self::journal_problem).
    pub fn journal_failures(&self) -> (u64, Option<String>) {
        self.journal.failures()
    }

    /// Journals that this one passed over because they are not in the list of journals. An older version began them, or
    /// somebody put them there.
    pub fn unlisted_journals(&self) -> &[String] {
        &self.journal.unlisted
    }

    /// Tries the journal where something was wrong with it, and says whether something still is. To be called every second: a
    /// gateway that is not ready is sent no calls, whose records would show that it is again.
    pub fn try_journal(&self) -> Option<String> {
        let _told_below = self.journal.recover();
        self.journal.problem()
    }

    /// Signs what was written so far, so that nobody can change it unseen.
    pub fn checkpoint(&self) -> Result<(), OpenError> {
        let signed = self.journal.files.checkpoint();
        if let Err(error) = &signed {
            // Whether calls can be written is another question than whether they can be signed.
            let _seen_by_problem = self.journal.probe(&error.to_string());
        }
        // If this fails, the next start compares more.
        let _ = remember_compared(&self.state, SystemTime::now());
        Ok(signed?)
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

    /// Reads what changed, and shares the rest with the last load.
    fn load(&self, config: &Config, workshop: &Arc<Workshop>, changes: &FileChanges) -> Loaded {
        let mut cache = self.cache();
        let passes = self.state.passes_changed_after(cache.passes_seen()).ok();
        cache.load(config, workshop, &self.in_code, changes, passes.as_ref())
    }

    fn cache(&self) -> MutexGuard<'_, LoadCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Only in this order: a journal that cannot be written must not keep a tighter set from being in force.
    fn put_in_force(&self, loaded: Loaded, config: &Config) -> Result<(), OpenError> {
        let (_, record) = self.swap(loaded, config);
        self.note_loaded(&record)
    }

    /// With the settings of the configuration that it was loaded by, in one piece; and what is to be written down of it.
    fn swap(&self, mut loaded: Loaded, config: &Config) -> (Arc<Loaded>, Value) {
        // Policies that cannot be used let nothing through.
        loaded.has_broken_policies = loaded.policies.is_err();
        let live = if loaded.policies.is_err() { Vec::new() } else { loaded.live() };
        let cedar = std::mem::replace(&mut loaded.policies, Ok(None)).unwrap_or_default();
        // Of two tools with one name on the wire neither is live at the start; loading has told of them.
        let (set, _) = LiveSet::new(live);
        let set = set.with_shared_policies(cedar);
        let (found, policies) = (loaded.tools.len(), set.policies_digest());
        let entry = json!({
            "kind": "tools.loaded", "live": set.len(), "found": found, "policiesVersion": policies,
        });
        let approvals = approval_settings(&config.approvals);
        self.gate.replace_with_settings(set, approvals, argument_limits(config));
        let loaded = Arc::new(loaded);
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&loaded);
        (loaded, entry)
    }

    fn note_loaded(&self, record: &Value) -> Result<(), OpenError> {
        match self.writes {
            Writes::Gateway => self.note(record),
            Writes::Command => Ok(()),
        }
    }
}

/// A program whose own tool cannot be served has a mistake in it, and learns so at once.
fn check_sound(loaded: &Loaded) -> Result<(), OpenError> {
    let own = loaded.tools.iter().filter(|tool| tool.origin == Origin::Program);
    let broken: Vec<String> =
        own.filter_map(|tool| Some(format!("`{}`: {}", tool.name, tool.candidate.as_ref().err()?))).collect();
    if broken.is_empty() { Ok(()) } else { Err(OpenError { part: "tools", problem: broken.join("; ") }) }
}

/// Before anything is loaded: a tool or token that a restored older state revives is never served. A record says so.
fn compare_with_journals(
    config: &Config,
    state: &StateDb,
    journal: &FileJournal,
) -> Result<Revived, OpenError> {
    let now = SystemTime::now();
    let broken = |error: toolgate_store::StateError| OpenError { part: "state", problem: error.to_string() };
    let revived = withdraw_revived(&config.state, state, now).map_err(broken)?;
    if !revived.is_empty() {
        journal.write(&revived.record())?;
    }
    remember_compared(state, now).map_err(broken)?;
    Ok(revived)
}

/// The database alone, for what needs neither tools nor sandbox.
pub fn open_state(config: &Config) -> Result<Arc<StateDb>, OpenError> {
    let limits = QueueLimits {
        max_pending: config.approvals.max_pending,
        max_pending_per_caller: config.approvals.max_pending_per_caller,
    };
    StateDb::open(&config.state.join("state.db"), limits)
        .map(Arc::new)
        .map_err(|error| OpenError { part: "state", problem: error.to_string() })
}

/// Egress for requests outside of a gateway, such as telemetry. No request reaches a listener of a gateway that has the same
/// state directory.
pub fn open_egress(state: &Path) -> Result<Egress, OpenError> {
    let broken = |problem: String| OpenError { part: "way out", problem };
    let resolver = SystemResolver::new().map_err(|error| broken(error.to_string()))?;
    let listeners = Listeners::published_in(state.join("listeners"));
    Egress::new(Arc::new(resolver), &TlsRoots::System, EgressLimits::default(), listeners)
        .map_err(|error| broken(error.message))
}

fn workshop(
    config: &Config,
    handlers: &Arc<ToolHandlers>,
    state: &Arc<StateDb>,
) -> Result<Workshop, OpenError> {
    let broken = |error: crate::PolicyFilesError| OpenError { part: "policy", problem: error.to_string() };
    let files = &config.policy;
    let policies = policies_from(files.baseline.as_deref(), files.profiles.as_deref()).map_err(broken)?;
    let overrides = files.overrides.as_deref().map(overrides_from).transpose().map_err(broken)?;
    Ok(Workshop {
        policies: Arc::new(policies),
        overrides: overrides.map(Arc::new),
        handlers: Arc::clone(handlers) as Arc<dyn toolgate_gate::Handlers>,
        passes: Arc::clone(state) as Arc<dyn toolgate_gate::PassStore>,
        environment: Arc::new(|name: &str| std::env::var(name).ok()),
    })
}

fn gate_parts(
    config: &Config,
    journal: &FileJournal,
    state: &Arc<StateDb>,
    secrets: Arc<Detector>,
) -> GateParts {
    let approvals = &config.approvals;
    GateParts {
        journal: Arc::new(journal.clone()),
        on_journal_failure: match config.audit.on_failure {
            OnAuditFailure::Refuse => OnJournalFailure::Refuse,
            OnAuditFailure::Continue => OnJournalFailure::Continue,
        },
        shows: if config.audit.debug { Shows::Everything } else { Shows::Digests },
        queue: recorded_queue(journal, state, &secrets),
        approvals: approval_settings(approvals),
        arguments: argument_limits(config),
        calls: CallLimits {
            calls: config.limits.calls as usize,
            calls_per_caller: config.limits.calls_per_caller as usize,
            waiting: config.limits.waiting as usize,
            wait_timeout: config.limits.wait_timeout,
            asking: approvals.max_pending as usize,
            asking_per_caller: approvals.max_pending_per_caller as usize,
        },
        looks: LookLimits {
            looks: config.limits.disk_checks as usize,
            looks_per_caller: config.limits.disk_checks_per_caller as usize,
            longest: config.limits.disk_check_timeout,
        },
        secrets,
    }
}

fn approval_settings(approvals: &Approvals) -> ApprovalSettings {
    ApprovalSettings {
        ask_from: ask_threshold(approvals.ask_from),
        client_may_answer: approvals.client_may_answer,
        self_approval: approvals.self_approval,
        timeout: approvals.timeout,
        expires: approvals.expires,
        trust: approvals.trust,
    }
}

/// The configured threshold, for the gate.
pub const fn ask_threshold(ask_from: AskFrom) -> AskThreshold {
    match ask_from {
        AskFrom::Always => AskThreshold::Always,
        AskFrom::L1 => AskThreshold::From(RiskLevel::L1),
        AskFrom::L2 => AskThreshold::From(RiskLevel::L2),
        AskFrom::L3 => AskThreshold::From(RiskLevel::L3),
        AskFrom::L4 => AskThreshold::From(RiskLevel::L4),
        AskFrom::L5 => AskThreshold::From(RiskLevel::L5),
        AskFrom::Never => AskThreshold::Never,
    }
}

fn argument_limits(config: &Config) -> ArgumentLimits {
    ArgumentLimits {
        bytes: usize::try_from(config.limits.arguments).unwrap_or(usize::MAX),
        depth: config.limits.depth as usize,
    }
}

/// Whoever delivers alerts, and whoever is told of calls.
type Told = (Option<Arc<Alerts>>, Option<Arc<dyn Observer>>);

/// Whoever is told of calls, by way of the webhook where there is one.
fn open_alerts(
    config: &Config,
    egress: &Egress,
    journal: &FileJournal,
    next: Option<Arc<dyn Observer>>,
) -> Result<Told, OpenError> {
    let Some(webhook) = &config.audit.webhook else { return Ok((None, next)) };
    let alerts = Arc::new(Alerts::start(webhook, egress, journal.clone(), next)?);
    let observer: Arc<dyn Observer> = Arc::<Alerts>::clone(&alerts);
    Ok((Some(alerts), Some(observer)))
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
