//! What the gate needs of the world: a clock, a way to run a tool, a way to ask, and what was recorded of passes.

use std::{
    any::Any,
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
use toolgate_policy::{Mask, PassRecord};
use toolgate_secrets::Finding;

use crate::{approval::ApprovalId, call::Purpose, looks::Looks, reason::Reason};

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

/// A tool made ready once, for any number of calls. Made by a handler when the tool is loaded.
pub trait Runnable: Send + Sync + fmt::Debug {
    /// What would this call touch, and does the tool's policy grant it? Runs nothing and changes nothing. What takes long
    /// asks `stop` now and then, and ends once it says so.
    fn survey(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal>;

    /// Does looking wait for a disk? Then it is done beside the runtime's own threads, which costs a thread and a hop. Only
    /// whoever is sure says no.
    fn survey_waits_for_disk(&self) -> bool {
        true
    }

    /// Makes sure of what a run takes place in, where that can be wanting, before a yes is spent on it. What is not taken by
    /// a run is given back when it is dropped.
    fn make_room<'r>(
        &'r self,
        _caller: &'r str,
    ) -> Pin<Box<dyn Future<Output = Result<Room, RunFailure>> + Send + 'r>> {
        Box::pin(std::future::ready(Ok(Room::default())))
    }

    /// Runs it once, jailed. Dropping the future ends the run.
    fn run<'r>(&'r self, request: RunRequest<'r>) -> Pin<Box<dyn Future<Output = RunReport> + Send + 'r>>;

    /// What must not leave in any text about a call of this tool: the values of its secrets, as they are now.
    fn mask(&self) -> Mask;
}

/// Says to whoever looks, on another thread, that nobody waits any longer. By default nobody ever says so.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicBool>);

/// Letting go of it asks for the stop: at a deadline, or with a call that is cancelled.
#[derive(Debug)]
pub struct Waiting(StopFlag);

impl StopFlag {
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn waiting(&self) -> Waiting {
        Waiting(self.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// What a run gets to know.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'r> {
    pub arguments: &'r Map<String, Value>,
    /// What was looked at before; the run uses what was opened then, or makes sure that a name leads where it led.
    pub survey: &'r Survey,
    /// Whose call it is; workers may be kept apart by it.
    pub caller: &'r str,
    pub purpose: Purpose,
    /// What was made sure of before. Without one the run looks for a place by itself.
    pub room: Option<&'r Room>,
    /// Where whatever may wait for a disk finds its place.
    pub looks: &'r Looks,
}

/// What a handler keeps for a run that is about to begin, such as a worker. The gate carries it and cannot look inside.
#[derive(Default)]
pub struct Room(Mutex<Option<Box<dyn Any + Send>>>);

impl Room {
    pub fn new<T: Any + Send>(kept: T) -> Self {
        Self(Mutex::new(Some(Box::new(kept))))
    }

    /// What was put in, for whoever put it in; once.
    pub fn take<T: Any + Send>(&self) -> Option<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        kept.downcast::<T>().ok().map(|kept| *kept)
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").finish_non_exhaustive()
    }
}

/// What a call would touch, as far as its arguments tell before it runs.
#[derive(Clone, Debug, Default)]
pub struct Survey {
    pub touches: Vec<Touch>,
    /// Where more is touched than the arguments name, in words for whoever is asked.
    pub widened: Vec<String>,
    /// What a person has to be asked before it is touched.
    pub questions: Vec<Question>,
    /// Texts that the handler builds from the arguments for another program: its command line, standard input and environment.
    /// Danger patterns are matched against them. Texts that a program only searches for are left out.
    pub built: Vec<String>,
    /// What may leave with a request although it is probably a secret. Filled by the gate.
    pub agreed: Agreed,
    pub grants: Grants,
    /// For a run that is dropped before it can report.
    pub left: Arc<LeftEffects>,
}

/// What the arguments hold that is probably a secret. Such a call runs only if a person says yes, and the yes is for these values.
#[derive(Clone, Default)]
pub struct Agreed(Vec<String>);

impl Agreed {
    pub const fn new(values: Vec<String>) -> Self {
        Self(values)
    }

    pub fn values(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Debug for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Agreed(***)")
    }
}

/// What a run had the gateway do before its caller went away, and what was refused to it. A run that comes to its end
/// reports instead.
#[derive(Debug, Default)]
pub struct LeftEffects(Mutex<Left>);

#[derive(Debug, Default)]
pub(crate) struct Left {
    pub effects: Vec<EffectEntry>,
    pub dropped: u32,
    pub refused: Vec<String>,
    pub refused_dropped: u64,
}

impl LeftEffects {
    /// Said by a run as it is dropped, masked as its report would be: each effect, and how many more there were.
    pub fn leave(&self, effects: Vec<EffectEntry>, dropped: u32) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.effects.extend(effects);
        left.dropped = left.dropped.saturating_add(dropped);
    }

    /// The same of what the walls kept it from.
    pub fn leave_refused(&self, refused: Vec<String>, dropped: u64) {
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.refused.extend(refused);
        left.refused_dropped = left.refused_dropped.saturating_add(dropped);
    }

    pub(crate) fn take(&self) -> Left {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One thing outside that the arguments name, by its real name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Touch {
    pub kind: EffectKind,
    pub target: String,
}

/// Not refused, and not granted without a yes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Question {
    /// Stable; goes into the journal as the voice that asked.
    pub source: &'static str,
    pub why: String,
}

/// What a handler holds open between looking and running. The gate carries it and cannot look inside.
#[derive(Clone, Default)]
pub struct Grants(Option<Arc<dyn Any + Send + Sync>>);

impl Grants {
    pub fn new<T: Any + Send + Sync>(held: T) -> Self {
        Self(Some(Arc::new(held)))
    }

    /// What was put in, for whoever put it in.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.as_ref()?.downcast_ref()
    }
}

impl fmt::Debug for Grants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Grants(held)" } else { "Grants(none)" })
    }
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
    pub withheld: Vec<Finding>,
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
    pub heard: Option<String>,
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
pub trait Standing: Send + Sync {
    /// Would the caller still be let in now? Where nobody can tell, not.
    fn holds(&self) -> bool;
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
}
