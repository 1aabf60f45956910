//! What the gate needs of the world: a clock, a way to run a tool, a way to ask, and what was recorded of passes.

use std::{
    future::Future,
    pin::Pin,
    time::{Duration, SystemTime},
};

use serde_json::{Map, Value};
use toolgate_policy::{Mask, PassRecord};

use crate::{approval::ApprovalId, reason::Reason};

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
pub trait Runnable: Send + Sync + std::fmt::Debug {
    /// Runs it once, jailed. Dropping the future ends the run.
    fn run<'r>(&'r self, request: RunRequest<'r>) -> Pin<Box<dyn Future<Output = RunReport> + Send + 'r>>;

    /// What must not leave in any text about a call of this tool: the values of its secrets, as they are now.
    fn mask(&self) -> Mask;
}

/// What a run gets to know.
#[derive(Clone, Copy, Debug)]
pub struct RunRequest<'r> {
    pub arguments: &'r Map<String, Value>,
    /// Whose call it is; workers may be kept apart by it.
    pub caller: &'r str,
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
    pub usage: RunUsage,
    /// The walls that were really in force; empty where nothing ran.
    pub walls: Vec<String>,
    /// Calls with the same number shared a process.
    pub worker: Option<u64>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunFailure {
    pub reason: Reason,
    pub message: String,
    /// Places in the author's own code.
    pub stack: Vec<String>,
    /// Which helper refused what: class, name, reason.
    pub helper: Option<[String; 3]>,
}

/// Something that the run asked the gateway to do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EffectEntry {
    pub kind: EffectKind,
    /// Such as `fetch GET` or `safety.fs.readText`.
    pub what: String,
    pub target: String,
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

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RunUsage {
    pub statements: u64,
    pub memory_bytes: u64,
    pub host_calls: u32,
    pub host_bytes: u64,
    pub elapsed_us: u64,
}

/// A way to ask the person behind the caller's own client, where the client can be asked in the middle of a call.
pub trait Ask: Send + Sync {
    fn ask<'a>(&'a self, prompt: &'a Prompt) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>>;
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

    fn record(&self, tool_id: &str, pass: &StoredPass) -> Result<(), String>;

    fn forget(&self, tool_id: &str) -> Result<(), String>;
}

/// A pass and what was seen in it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPass {
    pub record: PassRecord,
    pub at: SystemTime,
    /// What the run really used: hosts, paths, helpers, memory, statements.
    pub observed: Value,
    /// Did an operator publish the tool after this pass?
    pub is_published: bool,
}
