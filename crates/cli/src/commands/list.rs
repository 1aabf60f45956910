//! Lists all tools with state, level and last pass.

use std::io::Write;

use serde_json::{Value, json};
use toolgate::{HostLayers, LoadProblem, Loaded, LoadedTool, ToolOrigin};
use toolgate_policy::LifecycleState;

use crate::{
    CommandExit, Failure,
    args::{ListArgs, OutputFormat},
    gateway,
    terminal::{Terminal, visible},
    time,
};

pub fn run(args: &ListArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let toolgate = gateway::wait(args.config.open())?;
    let loaded = toolgate.loaded();
    let layers = HostLayers::probe();
    match args.format {
        OutputFormat::Json => {
            let tools: Vec<Value> = loaded.tools.iter().map(|tool| to_json(tool, &loaded)).collect();
            let entries = |problems: &[LoadProblem]| -> Vec<Value> {
                problems.iter().map(|one| json!({ "place": one.place, "problem": one.what })).collect()
            };
            let (problems, unused_settings) = (entries(&loaded.problems), entries(&loaded.unused_settings));
            let isolation = layers.to_json();
            let all = json!({ "tools": tools, "problems": problems, "unusedSettings": unused_settings, "isolation": isolation });
            terminal.data(all);
        }
        OutputFormat::Text => {
            print(&loaded, terminal)?;
            let warning = terminal.palette.warning;
            for line in layers.warnings() {
                writeln!(terminal, "{warning}warning{warning:#}: {}", visible(&line))?;
            }
        }
    }
    Ok(if loaded.problems.is_empty() { CommandExit::Clean } else { CommandExit::Findings })
}

fn print(loaded: &Loaded, terminal: &mut Terminal) -> Result<(), Failure> {
    if loaded.tools.is_empty() {
        writeln!(
            terminal,
            "no tools yet; create one with `toolgate new NAME --dir tools`, or set `catalog.preset` to use shipped ones"
        )?;
    }
    let widest =
        loaded.tools.iter().map(|tool| visible(&tool.name).chars().count()).max().unwrap_or(4).max(4);
    let dim = terminal.palette.dim;
    if !loaded.tools.is_empty() {
        writeln!(
            terminal,
            "{dim}{:<widest$}  {:<20}  {:<5}  {:<16}  why{dim:#}",
            "tool", "state", "level", "last pass"
        )?;
    }
    for tool in &loaded.tools {
        let (state, level, at, why) = row(tool, loaded);
        let style = terminal.palette.of(state);
        writeln!(
            terminal,
            "{:<widest$}  {style}{state:<20}{style:#}  {level:<5}  {at:<16}  {}",
            visible(&tool.name),
            visible(&why)
        )?;
    }
    let (error, warning) = (terminal.palette.error, terminal.palette.warning);
    let errors = loaded.problems.iter().map(|problem| ("error", error, problem));
    let warnings = loaded.unused_settings.iter().map(|problem| ("warning", warning, problem));
    for (kind, style, problem) in errors.chain(warnings) {
        writeln!(
            terminal,
            "{style}{kind}{style:#}: {}: {}",
            visible(&problem.place),
            visible(&problem.what)
        )?;
    }
    Ok(())
}

fn row(tool: &LoadedTool, loaded: &Loaded) -> (&'static str, &'static str, String, String) {
    match &tool.candidate {
        Err(problem) => ("REFUSED", "-", "-".to_owned(), problem.clone()),
        Ok(candidate) => {
            let lifecycle = &candidate.lifecycle;
            let is_held_back = loaded.has_broken_policies && lifecycle.state == LifecycleState::Active;
            let state = match tool.is_exposed {
                false => "NOT_EXPOSED",
                true if is_held_back => "NOT_SERVED",
                true => lifecycle.state.name(),
            };
            let at = candidate.pass.as_ref().map_or_else(|| "-".to_owned(), |pass| time::minute(pass.at));
            let why = match (&lifecycle.error, lifecycle.missing.as_slice()) {
                (Some(error), _) => error.clone(),
                _ if is_held_back => {
                    "the policies have errors; no tool is served until they are fixed".to_owned()
                }
                (None, []) => lifecycle.because.to_owned(),
                (None, missing) => format!("not set: {}; run `toolgate secret set NAME`", missing.join(", ")),
            };
            (state, candidate.tool.level().name(), at, why)
        }
    }
}

fn to_json(tool: &LoadedTool, loaded: &Loaded) -> Value {
    let (state, level, _, why) = row(tool, loaded);
    let pass = tool.candidate.as_ref().ok().and_then(|candidate| candidate.pass.as_ref());
    json!({
        "name": tool.name,
        "state": state,
        "level": if level == "-" { Value::Null } else { level.into() },
        "exposed": tool.is_exposed,
        "origin": match &tool.origin {
            ToolOrigin::Shipped => json!("shipped"),
            ToolOrigin::File(file) => json!(file),
            ToolOrigin::Program => json!("program"),
        },
        "because": why,
        "lastPass": pass.map(|pass| time::rfc3339(pass.at)),
        "observed": pass.map(|pass| &pass.observed),
    })
}
