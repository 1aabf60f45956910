//! What came of a command, in the gate's words: masked, cleaned, and short where it failed.

pub mod audience;
pub mod denials;
pub mod json;
pub mod missing_paths;
pub mod output;
pub mod plain_text;
pub mod search_results;
pub mod selection;

use toolgate_gate::{EffectEntry, NO_PLACE, Reason, RunFailure, RunReport, RunUsage};
use toolgate_policy::Mask;
use toolgate_secrets::Tier;
use toolgate_spec::model::SandboxKind;

use self::{
    denials::{FIRST_REFUSED, Teller, and_more, cut},
    missing_paths::missed,
    plain_text::plain,
    search_results::Sought,
};
use crate::cli::{
    run::launch::{Ended, Ending, Reached, Refusals, Refused, Usage},
    tool::CliTool,
    view::quarantine::Swept,
};

/// Why there is no result. Not masked yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    pub reason: Reason,
    pub message: String,
}

impl Problem {
    /// Nothing runs, and the caller cannot help it.
    pub fn jail(message: String) -> Self {
        Self { reason: Reason::JailUnavailable, message }
    }

    /// Others wait for a disk, and this would, too.
    pub fn no_place() -> Self {
        Self { reason: Reason::Busy, message: format!("{NO_PLACE}; wait a moment and call again") }
    }

    /// The command was not begun: what it may see took too long to look at.
    pub fn late(tool: &CliTool) -> Self {
        let (name, time) = (tool.program.name.as_str(), tool.deadline.as_millis());
        let message = format!(
            "`{name}` was not begun: looking for what is blocked in its folders took all of its {time} ms; grant smaller folders, or raise `timeout`"
        );
        Self { reason: Reason::Timeout, message }
    }

    fn masked(self, mask: &Mask) -> RunFailure {
        RunFailure {
            reason: self.reason,
            // Masked before it is cut: the beginning of a secret could not be recognised.
            message: cut(&mask.text(&self.message), LONGEST_MESSAGE),
            stack: Vec::new(),
            helper: None,
            heard: None,
        }
    }
}

/// What was called, and what for.
#[derive(Clone, Copy)]
pub struct Call<'c> {
    pub tool: &'c CliTool,
    /// Without `argv[0]`.
    pub line: &'c [String],
    pub sought: Sought,
}

pub fn make(mut ended: Ended, swept: Swept, call: &Call<'_>, teller: Teller<'_>) -> RunReport {
    let Call { tool, sought, .. } = *call;
    let Teller { mask, detector, unseen, .. } = teller;
    let was_killed = !matches!(ended.ending, Ending::Exited(_));
    let stderr_is_cut = was_killed || ended.stderr.len() >= tool.limits.stderr_bytes;
    let stderr = masked_output(&ended.stderr, stderr_is_cut, mask);
    // Before it is put together and cut: a key of several lines is not known for one in a piece of it.
    let words = detector.redact(&stderr, Tier::Probable).text;
    if matches!(ended.ending, Ending::Exited(1..)) {
        let missed = missed(tool, unseen, &stderr);
        let is_new = |one: &Refused| !ended.refused.told.iter().any(|known| known.is_about_the_path_of(one));
        let new: Vec<Refused> = missed.into_iter().filter(is_new).collect();
        ended.refused.told.extend(new);
    }
    let broken_block = made_problem(swept, tool, &mut ended.refused, teller);
    ended.refused.put_in_order();
    let failing = Failing { ended: &ended, words: &words, teller };
    let outcome = match broken_block.or_else(|| failing.fault(call, &stderr)) {
        Some(problem) => Err(problem),
        None => match tool.reader.read(&ended.stdout) {
            Ok(value) => {
                let value = sought.without_secrets(value, mask, detector);
                Ok(Some(mask.value(tool.reader.shaped(value))))
            }
            Err(message) => {
                Err(Problem { reason: Reason::OutputUnreadable, message: failing.with_refused(message) })
            }
        },
    };
    if outcome.is_ok() {
        ended.refused.told.retain(|refused| !matches!(refused, Refused::Lack(_)));
    }
    let lines = words.lines().filter(|line| !line.trim().is_empty());
    let console: Vec<_> =
        lines.clone().take(MOST_LINES).map(|line| ("error", cut(line, LONGEST_LINE))).collect();
    let dropped = lines.count().saturating_sub(console.len());
    RunReport {
        // Somebody may have asked to be told of the very text that is taken out, or that nobody is shown.
        outcome: outcome.map_err(|problem| {
            let heard = format!("{stderr}\n{}", masked_output(&ended.stdout, was_killed, mask));
            RunFailure { heard: Some(heard), ..problem.masked(mask) }
        }),
        console,
        console_dropped: u32::try_from(dropped).unwrap_or(u32::MAX),
        usage: usage_of(&ended.usage, &ended.effects),
        effects_dropped: ended.effects.dropped,
        effects: masked(ended.effects.told, mask),
        walls: ended.walls,
        refused: ended.refused.told.iter().map(|refused| teller.line(refused)).collect(),
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

pub fn without_a_run(problem: Problem, mask: &Mask) -> RunReport {
    RunReport {
        outcome: Err(problem.masked(mask)),
        console: Vec::new(),
        console_dropped: 0,
        effects: Vec::new(),
        effects_dropped: 0,
        usage: RunUsage::default(),
        walls: Vec::new(),
        refused: Vec::new(),
        refused_dropped: 0,
        withheld: Vec::new(),
        worker: None,
    }
}

/// Something ran and did this, and what came of it cannot be told. All of it is masked.
pub fn lost(effects: Reached, refused: Vec<String>, refused_dropped: u64) -> RunReport {
    let message = "what came of the command was lost".to_owned();
    let problem = Problem { reason: Reason::CommandFailed, message };
    let usage = usage_of(&Usage::default(), &effects);
    let Reached { told, dropped, .. } = effects;
    RunReport {
        effects: told,
        effects_dropped: dropped,
        refused,
        refused_dropped,
        usage,
        ..without_a_run(problem, &Mask::new(&[]))
    }
}

fn usage_of(usage: &Usage, effects: &Reached) -> RunUsage {
    let told = u32::try_from(effects.told.len()).unwrap_or(u32::MAX);
    let bytes = effects.told.iter().map(|effect| effect.bytes);
    RunUsage {
        statements: 0,
        memory_bytes: usage.memory_bytes,
        host_calls: told.saturating_add(effects.dropped),
        host_bytes: bytes.fold(effects.dropped_bytes, u64::saturating_add),
        elapsed_us: u64::try_from(usage.elapsed.as_micros()).unwrap_or(u64::MAX),
        helpers: Vec::new(),
    }
}

/// Whatever else a command did: what it made although it is blocked, or that nobody can tell, is the answer.
fn made_problem(swept: Swept, tool: &CliTool, refused: &mut Refusals, teller: Teller<'_>) -> Option<Problem> {
    let name = tool.program.name.as_str();
    let Swept { made, trouble } = swept;
    let mut said = Vec::new();
    if !made.is_empty() {
        let first: Vec<String> = made.iter().take(FIRST_REFUSED).map(|made| teller.line(made)).collect();
        let more = and_more(made.len().saturating_sub(first.len()), 0);
        // A command can make as many as it likes; a record stays short.
        let beyond = made.len().saturating_sub(MOST_MADE);
        refused.dropped = refused.dropped.saturating_add(u64::try_from(beyond).unwrap_or(u64::MAX));
        refused.told.extend(made.into_iter().take(MOST_MADE));
        said.push(format!(
            "`{name}` was found {}{more}; its output is withheld, what else it wrote is there; `execution.blockedPaths` says what is blocked",
            first.join(", ")
        ));
    }
    if let Some(why) = trouble {
        // The first of its kind, or a flood would hide it.
        refused.told.insert(0, Refused::Other(format!("looking for blocked paths that it made: {why}")));
        let more = if said.is_empty() { "something" } else { "more" };
        said.push(format!(
            "whether `{name}` made {more} that is blocked for this tool cannot be told: {why}"
        ));
    }
    (!said.is_empty()).then(|| Problem { reason: Reason::BlockedPathMade, message: said.join("; ") })
}

/// A command that may have failed, and what it wrote to `stderr`, without secrets.
struct Failing<'e> {
    ended: &'e Ended,
    words: &'e str,
    teller: Teller<'e>,
}

impl Failing<'_> {
    /// `None` where the command did what it is for.
    fn fault(&self, call: &Call<'_>, stderr: &str) -> Option<Problem> {
        let tool = call.tool;
        let name = tool.program.name.as_str();
        // Who is kept from something may try it again until it is ended.
        let told_why = |said: String| self.with_refused(said);
        let (reason, message) = match &self.ended.ending {
            Ending::Exited(0) => return None,
            // Such as `grep` that finds nothing; but an error that is told is one.
            Ending::Exited(code) if tool.known.answers_by(*code, call.line) && stderr.trim().is_empty() => {
                return None;
            }
            // What was hidden on purpose is no failure of a command that goes through a folder.
            Ending::Exited(code)
                if tool.known.could_not_see_all(*code) && self.teller.unseen.is_all_of(stderr) =>
            {
                return None;
            }
            Ending::Exited(code) => (
                Reason::CommandFailed,
                self.with_words(format!("`{name}` ended with {}", told(*code, tool.sandbox))),
            ),
            Ending::Signalled(CPU_TIME) => {
                let said = format!("`{name}` used more processor time than it may, and was ended");
                (Reason::Timeout, told_why(said))
            }
            Ending::Signalled(number) => {
                let what = match *number {
                    FILE_SIZE => " (a file outgrew its limit)",
                    BAD_CALL => " (a system call that the jail forbids)",
                    KILL => " (killed)",
                    SEGMENT => " (a fault in the program, or no more memory)",
                    _ => "",
                };
                let said = format!("`{name}` was ended by signal {number}{what}");
                (Reason::CommandFailed, self.with_words(said))
            }
            Ending::TimedOut => {
                let time = tool.deadline.as_millis();
                let said =
                    format!("`{name}` was not done within {time} ms, and was ended with all it started");
                (Reason::Timeout, told_why(said))
            }
            Ending::OutOfMemory => {
                let most = tool.limits.memory_bytes;
                let said =
                    format!("`{name}` used more than the {most} bytes of memory that it may, and was ended");
                (Reason::Memory, told_why(said))
            }
            Ending::OutputTooLarge => {
                let most = tool.limits.stdout_bytes;
                let said =
                    format!("`{name}` wrote more than {most} bytes, and was ended; ask for less at once");
                (Reason::ResultTooLarge, told_why(said))
            }
            Ending::NoJail(why) => (Reason::JailUnavailable, why.clone()),
        };
        Some(Problem { reason, message })
    }

    /// What it said itself, and what the jail kept from it, which is often the cause.
    fn with_words(&self, mut said: String) -> String {
        let lines: Vec<&str> =
            self.words.lines().map(str::trim).filter(|line| !line.is_empty()).take(FIRST_LINES).collect();
        if !lines.is_empty() {
            said = format!("{said}: {}", cut(&lines.join(" / "), LONGEST_WORDS));
        }
        self.with_refused(said)
    }

    fn with_refused(&self, said: String) -> String {
        self.teller.add_refused(said, &self.ended.refused, self.words)
    }
}

/// In a container codes stand for signals, and programs are those of the image.
fn told(code: u8, sandbox: SandboxKind) -> String {
    let said = format!("exit code {code}");
    match code {
        _ if sandbox != SandboxKind::Container => said,
        126 => format!("{said} (a program that cannot be run; nothing in `/tmp` and in binds can)"),
        127 => format!("{said} (a program that is not there; programs are those of the image)"),
        129..=192 => format!("{said} (ended by signal {})", code - 128),
        _ => said,
    }
}

/// A name can carry something out, and the journal is not to repeat it.
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
