//! The traits that the gate needs from other crates: a clock, runnable tools, a way to ask, and the store of test runs.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};
use toolgate_policy::{DecisionSource, Mask, PassRecord};
use toolgate_secrets::SecretFinding;

use crate::{approval::ApprovalId, call::Purpose, disk_checks::DiskCheckPermits, reason::Reason};

pub trait Clock: Send + Sync {
    fn now(&self) -> SystemTime;
}

/// The system clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A tool prepared once for any number of calls. A handler makes it when the tool is loaded.
pub trait Runnable: Send + Sync + fmt::Debug {
    /// Finds what the call would touch, and refuses what the tool's policy does not grant. Runs nothing and changes
    /// nothing. A long survey polls `stop` and ends early.
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal>;

    /// Whether a survey can block on the disk. It then runs on the blocking pool, which costs a thread switch.
    fn survey_waits_for_disk(&self) -> bool {
        true
    }

    /// Masks the current values of the tool's secrets in texts about its calls.
    fn mask(&self) -> Mask;
}

/// A call whose arguments were surveyed. It keeps the files open that the survey opened, and runs once.
pub trait Surveyed: Send + Sync + fmt::Debug {
    /// Reserves scarce resources for the run, such as a worker. Dropping the call releases them.
    fn reserve<'r>(&'r mut self, _caller: &'r str) -> RunFuture<'r, Result<(), RunFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Surveys the same arguments again and returns their current targets.
    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal>;

    /// Runs the tool once, isolated. Dropping the future ends the run.
    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport>;
}

pub type RunFuture<'r, T> = Pin<Box<dyn Future<Output = T> + Send + 'r>>;

/// Signals a survey on another thread that its result is no longer needed. Never set by default.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

/// Sets the flag when dropped: at a deadline, or when the call is cancelled.
#[derive(Debug)]
pub struct StopOnDrop(StopFlag);

impl StopFlag {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop(self.clone())
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// The input of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'r> {
    pub arguments: &'r Map<String, Value>,
    /// Probable secrets that an approval allows this call to send.
    pub approved_secrets: &'r ApprovedSecrets,
    /// Receives the effects of a run that is dropped before it reports.
    pub unreported: &'r UnreportedEffects,
    /// The caller's subject. Workers may be separated by it.
    pub caller: &'r str,
    pub purpose: Purpose,
    /// Permits for checks that block on the disk.
    pub disk_checks: &'r DiskCheckPermits,
}

/// The targets of a call according to its arguments, and the call itself, ready to run.
#[derive(Debug)]
pub struct Survey {
    pub touches: Vec<Touch>,
    /// Effects beyond what the arguments name, as text for the approval prompt.
    pub widened: Vec<String>,
    /// The reasons why the call needs an approval.
    pub questions: Vec<SurveyQuestion>,
    /// Texts that the handler builds from the arguments for another program: command line, standard input, environment.
    /// Danger patterns are matched against them. Texts that a program only searches for are left out.
    pub built: Vec<String>,
    pub call: Box<dyn Surveyed>,
}

impl Survey {
    /// The survey of a call that touches nothing.
    pub fn of_nothing(call: impl Surveyed + 'static) -> Self {
        let (touches, widened, questions, built) = Default::default();
        Self { touches, widened, questions, built, call: Box::new(call) }
    }
}

/// Probable secrets in the arguments. Such a call needs an approval, and the approval covers exactly these values.
#[derive(Clone, Default)]
pub struct ApprovedSecrets(Vec<String>);

impl ApprovedSecrets {
    pub const fn new(values: Vec<String>) -> Self {
        Self(values)
    }

    pub fn values(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Debug for ApprovedSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApprovedSecrets(***)")
    }
}

/// The effects and denials of a run that was dropped before it returned its report.
#[derive(Debug, Default)]
pub struct UnreportedEffects(Mutex<UnreportedRun>);

#[derive(Debug, Default)]
pub(crate) struct UnreportedRun {
    pub effects: Vec<EffectEntry>,
    pub dropped: u32,
    pub refused: Vec<String>,
    pub refused_dropped: u64,
}

impl UnreportedEffects {
    /// Called when a run is dropped: its effects, masked, and the number of effects that are not listed.
    pub fn add(&self, effects: Vec<EffectEntry>, dropped: u32) {
        let mut unreported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unreported.effects.extend(effects);
        unreported.dropped = unreported.dropped.saturating_add(dropped);
    }

    /// Like `add`, for what the isolation layers denied.
    pub fn add_refused(&self, refused: Vec<String>, dropped: u64) {
        let mut unreported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unreported.refused.extend(refused);
        unreported.refused_dropped = unreported.refused_dropped.saturating_add(dropped);
    }

    pub(crate) fn take(&self) -> UnreportedRun {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A file or host that the arguments name, with its real name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Touch {
    pub kind: EffectKind,
    pub target: String,
}

/// A reason why the call needs an approval.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SurveyQuestion {
    pub source: DecisionSource,
    pub why: String,
}

/// A refused call: the reason, a message and a remedy.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
    pub remedy: String,
}

/// The masked result of a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// `None` if the tool returned nothing.
    pub outcome: Result<Option<Value>, RunFailure>,
    /// Lines that the tool wrote, level first.
    pub console: Vec<(&'static str, String)>,
    pub console_dropped: u32,
    pub effects: Vec<EffectEntry>,
    /// Effects that are not listed. Their bytes are included in the usage.
    pub effects_dropped: u32,
    pub usage: RunUsage,
    /// The isolation layers that were enforced; empty if nothing ran.
    pub layers: Vec<String>,
    /// Accesses that the isolation layers denied: paths, system calls, hosts. A record shows the first hundred, so the most
    /// important come first.
    pub refused: Vec<String>,
    /// Denials that are not listed.
    pub refused_dropped: u64,
    /// Secrets that were redacted from what the tool read.
    pub withheld: Vec<SecretFinding>,
    /// Calls with the same number ran in the same process.
    pub worker: Option<u64>,
}

#[derive(Clone, Eq, PartialEq)]
pub struct RunFailure {
    pub reason: Reason,
    pub message: String,
    /// Stack frames in the author's code.
    pub stack: Vec<String>,
    /// The helper call that was refused: class, name, reason.
    pub helper: Option<Box<[String; 3]>>,
    /// The tool's error text before redaction, if the message contains it redacted. Searched for `alertOn` texts,
    /// never shown.
    pub unredacted: Option<String>,
}

impl fmt::Debug for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunFailure")
            .field("reason", &self.reason)
            .field("message", &self.message)
            .field("stack", &self.stack)
            .field("helper", &self.helper)
            .finish_non_exhaustive()
    }
}

/// An operation that the run asked the gateway to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EffectEntry {
    pub kind: EffectKind,
    /// Such as `fetch GET` or `safety.fs.readText`.
    pub what: String,
    pub target: String,
    /// The destination of a copy or move. `target` is then the source.
    pub to: Option<String>,
    /// `ok`, or the reason of the failure.
    pub outcome: String,
    pub bytes: u64,
    pub elapsed: Duration,
}

/// The kind of access.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EffectKind {
    Fetch,
    Read,
    Write,
}

impl EffectKind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fetch => "connect",
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RunUsage {
    pub statements: u64,
    pub memory_bytes: u64,
    pub host_calls: u32,
    pub host_bytes: u64,
    pub elapsed_us: u64,
    /// Helpers other than effects, as reported by the worker.
    pub helpers: Vec<&'static str>,
}

/// Asks the user of the caller's client, for clients that support questions during a call.
pub trait Ask: Send + Sync {
    fn ask<'a>(&'a self, prompt: &'a Prompt) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
}

/// Whether a caller's authentication is still valid. It can end during a call: a token is revoked or expires, or the
/// operator edits `auth`.
pub trait AuthStatus: Send + Sync {
    /// Whether the caller would still be authenticated now. `false` if that cannot be determined.
    fn is_valid(&self) -> bool;
}

/// The question for a person.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub approval: ApprovalId,
    /// Escaped and bounded; safe to show.
    pub text: String,
}

/// The answer of a client's user. Only `Accept` runs the call.
#[must_use]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    Accept,
    Decline,
    Cancel,
    /// The client disconnected, sent an invalid answer, or cannot ask after all.
    Lost,
}

/// The store of test runs.
pub trait PassStore: Send + Sync {
    /// The latest test run of this tool.
    fn latest(&self, tool_id: &str) -> Result<Option<StoredPass>, String>;

    /// Whether a tool of this name was unpublished under an id other than `tool_id`.
    fn is_name_withdrawn(&self, name: &str, tool_id: &str) -> Result<bool, String>;

    /// Replaces the latest record by the result of `change`, and returns it, in one transaction across processes. If
    /// `change` fails, nothing is changed. `change` must not use the store, which is locked meanwhile.
    fn revise(
        &self,
        tool_id: &str,
        change: &dyn Fn(Option<StoredPass>) -> Result<StoredPass, String>,
    ) -> Result<StoredPass, String>;

    fn forget(&self, tool_id: &str) -> Result<(), String>;

    /// Stores the settings with which the tool was published, as written by `SettingValues::to_text`.
    fn note_publication(&self, tool_id: &str, name: &str, settings: &str) -> Result<(), String>;

    /// The settings of the last publication under this id, otherwise under this name.
    fn last_publication(&self, tool_id: &str, name: &str) -> Result<Option<String>, String>;
}

/// A test run and what it used.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPass {
    /// The name of the tool. `None` in records of versions that did not store names.
    pub name: Option<String>,
    pub record: PassRecord,
    pub at: SystemTime,
    /// Resources that the run used: hosts, paths, helpers, memory, statements.
    pub observed: Value,
    /// Whether an operator published the tool after this test run.
    pub is_published: bool,
    /// Whether the tool was unpublished and not published again. A failed test run alone does not set this.
    pub is_withdrawn: bool,
    /// Codes of findings that the operator accepted when publishing exactly this document.
    pub accepted: Vec<String>,
    /// The operator published exactly this document although it says `draft: true`, because its file cannot be written.
    pub accepts_draft: bool,
}
