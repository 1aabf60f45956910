//! Which tools may be served? Those that pass, and that a person lets through where they reach far.

use std::{
    io::{self, IsTerminal, Write},
    path::Path,
    time::SystemTime,
};

use serde_json::json;
use toolgate::{Loaded, NotTested, Origin, Surveyed, TestRuns, Toolgate};
use toolgate_gate::{Candidate, Trial};
use toolgate_policy::{LifecycleState, RiskLevel};
use toolgate_spec::model::ToolId;

use crate::{
    Ending, Failure, announce,
    args::{OutputFormat, PublishArgs, UnpublishArgs},
    draft::{self, Cleared},
    gateway,
    progress::Waiting,
    similar,
    terminal::{Terminal, visible},
    trial,
    vetting::{self, Vetting},
};

pub fn run(args: &PublishArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    terminal.keep_lines(args.format == OutputFormat::Json);
    gateway::wait(async {
        let toolgate = args.config.open().await?;
        let loaded = toolgate.loaded();
        let chosen = choose(&loaded, &args.tools)?;
        let mut ending = Ending::Clean;
        if args.tools.is_empty() {
            for tool in loaded.tools.iter().filter(|tool| is_withdrawn(tool)) {
                writeln!(
                    terminal,
                    "left out   {}: somebody took it back; publish it by its name",
                    visible(&tool.name)
                )?;
            }
        }
        let mut tools = Vec::new();
        for tool in chosen {
            let before = terminal.said();
            let ended = publish(&toolgate, tool, args, terminal).await?;
            let said = terminal.said_since(before);
            tools.push(json!({ "name": tool.name, "published": ended == Ending::Clean, "said": said }));
            ending = ending.max(ended);
        }
        terminal.data(json!({ "tools": tools }));
        Ok(ending)
    })
}

pub fn take_back(args: &UnpublishArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    terminal.keep_lines(args.format == OutputFormat::Json);
    gateway::wait(async {
        let toolgate = args.config.open().await?;
        let loaded = toolgate.loaded();
        // All of them are found before any is taken back.
        let chosen: Vec<Vec<Record>> =
            args.tools.iter().map(|tool| records(&toolgate, &loaded, tool)).collect::<Result<_, _>>()?;
        for (tool, records) in args.tools.iter().zip(chosen) {
            for Record { id, name, digest } in records {
                let withdrawn = toolgate.workshop().unpublish(&id, &name, SystemTime::now());
                withdrawn.map_err(|problem| Failure::new(visible(&problem)))?;
                note(&toolgate, "tool.unpublished", &name, &digest)?;
            }
            writeln!(terminal, "unpublished  {}", visible(tool))?;
        }
        terminal.data(json!({ "unpublished": args.tools }));
        Ok(Ending::Clean)
    })
}

/// What is remembered of a tool.
struct Record {
    id: String,
    name: String,
    digest: String,
}

/// What makes the tool that is called so, or has this id, a published one. A live tool may outlive its document: where
/// that is broken, or names another id by now, only what was kept of its test run leads to it.
fn records(toolgate: &Toolgate, loaded: &Loaded, tool: &str) -> Result<Vec<Record>, Failure> {
    let passes = toolgate.state().all_passes().map_err(|error| Failure::new(visible(&error.to_string())))?;
    let derived = ToolId::of_name(tool);
    let mut records: Vec<Record> = passes
        .into_iter()
        .filter(|(id, pass)| pass.name.as_deref() == Some(tool) || id == tool || id == derived.as_str())
        .map(|(id, pass)| Record {
            name: pass.name.unwrap_or_else(|| tool.to_owned()),
            digest: pass.record.document_digest,
            id,
        })
        .collect();
    let found = choose(loaded, &[tool.to_owned()]);
    match found.map(|found| found.into_iter().next()) {
        Ok(Some(Surveyed { candidate: Ok(candidate), .. })) => {
            let live = &candidate.tool;
            records.retain(|record| record.id != live.spec().id.as_str());
            records.push(Record {
                id: live.spec().id.as_str().to_owned(),
                name: live.name().to_owned(),
                digest: live.digest().to_owned(),
            });
        }
        // Nothing would have been taken back.
        Ok(Some(Surveyed { candidate: Err(problem), .. })) if records.is_empty() => {
            let (name, problem) = (visible(tool), visible(problem));
            return Err(Failure::Findings(format!(
                "`{name}` has errors, and no test run under its name is known; say its `toolId`: {problem}"
            )));
        }
        Err(failure) if records.is_empty() => return Err(failure),
        _ => {}
    }
    Ok(records)
}

/// All that are named; without names, all that are not active yet, and those that something keeps from it, but none that
/// somebody took back: whoever publishes the rest does not overrule that unawares.
fn choose<'t>(loaded: &'t Loaded, names: &[String]) -> Result<Vec<&'t Surveyed>, Failure> {
    let tools: Vec<&Surveyed> = loaded.tools.iter().map(AsRef::as_ref).collect();
    if names.is_empty() {
        let is_waiting = |tool: &&Surveyed| match &tool.candidate {
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
                Failure::new(format!("there is no tool `{}`{hint}", visible(name)))
            })
        })
        .collect()
}

fn is_withdrawn(tool: &Surveyed) -> bool {
    tool.candidate.as_ref().is_ok_and(|candidate| candidate.is_withdrawn)
}

async fn publish(
    toolgate: &Toolgate,
    tool: &Surveyed,
    args: &PublishArgs,
    terminal: &mut Terminal,
) -> Result<Ending, Failure> {
    let name = visible(&tool.name).into_owned();
    let candidate = match &tool.candidate {
        Ok(candidate) => candidate.accepting(&vetting::accepted_codes(&args.accept)?),
        Err(problem) => {
            let style = terminal.palette.of("REFUSED");
            writeln!(terminal, "{style}REFUSED{style:#}    {name}: {}", visible(problem))?;
            return Ok(Ending::Findings);
        }
    };
    let candidate = &candidate;
    if vetting::vet(candidate, terminal)? == Vetting::Refused {
        return Ok(Ending::Findings);
    }
    let told = |problem: String| Failure::new(format!("`{name}`: {}", visible(&problem)));
    let level = candidate.tool.level();
    // Before the run: a test run acts.
    let concerns = concerns(candidate, &announce::announce(toolgate, tool, candidate, terminal)?);
    if !concerns.is_empty() && !args.yes && !confirmed(candidate, &concerns, terminal)? {
        let concerns = concerns.join(", and ");
        writeln!(terminal, "not published  {name}: {concerns}; it was not confirmed; nothing was run")?;
        return Ok(Ending::Findings);
    }
    if let (Origin::Shipped, Some(_), true) =
        (&tool.origin, candidate.holding_pass(), candidate.tool.reaches_out())
    {
        return publish_released(toolgate, candidate, terminal);
    }
    // Before the run: it gets their values.
    if let Some(taken) = taken_in(candidate) {
        writeln!(terminal, "takes      {name}: {taken} from the gateway's environment")?;
        terminal.flush()?;
    }
    let Some(trial) = tested(toolgate, tool, candidate, args, terminal).await? else {
        return Ok(Ending::Findings);
    };
    // It is over already, so before anything else that may end the command, such as a person who is asked.
    if trial.took_back {
        note(toolgate, "tool.unpublished", candidate.tool.name(), candidate.tool.digest())?;
    }
    if !trial.has_passed() {
        let style = terminal.palette.of("FAIL");
        writeln!(terminal, "{style}FAIL{style:#}       {name}")?;
        trial::print_failure(candidate, &trial, terminal)?;
        return Ok(Ending::Findings);
    }
    let mut passed = trial.publishable(candidate).map_err(told)?;
    if let Origin::File(file) = &tool.origin {
        clear_draft(file, &mut passed, terminal)?;
    }
    let record = || {
        let noted = toolgate.note_published(candidate, &gateway::operator());
        noted.map_err(|error| error.to_string())
    };
    toolgate.workshop().publish(&passed, &record).map_err(told)?;
    let style = terminal.palette.of("published");
    writeln!(terminal, "{style}published{style:#}  {name} ({})", level.name())?;
    trial::print_wider(candidate, &trial, terminal)?;
    Ok(Ending::Clean)
}

/// Takes `draft: true` out of the file, and says so. A file that cannot be written does not matter: the state keeps it, too.
fn clear_draft(file: &Path, passed: &mut Candidate, terminal: &mut Terminal) -> Result<(), Failure> {
    let shown = file.to_string_lossy();
    let shown = visible(&shown);
    match draft::clear(file, &passed.tool.spec().name)? {
        Cleared::Unchanged => {}
        Cleared::Edited => writeln!(terminal, "edited     {shown}: `draft` is now false")?,
        Cleared::NotWritable(why) => {
            passed.accept_draft();
            writeln!(
                terminal,
                "note       {shown} still says `draft: true`, and is served all the same: {why}"
            )?;
        }
    }
    Ok(())
}

/// A shipped tool that reaches other hosts has the pass of its release, and is not run again.
fn publish_released(
    toolgate: &Toolgate,
    candidate: &Candidate,
    terminal: &mut Terminal,
) -> Result<Ending, Failure> {
    let name = visible(&candidate.tool.spec().name).into_owned();
    let record = || {
        let noted = toolgate.note_publication("tool.published", &candidate.tool, &gateway::operator());
        noted.map_err(|error| error.to_string())
    };
    let published = toolgate.workshop().publish(candidate, &record);
    published.map_err(|problem| Failure::new(format!("`{name}`: {}", visible(&problem))))?;
    writeln!(terminal, "published  {name} ({}), tested when it was released", candidate.tool.level().name())?;
    Ok(Ending::Clean)
}

/// The test run. `None` if it could change something for real and was not confirmed; the terminal then says so.
async fn tested(
    toolgate: &Toolgate,
    tool: &Surveyed,
    candidate: &Candidate,
    args: &PublishArgs,
    terminal: &mut Terminal,
) -> Result<Option<Trial>, Failure> {
    let name = visible(&tool.name);
    let failed = |why: &NotTested| Failure::new(format!("`{name}`: {}", visible(&why.to_string())));
    let runs = if args.for_real { TestRuns::ForReal } else { TestRuns::Contained };
    let waiting = Waiting::to(format!("testing {name}"));
    let tested = toolgate.local_pass(candidate, &tool.origin, runs).await;
    drop(waiting);
    let why = match tested {
        Ok(trial) => return Ok(Some(trial)),
        Err(why @ NotTested::Failed(_)) => return Err(failed(&why)),
        Err(why @ NotTested::NeedsConsent(_)) => why,
    };
    let told = visible(&why.to_string()).into_owned();
    if !can_ask() {
        writeln!(terminal, "not published  {name}: {told}; nothing was run; add --for-real to run it")?;
        return Ok(None);
    }
    if !asked(&format!("`{name}`: {told}. Run it? [y/N] "), terminal)? {
        writeln!(terminal, "not published  {name}: its test run was not confirmed; nothing was run")?;
        return Ok(None);
    }
    let _waiting = Waiting::to(format!("testing {name}"));
    let trial = toolgate.local_pass(candidate, &tool.origin, TestRuns::ForReal).await;
    trial.map(Some).map_err(|why| failed(&why))
}

/// Lists the points that a person must confirm before the tool is tested and published. The level is the inherent one: an approval at
/// call time does not replace the review at publication.
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

/// Asks on a terminal; without one the answer is no.
fn confirmed(candidate: &Candidate, concerns: &[String], terminal: &mut Terminal) -> Result<bool, Failure> {
    let (name, concerns) = (visible(&candidate.tool.spec().name), concerns.join(", and "));
    if !can_ask() {
        Terminal::note(&format!(
            "`{name}`: {concerns}; add --yes to test and publish it without being asked"
        ));
        return Ok(false);
    }
    let takes = taken_in(candidate)
        .map_or_else(String::new, |taken| format!(", and it takes {taken} from the gateway's environment"));
    asked(&format!("`{name}`: {concerns}{takes}. Test and publish it? [y/N] "), terminal)
}

fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn asked(question: &str, terminal: &mut Terminal) -> Result<bool, Failure> {
    terminal.flush()?;
    let mut stderr = io::stderr();
    stderr.write_all(question.as_bytes())?;
    stderr.flush()?;
    let answer = gateway::read_line()?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// The variables whose values the tool gets, by name.
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
