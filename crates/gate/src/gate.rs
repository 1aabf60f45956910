//! The gate: what it is asked, what it is made of, and what it answers.

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

pub use crate::call::Shows;
use crate::{
    approval::{ApprovalId, ApprovalQueue},
    call::{self, CallRecord, Journal, secrets::CleanTexts},
    disk_checks::{DiskCheckLimits, DiskCheckPermits},
    limiter::{CallLimits, Limiter},
    live::LiveTool,
    metrics::Metrics,
    open_calls::OpenCalls,
    outcome::Outcome,
    ports::{Answer, Ask, AuthStatus, Clock, RunReport, SystemClock},
    reason::{Reason, Stage},
    registry::{InForce, LiveSet},
};

/// The one door to the tools. Cheap to clone.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

pub(crate) struct Inner {
    in_force: ArcSwap<InForce>,
    changes: watch::Sender<u64>,
    is_closing: AtomicBool,
    pub(crate) open_calls: Arc<OpenCalls>,
    pub(crate) limiter: Limiter,
    pub(crate) disk_checks: DiskCheckPermits,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) on_journal_failure: OnJournalFailure,
    pub(crate) shows: Shows,
    pub(crate) secrets: Arc<Detector>,
    pub(crate) clean_texts: CleanTexts,
    pub(crate) queue: Arc<dyn ApprovalQueue>,
    pub(crate) policy: Arc<dyn ToolPolicy>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) metrics: Arc<Metrics>,
}

/// What a gate is made of. Nothing in here has a default that lets more through.
pub struct GateParts {
    pub journal: Arc<dyn Journal>,
    pub on_journal_failure: OnJournalFailure,
    pub shows: Shows,
    pub queue: Arc<dyn ApprovalQueue>,
    pub approvals: ApprovalSettings,
    pub arguments: ArgumentLimits,
    pub calls: CallLimits,
    pub disk_checks: DiskCheckLimits,
    /// What is taken for a secret.
    pub secrets: Arc<Detector>,
}

impl Gate {
    /// A gate without tools.
    pub fn new(parts: GateParts) -> Self {
        Self(Arc::new(Inner::new(parts, Arc::new(ALLOW_ALL), Arc::new(SystemClock), None)))
    }

    /// With a policy in code, a clock, or somebody who watches.
    pub fn with(
        parts: GateParts,
        policy: Arc<dyn ToolPolicy>,
        clock: Arc<dyn Clock>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self(Arc::new(Inner::new(parts, policy, clock, observer)))
    }

    /// A call through all six stages. Dropping the future cancels the call, which is written down.
    pub async fn handle(&self, call: Call) -> Outcome {
        call::run(&self.0, call, None).await.0
    }

    /// As `handle`. A call that is not done within `time`, waiting included, is ended with the reason `execute.timeout`.
    pub async fn handle_within(&self, call: Call, time: Duration) -> Outcome {
        let deadline = tokio::time::Instant::now().checked_add(time);
        call::run(&self.0, call, deadline).await.0
    }

    /// As `handle`, with the lines that the tool wrote to its console and that its caller may read, level first.
    pub async fn handle_with_console(&self, call: Call) -> (Outcome, Vec<(&'static str, String)>) {
        call::run(&self.0, call, None).await
    }

    /// As `handle`, for a program that calls a tool itself.
    pub async fn call(&self, tool: &str, arguments: Map<String, Value>, caller: &Caller) -> Outcome {
        self.handle(Call::from_program(tool, arguments, caller)).await
    }

    /// Runs a draft once as it would be served, asking nobody.
    pub async fn try_out(&self, draft: Arc<LiveTool>, call: Call) -> (Outcome, Option<RunReport>) {
        call::run_draft(&self.0, call, draft).await
    }

    /// The tools that this caller may know of, in order.
    pub fn list(&self, caller: &Caller) -> Vec<Arc<LiveTool>> {
        self.page(caller, None, usize::MAX).map(|(tools, _)| tools).unwrap_or_default()
    }

    /// A page of them, and the name behind which the next page begins. `None`: there is no tool `after` any more.
    pub fn page(
        &self,
        caller: &Caller,
        after: Option<&str>,
        limit: usize,
    ) -> Option<(Vec<Arc<LiveTool>>, Option<String>)> {
        self.0.live().page(caller, after, limit, self.0.policy.as_ref())
    }

    /// The tool of this name, where the caller may know of it.
    pub fn find(&self, caller: &Caller, name: &str) -> Option<Arc<LiveTool>> {
        let live = self.0.live();
        live.get(name).filter(|tool| live.shows(tool, caller, self.0.policy.as_ref()))
    }

    /// Puts another set of tools in force. Calls that run go on with the tool they began with.
    pub fn replace(&self, live: LiveSet) {
        let live = Arc::new(live);
        self.0.in_force.rcu(|current| InForce { set: Arc::clone(&live), ..current.as_ref().clone() });
        self.0.tell_of_change();
    }

    /// Puts another set of tools in force together with the settings of the configuration that it comes from. A call that
    /// is under way goes on with the settings it began with, and waits for a person as long as it was told to.
    pub fn replace_with_settings(
        &self,
        live: LiveSet,
        approvals: ApprovalSettings,
        arguments: ArgumentLimits,
    ) {
        self.0.in_force.store(Arc::new(InForce { set: Arc::new(live), approvals, arguments }));
        self.0.tell_of_change();
    }

    /// Takes tools away at once, whatever else cannot be put in force.
    pub fn retain(&self, wanted: impl Fn(&LiveTool) -> bool) {
        self.0.in_force.rcu(|current| {
            let set = Arc::new(current.set.only(&wanted));
            InForce { set, ..current.as_ref().clone() }
        });
        self.0.tell_of_change();
    }

    /// Takes tools away, and puts policies and settings in force, in one piece.
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

    /// All live tools in order, hidden from nobody; for operators.
    pub fn all(&self) -> Vec<Arc<LiveTool>> {
        self.0.live().all().cloned().collect()
    }

    /// The set of live tools as it is now.
    pub fn live(&self) -> Arc<LiveSet> {
        self.0.live()
    }

    pub fn live_count(&self) -> usize {
        self.0.live().len()
    }

    /// Ticks when the set of tools has changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    /// From now on new calls are refused.
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

    /// Until no call is open.
    pub async fn idle(&self) {
        self.0.open_calls.idle().await;
    }

    /// Ends the calls that still run. Each has its closing record before it is no longer open.
    pub fn end_calls(&self) {
        self.0.open_calls.end();
    }

    /// From now on no call is opened, not even to be refused: the journal is about to be closed.
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

    /// The settings for approvals that are in force now.
    pub fn approval_settings(&self) -> ApprovalSettings {
        self.0.in_force().approvals
    }
}

impl Inner {
    fn new(
        parts: GateParts,
        policy: Arc<dyn ToolPolicy>,
        clock: Arc<dyn Clock>,
        observer: Option<Arc<dyn Observer>>,
    ) -> Self {
        Self {
            in_force: ArcSwap::from_pointee(InForce {
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
            shows: parts.shows,
            secrets: parts.secrets,
            clean_texts: CleanTexts::default(),
            queue: parts.queue,
            policy,
            clock,
            observer,
            metrics: Arc::default(),
        }
    }

    pub fn in_force(&self) -> Arc<InForce> {
        self.in_force.load_full()
    }

    pub fn live(&self) -> Arc<LiveSet> {
        Arc::clone(&self.in_force.load().set)
    }

    fn tell_of_change(&self) {
        self.changes.send_modify(|version| *version = version.wrapping_add(1));
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }
}

/// One call as it comes through a door.
#[derive(Clone)]
pub struct Call {
    /// As listed.
    pub tool: String,
    pub arguments: Map<String, Value>,
    /// Authenticated by the door; never taken from the arguments or from what a client says of itself.
    pub caller: Caller,
    pub client: ClientInfo,
    /// What the person behind the client answered, where the call is made again with an answer.
    pub answer: Option<ClientAnswer>,
    /// How the person behind the client can be asked while the call waits, where that is possible.
    pub ask: Option<Arc<dyn Ask>>,
    /// By what the caller was let in; looked at again where the call has waited. `None`: by nothing that could end.
    pub auth_status: Option<Arc<dyn AuthStatus>>,
}

impl Call {
    /// A call that an embedding program makes itself.
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

/// What a client says of itself, for the journal. Only `conversation` has a meaning: it keeps flows apart.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ClientInfo {
    /// `stdio`, `http`, `library` or `command-line`.
    pub transport: &'static str,
    /// The protocol version, such as `2026-07-28`.
    pub protocol: Option<String>,
    /// Name and version as declared; nothing is decided by them.
    pub name: Option<String>,
    pub version: Option<String>,
    /// Trust holds within it; `None`: a call that belongs to no conversation, and is asked for every time.
    pub conversation: Option<String>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ClientAnswer {
    pub approval: ApprovalId,
    pub answer: Answer,
    /// How long the client took. `None`: the door knows that a person answered, because they typed it.
    pub answered_after: Option<Duration>,
}

/// How large and how deep arguments may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ArgumentLimits {
    pub bytes: usize,
    pub depth: usize,
}

/// What happens when the journal cannot be written?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnJournalFailure {
    Refuse,
    /// Chosen by name, and marked in every entry.
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
    /// Which calls the gateway asks about by itself.
    pub ask_from: AskThreshold,
    /// May the person behind the caller's own client answer, or only the queue?
    pub client_may_answer: bool,
    /// May an admin approve calls that were made with the same identity?
    pub self_approval: bool,
    pub timeout: Duration,
    pub expires: Duration,
    pub trust: Duration,
}

/// Is told of every call that has ended; must not wait. A panic here is counted and changes nothing about the call.
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
    pub stages: &'c [(Stage, Duration)],
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
        // Arguments may hold anything; they are nobody's business here.
        f.debug_struct("Call")
            .field("tool", &self.tool)
            .field("caller", &self.caller.subject)
            .finish_non_exhaustive()
    }
}
