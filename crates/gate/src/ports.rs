//! What the gate needs of the world: a clock, a way to run a tool, a way to ask, and what was recorded of passes.

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

/// The machine's own clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// A tool prepared once for any number of calls. A handler makes it when the tool is loaded.
pub trait Runnable: Send + Sync + fmt::Debug {
    /// Finds what the call would touch and refuses what the tool's policy does not grant. Runs and changes nothing. A long
    /// survey polls `stop` and ends early.
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal>;

    /// Whether a survey can block on the disk. It then runs on the blocking pool, which costs a thread and a hop.
    fn survey_waits_for_disk(&self) -> bool {
        true
    }

    /// Hides the current values of the tool's secrets in texts about its calls.
    fn mask(&self) -> Mask;
}

/// A call whose arguments were surveyed. It holds open what the survey opened, and runs once.
pub trait Surveyed: Send + Sync + fmt::Debug {
    /// Reserves what the run needs and may be scarce, such as a worker. Dropping the call releases it.
    fn reserve<'r>(&'r mut self, _caller: &'r str) -> RunFuture<'r, Result<(), RunFailure>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Surveys the same arguments again and returns what they lead to now.
    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal>;

    /// Runs the tool once, isolated. Dropping the future ends the run.
    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport>;
}

pub type RunFuture<'r, T> = Pin<Box<dyn Future<Output = T> + Send + 'r>>;

/// Says to whoever looks, on another thread, that nobody waits any longer. By default nobody ever says so.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

/// Letting go of it asks for the stop: at a deadline, or with a call that is cancelled.
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

/// What a run gets.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'r> {
    pub arguments: &'r Map<String, Value>,
    /// Probable secrets that a person allowed this call to send.
    pub approved_secrets: &'r ApprovedSecrets,
    /// Keeps what the run did if it is dropped before it reports.
    pub unreported: &'r UnreportedEffects,
    /// The caller's subject. Workers may be separated by it.
    pub caller: &'r str,
    pub purpose: Purpose,
    /// Permits for checks that block on the disk.
    pub disk_checks: &'r DiskCheckPermits,
}

/// What a call would touch, as far as its arguments tell, and the call itself, ready to run.
#[derive(Debug)]
pub struct Survey {
    pub touches: Vec<Touch>,
    /// Effects beyond what the arguments name, as text for the approval prompt.
    pub widened: Vec<String>,
    /// What needs a person's approval.
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

/// What the arguments hold that is probably a secret. Such a call runs only if a person says yes, and the yes is for these values.
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

/// What a run had the gateway do before its caller went away, and what was refused to it. A run that comes to its end
/// reports instead.
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
    /// Said by a run as it is dropped, masked as its report would be: each effect, and how many more there were.
    pub fn add(&self, effects: Vec<EffectEntry>, dropped: u32) {
        let mut unreported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unreported.effects.extend(effects);
        unreported.dropped = unreported.dropped.saturating_add(dropped);
    }

    /// The same of what the walls kept it from.
    pub fn add_refused(&self, refused: Vec<String>, dropped: u64) {
        let mut unreported = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        unreported.refused.extend(refused);
        unreported.refused_dropped = unreported.refused_dropped.saturating_add(dropped);
    }

    pub(crate) fn take(&self) -> UnreportedRun {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One thing outside that the arguments name, by its real name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Touch {
    pub kind: EffectKind,
    pub target: String,
}

/// Something that runs only with a person's approval.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SurveyQuestion {
    pub source: DecisionSource,
    pub why: String,
}

/// A call that is not to be made as it is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    pub reason: Reason,
    pub message: String,
    pub remedy: String,
}

/// What came of a run, masked.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// `None` where the tool returned nothing.
    pub outcome: Result<Option<Value>, RunFailure>,
    /// Lines that the tool wrote, level first.
    pub console: Vec<(&'static str, String)>,
    pub console_dropped: u32,
    pub effects: Vec<EffectEntry>,
    /// More than are told one by one. What went through them is in the usage.
    pub effects_dropped: u32,
    pub usage: RunUsage,
    /// The walls that were really in force; empty where nothing ran.
    pub walls: Vec<String>,
    /// What the walls kept the tool from: paths, system calls, hosts. A record shows the first hundred, so what matters most comes first.
    pub refused: Vec<String>,
    /// More than are told one by one.
    pub refused_dropped: u64,
    /// Secrets that were taken out of what the tool read; marks stand in their place.
    pub withheld: Vec<SecretFinding>,
    /// Calls with the same number shared a process.
    pub worker: Option<u64>,
}

#[derive(Clone, Eq, PartialEq)]
pub struct RunFailure {
    pub reason: Reason,
    pub message: String,
    /// Places in the author's own code.
    pub stack: Vec<String>,
    /// Which helper refused what: class, name, reason.
    pub helper: Option<[String; 3]>,
    /// What the tool said in failing, where the message has it without its secrets. Searched for alarming texts, and never shown.
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

/// Something that the run asked the gateway to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EffectEntry {
    pub kind: EffectKind,
    /// Such as `fetch GET` or `safety.fs.readText`.
    pub what: String,
    pub target: String,
    /// Where a copy or a move leads; the target is what it takes.
    pub to: Option<String>,
    /// `ok`, or why not.
    pub outcome: String,
    pub bytes: u64,
    pub elapsed: Duration,
}

/// What the effect touched.
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
    /// Helpers beyond those that are effects, as the worker tells.
    pub helpers: Vec<&'static str>,
}

/// A way to ask the person behind the caller's own client, where the client can be asked in the middle of a call.
pub trait Ask: Send + Sync {
    fn ask<'a>(&'a self, prompt: &'a Prompt) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
}

/// By what a caller was let in, as far as it can end before the caller is done: a token is revoked, or expires,
/// or the operator edits who is let in.
pub trait AuthStatus: Send + Sync {
    /// Would the caller still be let in now? Where nobody can tell, not.
    fn is_valid(&self) -> bool;
}

/// What a person is asked.
#[derive(Clone, Debug)]
pub struct Prompt {
    pub approval: ApprovalId,
    /// Escaped and bounded; safe to show.
    pub text: String,
}

/// Only `Accept` runs the call.
#[must_use]
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Answer {
    Accept,
    Decline,
    Cancel,
    /// The client went away, answered nonsense, or cannot be asked after all.
    Lost,
}

/// What is remembered of test runs.
pub trait PassStore: Send + Sync {
    /// The latest record of this tool.
    fn latest(&self, tool_id: &str) -> Result<Option<StoredPass>, String>;

    /// Whether a tool of this name was unpublished under an id other than `tool_id`.
    fn is_name_withdrawn(&self, name: &str, tool_id: &str) -> Result<bool, String>;

    /// Puts what `change` makes of the latest record in its place, and returns it. Nobody, in whichever process, comes between.
    /// Where `change` fails, everything stays as it was. It must not use the store itself, which is busy with it.
    fn revise(
        &self,
        tool_id: &str,
        change: &dyn Fn(Option<StoredPass>) -> Result<StoredPass, String>,
    ) -> Result<StoredPass, String>;

    fn forget(&self, tool_id: &str) -> Result<(), String>;

    /// Stores the settings that were in force when the tool was published, as `SettingValues::to_text` writes them.
    fn note_publication(&self, tool_id: &str, name: &str, settings: &str) -> Result<(), String>;

    /// The settings of the last publication under this id, or else under this name.
    fn last_publication(&self, tool_id: &str, name: &str) -> Result<Option<String>, String>;
}

/// A pass and what was seen in it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPass {
    /// What the tool was called. `None`: a pass from before names were kept.
    pub name: Option<String>,
    pub record: PassRecord,
    pub at: SystemTime,
    /// What the run really used: hosts, paths, helpers, memory, statements.
    pub observed: Value,
    /// Did an operator publish the tool after this pass?
    pub is_published: bool,
    /// Did somebody take the tool back, and nobody publish it since? A failed test run alone is none of that.
    pub is_withdrawn: bool,
    /// Codes of findings that the operator accepted when publishing exactly this document.
    pub accepted: Vec<String>,
    /// The operator published exactly this document although it says `draft: true`, because its file cannot be written.
    pub accepts_draft: bool,
}
