//! The gate: its parts, its settings, and the calls it handles.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use tokio::sync::watch;
use toolgate_policy::{ALLOW_ALL, AskThreshold, Caller, CedarPolicies, ToolPolicy};
use toolgate_secrets::Detector;

pub use crate::call::JournalDetail;
use crate::{
    approval::{ApprovalId, ApprovalQueue},
    call::{self, CallJournal, CallRecord, secrets::CleanTexts},
    disk_checks::{DiskCheckLimits, DiskCheckPermits},
    limiter::{CallLimits, Limiter},
    live::LiveTool,
    metrics::Metrics,
    open_calls::OpenCalls,
    outcome::Outcome,
    ports::{Answer, Ask, AuthStatus, Clock, RunReport, SystemClock},
    reason::{CallStage, Reason},
    registry::{LiveConfig, LiveSet},
};

/// The only way to call a tool. Cheap to clone.
#[derive(Clone)]
pub struct Gate(Arc<GateInner>);

pub(crate) struct GateInner {
    live_config: ArcSwap<LiveConfig>,
    changes: watch::Sender<u64>,
    is_closing: AtomicBool,
    pub(crate) open_calls: Arc<OpenCalls>,
    pub(crate) limiter: Limiter,
    pub(crate) disk_checks: DiskCheckPermits,
    pub(crate) journal: Arc<dyn CallJournal>,
    pub(crate) on_journal_failure: OnJournalFailure,
    pub(crate) journal_detail: JournalDetail,
    pub(crate) secrets: Arc<Detector>,
    pub(crate) clean_texts: CleanTexts,
    pub(crate) queue: Arc<dyn ApprovalQueue>,
    pub(crate) policy: Arc<dyn ToolPolicy>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// The parts of a gate. No part has a default that allows more.
pub struct GateParts {
    pub journal: Arc<dyn CallJournal>,
    pub on_journal_failure: OnJournalFailure,
    pub journal_detail: JournalDetail,
    pub queue: Arc<dyn ApprovalQueue>,
    pub approvals: ApprovalSettings,
    pub arguments: ArgumentLimits,
    pub calls: CallLimits,
    pub disk_checks: DiskCheckLimits,
    /// Finds secrets.
    pub secrets: Arc<Detector>,
}

impl Gate {
    /// A gate without tools.
    pub fn new(parts: GateParts) -> Self {
        Self(Arc::new(GateInner::new(parts, Arc::new(ALLOW_ALL), Arc::new(SystemClock), None)))
    }

    /// Adds a policy in code, a clock and an observer.
    pub fn with(
        parts: GateParts,
        policy: Arc<dyn ToolPolicy>,
        clock: Arc<dyn Clock>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self(Arc::new(GateInner::new(parts, policy, clock, observer)))
    }

    /// Runs a call through all six stages. Dropping the future cancels the call; the journal records that.
    pub async fn handle(&self, call: Call) -> Outcome {
        call::run(&self.0, call, None).await.0
    }

    /// Like `handle`, with a deadline that includes all waiting. A call that exceeds `time` ends with
    /// `execute.timeout`.
    pub async fn handle_within(&self, call: Call, time: Duration) -> Outcome {
        let deadline = tokio::time::Instant::now().checked_add(time);
        call::run(&self.0, call, deadline).await.0
    }

    /// Like `handle`. Also returns the console lines of the tool that the caller may read, each with its level.
    pub async fn handle_with_console(&self, call: Call) -> (Outcome, Vec<(&'static str, String)>) {
        call::run(&self.0, call, None).await
    }

    /// Like `handle`, for a program that calls a tool itself.
    pub async fn call(&self, tool: &str, arguments: Map<String, Value>, caller: &Caller) -> Outcome {
        self.handle(Call::from_program(tool, arguments, caller)).await
    }

    /// Runs a draft once as it would be served, without asking for approval.
    pub async fn try_out(&self, draft: Arc<LiveTool>, call: Call) -> (Outcome, Option<RunReport>) {
        call::run_draft(&self.0, call, draft).await
    }

    /// The tools that this caller may see, in list order.
    pub fn list(&self, caller: &Caller) -> Vec<Arc<LiveTool>> {
        self.page(caller, None, usize::MAX).map(|(tools, _)| tools).unwrap_or_default()
    }

    /// One page of `list`, and the name after which the next page starts. `None` if the tool `after` is gone.
    pub fn page(
        &self,
        caller: &Caller,
        after: Option<&str>,
        limit: usize,
    ) -> Option<(Vec<Arc<LiveTool>>, Option<String>)> {
        self.0.live().page(caller, after, limit, self.0.policy.as_ref())
    }

    /// The tool of this name, if the caller may see it.
    pub fn find(&self, caller: &Caller, name: &str) -> Option<Arc<LiveTool>> {
        let live = self.0.live();
        live.get(name).filter(|tool| live.shows(tool, caller, self.0.policy.as_ref()))
    }

    /// Replaces the set of live tools. Running calls keep the tool they started with.
    pub fn replace(&self, live: LiveSet) {
        let live = Arc::new(live);
        self.0.live_config.rcu(|current| LiveConfig { set: Arc::clone(&live), ..current.as_ref().clone() });
        self.0.tell_of_change();
    }

    /// Replaces the set of live tools together with the settings of its configuration. Running calls keep the settings
    /// they started with, including their approval timeout.
    pub fn replace_with_settings(
        &self,
        live: LiveSet,
        approvals: ApprovalSettings,
        arguments: ArgumentLimits,
    ) {
        self.0.live_config.store(Arc::new(LiveConfig { set: Arc::new(live), approvals, arguments }));
        self.0.tell_of_change();
    }

    /// Removes tools at once, even if the rest of a change is rejected.
    pub fn retain(&self, wanted: impl Fn(&LiveTool) -> bool) {
        self.0.live_config.rcu(|current| {
            let set = Arc::new(current.set.only(&wanted));
            LiveConfig { set, ..current.as_ref().clone() }
        });
        self.0.tell_of_change();
    }

    /// Removes tools and replaces policies and settings in one step.
    pub fn narrow(
        &self,
        wanted: impl Fn(&LiveTool) -> bool,
        policies: Option<Arc<CedarPolicies>>,
        approvals: ApprovalSettings,
        arguments: ArgumentLimits,
    ) {
        let set = self.0.live().only(wanted).with_shared_policies(policies);
        self.replace_with_settings(set, approvals, arguments);
    }

    /// All live tools in list order, for operators. No tool is hidden.
    pub fn all(&self) -> Vec<Arc<LiveTool>> {
        self.0.live().all().cloned().collect()
    }

    /// The current set of live tools.
    pub fn live(&self) -> Arc<LiveSet> {
        self.0.live()
    }

    pub fn live_count(&self) -> usize {
        self.0.live().len()
    }

    /// Changes when the set of live tools changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// Refuses new calls from now on.
    pub fn begin_shutdown(&self) {
        self.0.is_closing.store(true, Ordering::Release);
    }

    pub fn is_closing(&self) -> bool {
        self.0.is_closing()
    }

    /// Calls between their opening and their closing record.
    pub fn open_calls(&self) -> usize {
        self.0.open_calls.len()
    }

    /// Waits until no call is open.
    pub async fn idle(&self) {
        self.0.open_calls.idle().await;
    }

    /// Ends the calls that still run. Each call writes its closing record before it stops counting as open.
    pub fn end_calls(&self) {
        self.0.open_calls.end();
    }

    /// Opens no call from now on, not even to refuse it, because the journal is about to be closed.
    pub fn seal(&self) {
        self.begin_shutdown();
        self.0.open_calls.seal();
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.0.metrics
    }

    pub fn queue(&self) -> &Arc<dyn ApprovalQueue> {
        &self.0.queue
    }

    /// The current approval settings.
    pub fn approval_settings(&self) -> ApprovalSettings {
        self.0.live_config().approvals
    }
}

impl GateInner {
    fn new(
        parts: GateParts,
        policy: Arc<dyn ToolPolicy>,
        clock: Arc<dyn Clock>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            live_config: ArcSwap::from_pointee(LiveConfig {
                set: Arc::default(),
                approvals: parts.approvals,
                arguments: parts.arguments,
            }),
            changes: watch::Sender::new(0),
            is_closing: AtomicBool::new(false),
            open_calls: Arc::default(),
            limiter: Limiter::new(parts.calls),
            disk_checks: DiskCheckPermits::new(parts.disk_checks),
            journal: parts.journal,
            on_journal_failure: parts.on_journal_failure,
            journal_detail: parts.journal_detail,
            secrets: parts.secrets,
            clean_texts: CleanTexts::default(),
            queue: parts.queue,
            policy,
            clock,
            observer,
            metrics: Arc::default(),
        }
    }

    pub fn live_config(&self) -> Arc<LiveConfig> {
        self.live_config.load_full()
    }

    pub fn live(&self) -> Arc<LiveSet> {
        Arc::clone(&self.live_config.load().set)
    }

    fn tell_of_change(&self) {
        self.changes.send_modify(|version| *version = version.wrapping_add(1));
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }
}

/// One tool call, as the server or an embedding program received it.
#[derive(Clone)]
pub struct Call {
    /// The listed name.
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// The authenticated caller. Never taken from the arguments or from what a client claims.
    pub caller: Caller,
    pub client: ClientInfo,
    /// The user's answer, if the client repeats the call with one.
    pub answer: Option<ClientAnswer>,
    /// Asks the user of the client while the call waits, if the client supports that.
    pub ask: Option<Arc<dyn Ask>>,
    /// Tells whether the caller's authentication is still valid; checked again after a wait. `None` if it cannot
    /// expire.
    pub auth_status: Option<Arc<dyn AuthStatus>>,
}

impl Call {
    /// A call by an embedding program.
    pub fn from_program(tool: &str, arguments: Map<String, Value>, caller: &Caller) -> Self {
        Self {
            tool: tool.to_owned(),
            arguments,
            caller: caller.clone(),
            client: ClientInfo { transport: "library", ..ClientInfo::default() },
            answer: None,
            ask: None,
            auth_status: None,
        }
    }
}

/// The client as it describes itself, for the journal. Only `conversation` has an effect: remembered approvals hold
/// within one conversation.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClientInfo {
    /// `stdio`, `http`, `library` or `command-line`.
    pub transport: &'static str,
    /// The protocol version, such as `2026-07-28`.
    pub protocol: Option<String>,
    /// Name and version as the client reports them. No decision depends on them.
    pub name: Option<String>,
    pub version: Option<String>,
    /// The conversation within which remembered approvals hold. `None`: every call is asked about.
    pub conversation: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientAnswer {
    pub approval: ApprovalId,
    pub answer: Answer,
    /// How long the client took. `None`: the front end knows that a person answered, because they typed the answer.
    pub answered_after: Option<Duration>,
}

/// Limits of the arguments' size and depth.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ArgumentLimits {
    pub bytes: usize,
    pub depth: usize,
}

/// Whether calls go on while the journal cannot be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnJournalFailure {
    Refuse,
    /// An explicit choice, marked in every entry.
    Continue,
}

impl OnJournalFailure {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
            Self::Continue => "continue",
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ApprovalSettings {
    /// The risk level from which the gateway itself asks for approval.
    pub ask_from: AskThreshold,
    /// Whether the user of the caller's own client may answer. Otherwise only the queue does.
    pub client_may_answer: bool,
    /// Whether an admin may approve calls that were made with the same identity.
    pub self_approval: bool,
    pub timeout: Duration,
    pub expires: Duration,
    pub trust: Duration,
}

/// Receives every call that has ended. Must not block. A panic here is counted and does not affect the call.
pub trait Observer: Send + Sync {
    fn finished(&self, call: &Finished<'_>);
}

/// A call that has ended, for traces and metrics.
#[derive(Clone, Copy, Debug)]
pub struct Finished<'c> {
    pub record: &'c CallRecord,
    pub reason: Option<Reason>,
    pub begun: SystemTime,
    pub duration: Duration,
    pub stages: &'c [(CallStage, Duration)],
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("live", &self.live_count()).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for GateParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateParts").field("approvals", &self.approvals).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Arguments may contain secrets, so they are not printed.
        f.debug_struct("Call")
            .field("tool", &self.tool)
            .field("caller", &self.caller.subject)
            .finish_non_exhaustive()
    }
}
