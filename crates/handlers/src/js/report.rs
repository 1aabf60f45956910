//! What came of the call? Result, console, effects and usage, masked, with the author's line numbers.

use serde::Deserialize;
use serde_json::Value;
use toolgate_policy::Mask;
use toolgate_sandbox::{
    LayerSet, ScriptReport, WorkerFailure,
    wire::{Done, Helper, ScriptEnding, ScriptUsage},
};
use toolgate_secrets::SecretFinding;

use super::{EffectRecord, FUEL_PER_STATEMENT, Failure, FailureCode, JsTool, failure::HelperFailure, values};

/// A call from end to end.
#[derive(Debug)]
pub struct JsReport {
    pub outcome: Result<Returned, Failure>,
    pub console: Vec<ConsoleLine>,
    /// Lines that did not fit any more.
    pub console_dropped: u32,
    pub effects: Vec<EffectRecord>,
    /// Secrets in files that the tool did not get to see.
    pub withheld: Vec<SecretFinding>,
    pub usage: JsUsage,
    /// What was really in force; `None` where nothing ran.
    pub strength: Option<LayerSet>,
    /// Which worker it ran in: calls with the same number shared a process.
    pub worker: Option<u64>,
}

/// What a body returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
    Value(Value),
    /// Nothing; on the wire the text `undefined`, as the reference has it.
    Undefined,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConsoleLine {
    pub level: ConsoleLevel,
    pub text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ConsoleLevel {
    Debug,
    Log,
    Info,
    Warn,
    Error,
}

impl ConsoleLevel {
    /// The name of the function that the tool called.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Log => "log",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// What the call used of its limits, and of its helpers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct JsUsage {
    pub statements: u64,
    pub memory_bytes: u64,
    pub host_calls: u32,
    pub host_bytes: u64,
    pub elapsed_us: u64,
    /// Those that the worker answered itself.
    pub helpers: Vec<&'static str>,
}

impl JsReport {
    pub fn without_a_run(failure: Failure) -> Self {
        Self {
            outcome: Err(failure),
            console: Vec::new(),
            console_dropped: 0,
            effects: Vec::new(),
            withheld: Vec::new(),
            usage: JsUsage::default(),
            strength: None,
            worker: None,
        }
    }
}

pub fn make(
    outcome: Result<ScriptReport, WorkerFailure>,
    effects: Vec<EffectRecord>,
    mask: &Mask,
    tool: &JsTool,
) -> JsReport {
    let effects = effects.into_iter().map(|record| record.masked(mask)).collect();
    let report = match outcome {
        Ok(report) => report,
        Err(failure) => return JsReport { effects, ..JsReport::without_a_run(failure.into()) },
    };
    let Done { ending, console, console_dropped, usage } = report.done;
    JsReport {
        outcome: finish(ending, mask, tool),
        console: console.into_iter().map(|(level, text)| line(level, &text, mask)).collect(),
        console_dropped,
        effects,
        withheld: Vec::new(),
        usage: used(usage),
        strength: Some(report.strength),
        worker: Some(report.worker),
    }
}

fn used(usage: ScriptUsage) -> JsUsage {
    JsUsage {
        statements: usage.fuel.div_ceil(FUEL_PER_STATEMENT),
        memory_bytes: usage.memory_bytes,
        host_calls: usage.host_calls,
        host_bytes: usage.host_bytes,
        elapsed_us: usage.elapsed_us,
        helpers: Helper::names(usage.helpers),
    }
}

fn line(level: u8, text: &str, mask: &Mask) -> ConsoleLine {
    let level = match level {
        b'd' => ConsoleLevel::Debug,
        b'i' => ConsoleLevel::Info,
        b'w' => ConsoleLevel::Warn,
        b'e' => ConsoleLevel::Error,
        _ => ConsoleLevel::Log,
    };
    ConsoleLine { level, text: mask.text(text) }
}

fn finish(ending: ScriptEnding, mask: &Mask, tool: &JsTool) -> Result<Returned, Failure> {
    let limits = &tool.limits;
    let over = |code, message: String| Err(Failure::new(code, message));
    match ending {
        ScriptEnding::Value(text) if values::count(&text) > values::MOST => over(
            FailureCode::ResultTooLarge,
            format!("the result has more than {} names and values", values::MOST),
        ),
        ScriptEnding::Value(text) => match serde_json::from_str(&text) {
            Ok(value) => Ok(Returned::Value(mask.value(value))),
            Err(error) => {
                over(FailureCode::NotData, format!("the result is no JSON that can be read: {error}"))
            }
        },
        ScriptEnding::Undefined => Ok(Returned::Undefined),
        ScriptEnding::Threw(error) => Err(thrown(&error, FailureCode::ToolFailed, mask, tool)),
        ScriptEnding::NotData(error) if error.is_empty() => {
            over(FailureCode::NotData, "the tool returned a function or symbol; return plain data".to_owned())
        }
        ScriptEnding::NotData(error) => Err(thrown(&error, FailureCode::NotData, mask, tool)),
        ScriptEnding::Invalid(error) => Err(thrown(&error, FailureCode::CodeInvalid, mask, tool)),
        ScriptEnding::Unsettled => over(
            FailureCode::UnsettledPromise,
            "the tool awaits a promise that nothing will settle".to_owned(),
        ),
        ScriptEnding::Escaped => over(
            FailureCode::CodeInvalid,
            "the code closes the function that it runs in; look for a `}` too many".to_owned(),
        ),
        ScriptEnding::Statements => over(
            FailureCode::Statements,
            format!(
                "more than {} statements; raise maxStatements if it must be",
                limits.fuel / FUEL_PER_STATEMENT
            ),
        ),
        ScriptEnding::Timeout => {
            over(FailureCode::Timeout, format!("not done after {} ms", limits.timeout_ms))
        }
        ScriptEnding::Memory => {
            over(FailureCode::Memory, format!("more than {} MiB of memory", limits.memory_bytes >> 20))
        }
        ScriptEnding::Stack => {
            over(FailureCode::Stack, "nested too deeply: calls, data or a pattern".to_owned())
        }
        ScriptEnding::ResultTooLarge => over(
            FailureCode::ResultTooLarge,
            format!("the result has more than {} bytes", limits.result_bytes),
        ),
        ScriptEnding::HostCalls => {
            over(FailureCode::HostCalls, format!("more than {} calls of helpers", limits.host_calls))
        }
        ScriptEnding::HostBytes => {
            over(FailureCode::HostBytes, format!("more than {} bytes through helpers", limits.host_bytes))
        }
        ScriptEnding::Trapped(what) => {
            over(FailureCode::WorkerMisbehaved, format!("the engine stopped: {}", mask.text(&what)))
        }
    }
}

#[derive(Deserialize)]
struct Thrown {
    name: String,
    message: String,
    stack: Option<String>,
    kind: Option<String>,
    helper: Option<String>,
    reason: Option<String>,
}

fn thrown(json: &str, code: FailureCode, mask: &Mask, tool: &JsTool) -> Failure {
    let Ok(thrown) = serde_json::from_str::<Thrown>(json) else {
        return Failure::new(code, "the tool threw something that cannot be shown");
    };
    let is_cut = |text: &str| text.encode_utf16().count() >= LONGEST_THROWN;
    let stack = thrown.stack.unwrap_or_default();
    let mut frames: Vec<&str> = stack.lines().collect();
    if is_cut(&stack) {
        frames.pop();
    }
    let frames = frames.into_iter().filter_map(|frame| authors_frame(frame, tool));
    let stack = frames.map(|frame| mask.text(&frame)).collect();
    let helper = match (thrown.kind, thrown.helper, thrown.reason) {
        (Some(kind), Some(helper), Some(reason)) => Some(Box::new(HelperFailure {
            kind: mask.text(&kind),
            helper: mask.text(&helper),
            reason: mask.text(&reason),
        })),
        _ => None,
    };
    let name = if helper.is_some() || thrown.name == "Thrown" {
        String::new()
    } else {
        format!("{}: ", thrown.name)
    };
    let message = format!("{name}{}", thrown.message);
    let message = if is_cut(&thrown.message) { mask.cut_text(&message) } else { mask.text(&message) };
    Failure { code, message, stack, helper }
}

/// A frame in the tool's own code, in the author's columns; frames of the prelude are nobody's business.
fn authors_frame(frame: &str, tool: &JsTool) -> Option<String> {
    let (before, place) = frame.trim().split_once("tool.js:")?;
    let place = place.trim_end_matches(')');
    let (line, column) = place.split_once(':').unwrap_or((place, "1"));
    let line: usize = line.parse().ok()?;
    let column: usize = column.parse().ok()?;
    // The last line is ours: what is wrong there is missing before it.
    let last = tool.load.source.lines().count().saturating_sub(1).max(1);
    if line > last {
        return Some(format!("line {last}, at the end of the code"));
    }
    let column = if line == 1 { column.saturating_sub(tool.prefix).max(1) } else { column };
    let before = before.trim();
    let function =
        before.strip_prefix("at").filter(|rest| !rest.starts_with(|next: char| next.is_alphanumeric()));
    let function = function.unwrap_or(before).trim().trim_end_matches('(').trim();
    let function = if function.is_empty() || function == "<anonymous>" { "the body" } else { function };
    Some(format!("line {line}, column {column}, in {function}"))
}

/// In UTF-16 units. The prelude cuts messages and stacks off there: `LONG` in `engine/js/95-hooks.js`.
const LONGEST_THROWN: usize = 4_000;
