//! Converts the outcome of a command into the gate's report: masked, cleaned, and shortened on failure.

pub mod audience;
pub mod denial;
pub mod denial_format;
pub mod json;
pub mod missing_paths;
pub mod output;
pub mod plain_text;
pub mod search_results;
pub mod selection;

use toolgate_gate::{EffectEntry, NO_DISK_CHECK_PERMIT, Reason, RunFailure, RunReport, RunUsage};
use toolgate_policy::Mask;
use toolgate_sandbox::{CommandUsage, Ending};
use toolgate_secrets::Tier;
use toolgate_spec::model::SandboxKind;

use self::{
    denial::{Denial, Denials},
    denial_format::{DenialFormatter, FIRST_REFUSED, and_more, cut},
    missing_paths::missing,
    plain_text::plain,
    search_results::SearchOutput,
};
use crate::cli::{
    run::order::{CommandOutcome, NetworkEffects},
    tool::CliTool,
    view::quarantine::SweepResult,
};

/// Why there is no result. Not masked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunProblem {
    pub reason: Reason,
    pub message: String,
}

impl RunProblem {
    /// No command can run, for a reason that the caller cannot change.
    pub fn jail(message: String) -> Self {
        Self { reason: Reason::JailUnavailable, message }
    }

    /// All permits for disk checks are in use.
    pub fn no_place() -> Self {
        Self {
            reason: Reason::Busy,
            message: format!("{NO_DISK_CHECK_PERMIT}; wait a moment and call again"),
        }
    }

    /// The command did not start, because the check of its directories took too long.
    pub fn late(tool: &CliTool) -> Self {
        let (name, time) = (tool.program.name.as_str(), tool.deadline.as_millis());
        let message = format!(
            "`{name}` did not start: searching its directories for blocked paths took all of its {time} ms; grant smaller directories, or raise `timeout`"
        );
        Self { reason: Reason::Timeout, message }
    }

    fn masked(self, mask: &Mask) -> RunFailure {
        RunFailure {
            reason: self.reason,
            // Masked before it is cut, because a cut secret would not be recognised.
            message: cut(&mask.text(&self.message), LONGEST_MESSAGE),
            stack: Vec::new(),
            helper: None,
            unredacted: None,
        }
    }
}

/// The call that a report is about.
#[derive(Clone, Copy)]
pub struct ReportedCall<'c> {
    pub tool: &'c CliTool,
    /// Without `argv[0]`.
    pub line: &'c [String],
    pub search_output: SearchOutput,
}

pub fn make(
    mut ended: CommandOutcome,
    sweep: SweepResult,
    call: &ReportedCall<'_>,
    formatter: DenialFormatter<'_>,
) -> RunReport {
    let ReportedCall { tool, search_output, .. } = *call;
    let DenialFormatter { mask, detector, hidden_paths, .. } = formatter;
    let was_killed = !matches!(ended.ending, Ending::Exited(_));
    let stderr_is_cut = was_killed || ended.stderr.len() >= tool.limits.stderr_bytes;
    let stderr = masked_output(&ended.stderr, stderr_is_cut, mask);
    // Redacted before the lines are joined and cut, because a key of several lines is not recognised in parts.
    let words = detector.redact(&stderr, Tier::Probable).text;
    if matches!(ended.ending, Ending::Exited(1..)) {
        let missing = missing(tool, hidden_paths, &stderr);
        let is_new = |one: &Denial| !ended.refused.listed.iter().any(|known| known.has_path_of(one));
        let new: Vec<Denial> = missing.into_iter().filter(is_new).collect();
        ended.refused.listed.extend(new);
    }
    let broken_block = created_problem(sweep, tool, &mut ended.refused, formatter);
    ended.refused.put_in_order();
    let failing = FailedCommand { ended: &ended, words: &words, formatter };
    let outcome = match broken_block.or_else(|| failing.fault(call, &stderr)) {
        Some(problem) => Err(problem),
        None => match tool.reader.read(&ended.stdout) {
            Ok(value) => {
                let value = search_output.without_secrets(value, mask, detector);
                Ok(Some(mask.value(tool.reader.shaped(value))))
            }
            Err(message) => Err(RunProblem {
                reason: Reason::OutputUnreadable,
                message: failing.with_denial_list(message),
            }),
        },
    };
    if outcome.is_ok() {
        ended.refused.listed.retain(|refused| !matches!(refused, Denial::Bounds(_)));
    }
    let lines = words.lines().filter(|line| !line.trim().is_empty());
    let console: Vec<_> =
        lines.clone().take(MOST_LINES).map(|line| ("error", cut(line, LONGEST_LINE))).collect();
    let dropped = lines.count().saturating_sub(console.len());
    RunReport {
        // Alert patterns also apply to text that is redacted or not shown.
        outcome: outcome.map_err(|problem| {
            let unredacted = format!("{stderr}\n{}", masked_output(&ended.stdout, was_killed, mask));
            RunFailure { unredacted: Some(unredacted), ..problem.masked(mask) }
        }),
        console,
        console_dropped: u32::try_from(dropped).unwrap_or(u32::MAX),
        usage: usage_of(&ended.usage, &ended.effects),
        effects_dropped: ended.effects.dropped,
        effects: masked(ended.effects.listed, mask),
        layers: ended.layers,
        refused: ended.refused.listed.iter().map(|refused| formatter.line(refused)).collect(),
        refused_dropped: ended.refused.dropped,
        withheld: Vec::new(),
        worker: None,
    }
}

/// Masks the output of a command. If the gateway ended the command or its output, a secret may have begun at the end.
fn masked_output(written: &[u8], is_cut: bool, mask: &Mask) -> String {
    let text = plain(written);
    if is_cut && !text.is_empty() { mask.cut_text(&text) } else { mask.text(&text) }
}

pub fn without_a_run(problem: RunProblem, mask: &Mask) -> RunReport {
    RunReport {
        outcome: Err(problem.masked(mask)),
        console: Vec::new(),
        console_dropped: 0,
        effects: Vec::new(),
        effects_dropped: 0,
        usage: RunUsage::default(),
        layers: Vec::new(),
        refused: Vec::new(),
        refused_dropped: 0,
        withheld: Vec::new(),
        worker: None,
    }
}

/// The report of a command that ran, but whose outcome was lost. All of it is masked.
pub fn lost(effects: NetworkEffects, refused: Vec<String>, refused_dropped: u64) -> RunReport {
    let message = "the outcome of the command was lost".to_owned();
    let problem = RunProblem { reason: Reason::CommandFailed, message };
    let usage = usage_of(&CommandUsage::default(), &effects);
    let NetworkEffects { listed, dropped, .. } = effects;
    RunReport {
        effects: listed,
        effects_dropped: dropped,
        refused,
        refused_dropped,
        usage,
        ..without_a_run(problem, &Mask::new(&[]))
    }
}

fn usage_of(usage: &CommandUsage, effects: &NetworkEffects) -> RunUsage {
    let listed = u32::try_from(effects.listed.len()).unwrap_or(u32::MAX);
    let bytes = effects.listed.iter().map(|effect| effect.bytes);
    RunUsage {
        statements: 0,
        memory_bytes: usage.peak_memory,
        host_calls: listed.saturating_add(effects.dropped),
        host_bytes: bytes.fold(effects.dropped_bytes, u64::saturating_add),
        elapsed_us: u64::try_from(usage.elapsed.as_micros()).unwrap_or(u64::MAX),
        helpers: Vec::new(),
    }
}

/// Reports blocked paths that the command created, or that the check for them failed. This takes precedence over
/// every other outcome.
fn created_problem(
    sweep: SweepResult,
    tool: &CliTool,
    refused: &mut Denials,
    formatter: DenialFormatter<'_>,
) -> Option<RunProblem> {
    let name = tool.program.name.as_str();
    let SweepResult { made, trouble } = sweep;
    let mut said = Vec::new();
    if !made.is_empty() {
        let first: Vec<String> = made.iter().take(FIRST_REFUSED).map(|made| formatter.line(made)).collect();
        let more = and_more(made.len().saturating_sub(first.len()), 0);
        // A command can create any number of them; the record stays short.
        let beyond = made.len().saturating_sub(MOST_MADE);
        refused.dropped = refused.dropped.saturating_add(u64::try_from(beyond).unwrap_or(u64::MAX));
        refused.listed.extend(made.into_iter().take(MOST_MADE));
        said.push(format!(
            "`{name}` was found {}{more}; its output is withheld, and its other changes remain; `execution.blockedPaths` lists what is blocked",
            first.join(", ")
        ));
    }
    if let Some(why) = trouble {
        // Listed first, because other denials could hide it.
        refused
            .listed
            .insert(0, Denial::Other(format!("searching for blocked paths that it created: {why}")));
        let what = if said.is_empty() { "blocked paths" } else { "more blocked paths" };
        said.push(format!("cannot check whether `{name}` created {what}: {why}"));
    }
    (!said.is_empty()).then(|| RunProblem { reason: Reason::BlockedPathMade, message: said.join("; ") })
}

/// A command that may have failed, with its redacted `stderr`.
struct FailedCommand<'e> {
    ended: &'e CommandOutcome,
    words: &'e str,
    formatter: DenialFormatter<'e>,
}

impl FailedCommand<'_> {
    /// `None` if the command succeeded.
    fn fault(&self, call: &ReportedCall<'_>, stderr: &str) -> Option<RunProblem> {
        let tool = call.tool;
        let name = tool.program.name.as_str();
        // A program may retry a denied operation until it is killed, so the denials are listed.
        let with_denials = |said: String| self.with_denial_list(said);
        let (reason, message) = match &self.ended.ending {
            Ending::Exited(0) => return None,
            // For example `grep` without matches. Output on `stderr` still means an error.
            Ending::Exited(code)
                if tool.conventions.is_answer_exit(*code, call.line) && stderr.trim().is_empty() =>
            {
                return None;
            }
            // A recursive command does not fail because of paths that were hidden from it.
            Ending::Exited(code)
                if tool.conventions.is_partial_exit(*code)
                    && self.formatter.hidden_paths.covers_all_errors(stderr) =>
            {
                return None;
            }
            Ending::Exited(code) => (
                Reason::CommandFailed,
                self.with_error_output(format!("`{name}` ended with {}", exit_text(*code, tool.sandbox))),
            ),
            Ending::Signalled(CPU_TIME) => {
                let said = format!("`{name}` used more CPU time than it may and was killed");
                (Reason::Timeout, with_denials(said))
            }
            Ending::Signalled(number) => {
                let what = match *number {
                    FILE_SIZE => " (a file exceeded its size limit)",
                    BAD_CALL => " (a system call that the jail forbids)",
                    KILL => " (killed)",
                    SEGMENT => " (a memory fault, or out of memory)",
                    _ => "",
                };
                let said = format!("`{name}` was terminated by signal {number}{what}");
                (Reason::CommandFailed, self.with_error_output(said))
            }
            Ending::TimedOut => {
                let time = tool.deadline.as_millis();
                let said =
                    format!("`{name}` did not finish within {time} ms and was killed with all its processes");
                (Reason::Timeout, with_denials(said))
            }
            Ending::OutOfMemory => {
                let most = tool.limits.memory_bytes;
                let said = format!("`{name}` used more than its {most} bytes of memory and was killed");
                (Reason::Memory, with_denials(said))
            }
            Ending::OutputTooLarge => {
                let most = tool.limits.stdout_bytes;
                let said =
                    format!("`{name}` wrote more than {most} bytes and was killed; ask for less at once");
                (Reason::ResultTooLarge, with_denials(said))
            }
            Ending::JailFailed(why) => (Reason::JailUnavailable, why.clone()),
        };
        Some(RunProblem { reason, message })
    }

    /// Appends the command's error output and the denials, which are often the cause.
    fn with_error_output(&self, mut said: String) -> String {
        let lines: Vec<&str> =
            self.words.lines().map(str::trim).filter(|line| !line.is_empty()).take(FIRST_LINES).collect();
        if !lines.is_empty() {
            said = format!("{said}: {}", cut(&lines.join(" / "), LONGEST_WORDS));
        }
        self.with_denial_list(said)
    }

    fn with_denial_list(&self, said: String) -> String {
        self.formatter.add_denials(said, &self.ended.refused, self.words)
    }
}

/// In a container, exit codes stand for signals, and programs are those of the image.
fn exit_text(code: u8, sandbox: SandboxKind) -> String {
    let said = format!("exit code {code}");
    match code {
        _ if sandbox != SandboxKind::Container => said,
        126 => format!("{said} (the program cannot be run; programs in `/tmp` and in binds never can)"),
        127 => format!("{said} (the program does not exist; programs come from the image)"),
        129..=192 => format!("{said} (terminated by signal {})", code - 128),
        _ => said,
    }
}

/// A name can carry data, which the journal must not repeat.
pub fn masked(mut effects: Vec<EffectEntry>, mask: &Mask) -> Vec<EffectEntry> {
    for effect in &mut effects {
        effect.target = mask.text(&effect.target);
    }
    effects
}

const CPU_TIME: i32 = 24;
const FILE_SIZE: i32 = 25;
const BAD_CALL: i32 = 31;
const KILL: i32 = 9;
const SEGMENT: i32 = 11;

const FIRST_LINES: usize = 5;
const LONGEST_WORDS: usize = 1_000;
const LONGEST_MESSAGE: usize = 8_000;
const MOST_MADE: usize = 100;
const MOST_LINES: usize = 50;
const LONGEST_LINE: usize = 500;
