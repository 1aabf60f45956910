//! Tests and publishes tools, and unpublishes them. Risky tools need a person's confirmation.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    time::SystemTime,
};

use serde_json::json;
use toolgate::{Loaded, LoadedTool, TestRunError, TestRuns, ToolOrigin, Toolgate};
use toolgate_gate::{Candidate, Trial};
use toolgate_policy::{LifecycleState, RiskLevel};
use toolgate_spec::model::ToolId;

use crate::{
    CommandExit, Failure, announce,
    args::{OutputFormat, PublishArgs, UnpublishArgs},
    draft::{self, DraftEdit},
    gateway,
    progress::Spinner,
    similar,
    terminal::{Terminal, visible},
    trial,
    vetting::{self, Vetting},
};

pub fn run(args: &PublishArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    terminal.keep_lines(args.format == OutputFormat::Json);
    gateway::wait(async {
        let toolgate = args.config.open().await?;
        let loaded = toolgate.loaded();
        let chosen = choose(&loaded, &args.tools)?;
        let mut ending = CommandExit::Clean;
        if args.tools.is_empty() {
            for tool in loaded.tools.iter().filter(|tool| is_withdrawn(tool)) {
                writeln!(
                    terminal,
                    "left out   {}: it was unpublished; to publish it again, name it",
                    visible(&tool.name)
                )?;
            }
        }
        let mut tools = Vec::new();
        for tool in chosen {
            let before = terminal.kept_bytes();
            let ended = publish(&toolgate, tool, args, terminal).await?;
            let said = terminal.kept_since(before);
            tools.push(json!({ "name": tool.name, "published": ended == CommandExit::Clean, "said": said }));
            ending = ending.max(ended);
        }
        terminal.data(json!({ "tools": tools }));
        Ok(ending)
    })
}

pub fn unpublish(args: &UnpublishArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    terminal.keep_lines(args.format == OutputFormat::Json);
    gateway::wait(async {
        let toolgate = args.config.open().await?;
        let loaded = toolgate.loaded();
        // Find all tools before the first is unpublished.
        let chosen: Vec<Vec<StoredPublication>> =
            args.tools.iter().map(|tool| records(&toolgate, &loaded, tool)).collect::<Result<_, _>>()?;
        for (tool, records) in args.tools.iter().zip(chosen) {
            for StoredPublication { id, name, digest } in records {
                let withdrawn = toolgate.publisher().unpublish(&id, &name, SystemTime::now());
                withdrawn.map_err(|problem| Failure::new(visible(&problem)))?;
                note(&toolgate, "tool.unpublished", &name, &digest)?;
            }
            writeln!(terminal, "unpublished  {}", visible(tool))?;
        }
        terminal.data(json!({ "unpublished": args.tools }));
        Ok(CommandExit::Clean)
    })
}

/// A tool's stored publication.
struct StoredPublication {
    id: String,
    name: String,
    digest: String,
}

/// Finds the publications of a tool by name or id. Also searches stored test runs, because the document of a live tool
/// may be broken, gone, or have another id by now.
fn records(toolgate: &Toolgate, loaded: &Loaded, tool: &str) -> Result<Vec<StoredPublication>, Failure> {
    let passes = toolgate.state().all_passes().map_err(|error| Failure::new(visible(&error.to_string())))?;
    let derived = ToolId::of_name(tool);
    let mut records: Vec<StoredPublication> = passes
        .into_iter()
        .filter(|(id, pass)| pass.name.as_deref() == Some(tool) || id == tool || id == derived.as_str())
        .map(|(id, pass)| StoredPublication {
            name: pass.name.unwrap_or_else(|| tool.to_owned()),
            digest: pass.record.document_digest,
            id,
        })
        .collect();
    let found = choose(loaded, &[tool.to_owned()]);
    match found.map(|found| found.into_iter().next()) {
        Ok(Some(LoadedTool { candidate: Ok(candidate), .. })) => {
            let live = &candidate.tool;
            records.retain(|record| record.id != live.spec().id.as_str());
            records.push(StoredPublication {
                id: live.spec().id.as_str().to_owned(),
                name: live.name().to_owned(),
                digest: live.digest().to_owned(),
            });
        }
        // There is nothing to unpublish.
        Ok(Some(LoadedTool { candidate: Err(problem), .. })) if records.is_empty() => {
            let (name, problem) = (visible(tool), visible(problem));
            return Err(Failure::Findings(format!(
                "`{name}` has errors, and no test run has this name; use its `toolId`: {problem}"
            )));
        }
        Err(failure) if records.is_empty() => return Err(failure),
        _ => {}
    }
    Ok(records)
}

/// The named tools. Without names, all inactive and broken tools except those that a person unpublished: publishing all
/// must not undo that decision by accident.
fn choose<'t>(loaded: &'t Loaded, names: &[String]) -> Result<Vec<&'t LoadedTool>, Failure> {
    let tools: Vec<&LoadedTool> = loaded.tools.iter().map(AsRef::as_ref).collect();
    if names.is_empty() {
        let is_waiting = |tool: &&LoadedTool| match &tool.candidate {
            Ok(candidate) => candidate.lifecycle.state != LifecycleState::Active && !candidate.is_withdrawn,
            Err(problem) => loaded.problems.iter().any(|known| known.what == *problem),
        };
        return Ok(tools.into_iter().filter(is_waiting).collect());
    }
    names
        .iter()
        .map(|name| {
            tools.iter().copied().find(|tool| tool.name == *name).ok_or_else(|| {
                let hint = similar::closest(name, tools.iter().map(|tool| tool.name.as_str()));
                let hint =
                    hint.map_or_else(String::new, |close| format!("; did you mean `{}`?", visible(close)));
                Failure::new(format!("unknown tool `{}`{hint}", visible(name)))
            })
        })
        .collect()
}

fn is_withdrawn(tool: &LoadedTool) -> bool {
    tool.candidate.as_ref().is_ok_and(|candidate| candidate.is_withdrawn)
}

async fn publish(
    toolgate: &Toolgate,
    tool: &LoadedTool,
    args: &PublishArgs,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let name = visible(&tool.name).into_owned();
    let candidate = match &tool.candidate {
        Ok(candidate) => candidate.accepting(&vetting::accepted_codes(&args.accept)?),
        Err(problem) => {
            let style = terminal.palette.of("REFUSED");
            writeln!(terminal, "{style}REFUSED{style:#}    {name}: {}", visible(problem))?;
            return Ok(CommandExit::Findings);
        }
    };
    let candidate = &candidate;
    if vetting::vet(candidate, terminal)? == Vetting::Refused {
        return Ok(CommandExit::Findings);
    }
    let failure = |problem: String| Failure::new(format!("`{name}`: {}", visible(&problem)));
    let level = candidate.tool.level();
    // Ask before the test run, because it has effects.
    let concerns = concerns(candidate, &announce::announce(toolgate, tool, candidate, terminal)?);
    if !concerns.is_empty() && !args.yes && !confirmed(candidate, &concerns, terminal)? {
        let concerns = concerns.join(", and ");
        writeln!(terminal, "not published  {name}: {concerns}; it was not confirmed; nothing was run")?;
        return Ok(CommandExit::Findings);
    }
    if let (ToolOrigin::Shipped, Some(_), true) =
        (&tool.origin, candidate.holding_pass(), candidate.tool.reaches_out())
    {
        return publish_released(toolgate, candidate, terminal);
    }
    // Announce before the run, which gets the values.
    if let Some(taken) = taken_in(candidate) {
        writeln!(terminal, "takes      {name}: the secrets {taken}")?;
        terminal.flush()?;
    }
    let Some(trial) = tested(toolgate, tool, candidate, args, terminal).await? else {
        return Ok(CommandExit::Findings);
    };
    // StoredPublication at once, before anything that may end the command.
    if trial.was_unpublished {
        note(toolgate, "tool.unpublished", candidate.tool.name(), candidate.tool.digest())?;
    }
    if !trial.has_passed() {
        let style = terminal.palette.of("FAIL");
        writeln!(terminal, "{style}FAIL{style:#}       {name}")?;
        trial::print_failure(candidate, &trial, terminal)?;
        return Ok(CommandExit::Findings);
    }
    let mut passed = trial.publishable(candidate).map_err(failure)?;
    if let ToolOrigin::File(file) = &tool.origin {
        clear_draft(file, &mut passed, terminal)?;
    }
    let record = || {
        let noted = toolgate.note_published(candidate, &gateway::operator());
        noted.map_err(|error| error.to_string())
    };
    toolgate.publisher().publish(&passed, &record).map_err(failure)?;
    let style = terminal.palette.of("published");
    writeln!(terminal, "{style}published{style:#}  {name} ({})", level.name())?;
    trial::print_wider(candidate, &trial, terminal)?;
    Ok(CommandExit::Clean)
}

/// Clears `draft: true` in the file. If the file cannot be written, the state stores the decision instead.
fn clear_draft(file: &Path, passed: &mut Candidate, terminal: &mut Terminal) -> Result<(), Failure> {
    let shown = file.to_string_lossy();
    let shown = visible(&shown);
    match draft::clear(file, &passed.tool.spec().name)? {
        DraftEdit::Unchanged => {}
        DraftEdit::Edited => writeln!(terminal, "edited     {shown}: `draft` is now false")?,
        DraftEdit::NotWritable(why) => {
            passed.accept_draft();
            writeln!(terminal, "note       {shown} still has `draft: true`, but the tool is served: {why}")?;
        }
    }
    Ok(())
}

/// Publishes a shipped tool that reaches other hosts. It was tested at release and is not run again.
fn publish_released(
    toolgate: &Toolgate,
    candidate: &Candidate,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let name = visible(&candidate.tool.spec().name).into_owned();
    let record = || {
        let noted = toolgate.note_publication("tool.published", &candidate.tool, &gateway::operator());
        noted.map_err(|error| error.to_string())
    };
    let published = toolgate.publisher().publish(candidate, &record);
    published.map_err(|problem| Failure::new(format!("`{name}`: {}", visible(&problem))))?;
    writeln!(terminal, "published  {name} ({}), tested when it was released", candidate.tool.level().name())?;
    Ok(CommandExit::Clean)
}

/// Runs the test. Returns `None`, after a message, if the run could have real effects and was not confirmed.
async fn tested(
    toolgate: &Toolgate,
    tool: &LoadedTool,
    candidate: &Candidate,
    args: &PublishArgs,
    terminal: &mut Terminal,
) -> Result<Option<Trial>, Failure> {
    let name = visible(&tool.name);
    let failed = |why: &TestRunError| Failure::new(format!("`{name}`: {}", visible(&why.to_string())));
    let runs = if args.for_real { TestRuns::ForReal } else { TestRuns::Contained };
    let waiting = Spinner::to(format!("testing {name}"));
    let tested = toolgate.local_pass(candidate, &tool.origin, runs).await;
    drop(waiting);
    let why = match tested {
        Ok(trial) => return Ok(Some(trial)),
        Err(why @ TestRunError::Failed(_)) => return Err(failed(&why)),
        Err(why @ TestRunError::NeedsConsent(_)) => why,
    };
    let reason = visible(&why.to_string()).into_owned();
    if !can_ask() {
        writeln!(terminal, "not published  {name}: {reason}; nothing was run; add --for-real to run it")?;
        return Ok(None);
    }
    if !asked(&format!("`{name}`: {reason}. Run it? [y/N] "), terminal)? {
        writeln!(terminal, "not published  {name}: its test run was not confirmed; nothing was run")?;
        return Ok(None);
    }
    let _waiting = Spinner::to(format!("testing {name}"));
    let trial = toolgate.local_pass(candidate, &tool.origin, TestRuns::ForReal).await;
    trial.map(Some).map_err(|why| failed(&why))
}

/// The points that a person must confirm before the tool is tested and published. Uses the inherent level, because an
/// approval at call time does not replace the review at publication.
fn concerns(candidate: &Candidate, consequences: &[&str]) -> Vec<String> {
    let level = candidate.tool.inherent_level();
    let mut concerns = Vec::new();
    if level > RiskLevel::L3 {
        concerns.push(format!("it is rated {}", level.name()));
    }
    if !consequences.is_empty() {
        let consequences = consequences.join("; ");
        concerns.push(format!("it asks a person less often than the published version: {consequences}"));
    }
    concerns
}

/// Asks on the terminal; without one the answer is no.
fn confirmed(candidate: &Candidate, concerns: &[String], terminal: &mut Terminal) -> Result<bool, Failure> {
    let (name, concerns) = (visible(&candidate.tool.spec().name), concerns.join(", and "));
    if !can_ask() {
        Terminal::note(&format!(
            "`{name}`: {concerns}; add --yes to test and publish it without being asked"
        ));
        return Ok(false);
    }
    let takes =
        taken_in(candidate).map_or_else(String::new, |taken| format!(", and it gets the secrets {taken}"));
    asked(&format!("`{name}`: {concerns}{takes}. Test and publish it? [y/N] "), terminal)
}

pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

pub(super) fn asked(question: &str, terminal: &mut Terminal) -> Result<bool, Failure> {
    terminal.flush()?;
    let mut stderr = io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let answer = gateway::read_line()?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The names of the secrets that the tool gets.
fn taken_in(candidate: &Candidate) -> Option<String> {
    let names = candidate.tool.spec().required_environment();
    (!names.is_empty()).then(|| visible(&names.join(", ")).into_owned())
}

fn note(toolgate: &Toolgate, kind: &str, name: &str, digest: &str) -> Result<(), Failure> {
    let entry = json!({
        "kind": kind,
        "tool": { "name": name, "digest": digest },
        "by": gateway::operator(),
    });
    toolgate.note(&entry).map_err(|error| Failure::new(visible(&error.to_string())))
}
