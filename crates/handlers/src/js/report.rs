//! Converts the outcome of a JavaScript call into the gate's report: masked, with the author's line numbers.

use serde::Deserialize;
use serde_json::Value;
use toolgate_gate::{EffectEntry, Reason, RunFailure, RunReport, RunUsage};
use toolgate_policy::Mask;
use toolgate_sandbox::{
    ScriptReport, WorkerFailure,
    wire::{Done, Helper, ScriptEnding, ScriptUsage},
};

use super::{FUEL_PER_STATEMENT, JsTool, effects, values};

pub fn failure(reason: Reason, message: impl Into<String>) -> RunFailure {
    RunFailure { reason, message: message.into(), stack: Vec::new(), helper: None, unredacted: None }
}

pub fn worker_failure(failed: &WorkerFailure) -> RunFailure {
    let reason = match failed {
        WorkerFailure::Busy => Reason::Busy,
        WorkerFailure::Unavailable(_) => Reason::WorkerUnavailable,
        WorkerFailure::Died(_) => Reason::WorkerDied,
        WorkerFailure::Invalid(_) => Reason::WorkerMisbehaved,
        WorkerFailure::TooLarge => Reason::ArgumentsTooLarge,
    };
    failure(reason, failed.to_string())
}

pub fn without_a_run(failure: RunFailure) -> RunReport {
    RunReport {
        outcome: Err(failure),
        console: Vec::new(),
        console_dropped: 0,
        effects: Vec::new(),
        // A call makes few enough helper calls to list all of them.
        effects_dropped: 0,
        usage: RunUsage::default(),
        layers: Vec::new(),
        refused: Vec::new(),
        refused_dropped: 0,
        withheld: Vec::new(),
        worker: None,
    }
}

pub fn make(
    outcome: Result<ScriptReport, WorkerFailure>,
    effects: Vec<EffectEntry>,
    mask: &Mask,
    tool: &JsTool,
) -> RunReport {
    let effects = effects.into_iter().map(|entry| effects::masked(&entry, mask)).collect();
    let report = match outcome {
        Ok(report) => report,
        Err(failed) => return RunReport { effects, ..without_a_run(worker_failure(&failed)) },
    };
    let Done { ending, console, console_dropped, usage } = report.done;
    RunReport {
        outcome: finish(ending, mask, tool),
        console: console.into_iter().map(|(level, text)| (level_name(level), mask.text(&text))).collect(),
        console_dropped,
        effects,
        effects_dropped: 0,
        usage: used(usage),
        layers: report.strength.names(),
        refused: Vec::new(),
        refused_dropped: 0,
        withheld: Vec::new(),
        worker: Some(report.worker),
    }
}

fn used(usage: ScriptUsage) -> RunUsage {
    RunUsage {
        statements: usage.fuel.div_ceil(FUEL_PER_STATEMENT),
        memory_bytes: usage.memory_bytes,
        host_calls: usage.host_calls,
        host_bytes: usage.host_bytes,
        elapsed_us: usage.elapsed_us,
        helpers: Helper::names(usage.helpers),
    }
}

/// The name of the `console` function that the tool called.
const fn level_name(level: u8) -> &'static str {
    match level {
        b'd' => "debug",
        b'i' => "info",
        b'w' => "warn",
        b'e' => "error",
        _ => "log",
    }
}

fn finish(ending: ScriptEnding, mask: &Mask, tool: &JsTool) -> Result<Option<Value>, RunFailure> {
    let limits = &tool.limits;
    let over = |code, message: String| Err(failure(code, message));
    match ending {
        ScriptEnding::Value(text) if values::count(&text) > values::MOST => over(
            Reason::ResultTooLarge,
            format!("the result has more than {} names and values", values::MOST),
        ),
        ScriptEnding::Value(text) => match serde_json::from_str(&text) {
            Ok(value) => Ok(Some(mask.value(value))),
            Err(error) => over(Reason::NotData, format!("the result is not valid JSON: {error}")),
        },
        ScriptEnding::Undefined => Ok(None),
        ScriptEnding::Threw(error) => Err(thrown(&error, Reason::ToolFailed, mask, tool)),
        ScriptEnding::NotData(error) if error.is_empty() => {
            over(Reason::NotData, "the tool returned a function or symbol; return plain data".to_owned())
        }
        ScriptEnding::NotData(error) => Err(thrown(&error, Reason::NotData, mask, tool)),
        ScriptEnding::Invalid(error) => Err(thrown(&error, Reason::CodeInvalid, mask, tool)),
        ScriptEnding::Unsettled => {
            over(Reason::UnsettledPromise, "the tool awaits a promise that nothing will settle".to_owned())
        }
        ScriptEnding::Escaped => over(
            Reason::CodeInvalid,
            "the code closes the function that it runs in; look for a `}` too many".to_owned(),
        ),
        ScriptEnding::Statements => over(
            Reason::Statements,
            format!(
                "more than {} statements; raise maxStatements if necessary",
                limits.fuel / FUEL_PER_STATEMENT
            ),
        ),
        ScriptEnding::Timeout => over(Reason::Timeout, format!("not done after {} ms", limits.timeout_ms)),
        ScriptEnding::Memory => {
            over(Reason::Memory, format!("more than {} MiB of memory", limits.memory_bytes >> 20))
        }
        ScriptEnding::Stack => over(Reason::Stack, "nested too deeply: calls, data or a pattern".to_owned()),
        ScriptEnding::ResultTooLarge => {
            over(Reason::ResultTooLarge, format!("the result has more than {} bytes", limits.result_bytes))
        }
        ScriptEnding::HostCalls => {
            over(Reason::HostCalls, format!("more than {} calls of helpers", limits.host_calls))
        }
        ScriptEnding::HostBytes => {
            over(Reason::HostBytes, format!("more than {} bytes through helpers", limits.host_bytes))
        }
        ScriptEnding::Trapped(what) => {
            over(Reason::WorkerMisbehaved, format!("the engine stopped: {}", mask.text(&what)))
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

fn thrown(json: &str, reason: Reason, mask: &Mask, tool: &JsTool) -> RunFailure {
    let Ok(thrown) = serde_json::from_str::<Thrown>(json) else {
        return failure(reason, "the tool threw something that cannot be shown");
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
        (Some(kind), Some(helper), Some(why)) => {
            Some(Box::new([mask.text(&kind), mask.text(&helper), mask.text(&why)]))
        }
        _ => None,
    };
    let name = if helper.is_some() || thrown.name == "Thrown" {
        String::new()
    } else {
        format!("{}: ", thrown.name)
    };
    let message = format!("{name}{}", thrown.message);
    let message = if is_cut(&thrown.message) { mask.cut_text(&message) } else { mask.text(&message) };
    RunFailure { reason, message, stack, helper, unredacted: None }
}

/// A frame in the tool's own code, with the author's columns. Frames of the prelude are dropped.
fn authors_frame(frame: &str, tool: &JsTool) -> Option<String> {
    let (before, place) = frame.trim().split_once("tool.js:")?;
    let place = place.trim_end_matches(')');
    let (line, column) = place.split_once(':').unwrap_or((place, "1"));
    let line: usize = line.parse().ok()?;
    let column: usize = column.parse().ok()?;
    // The last line is ours: an error there means that something is missing before it.
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

/// In UTF-16 units. The prelude cuts messages and stacks there: `LONG` in `engine/js/95-hooks.js`.
const LONGEST_THROWN: usize = 4_000;
