//! Adds upstream MCP servers, and reviews and approves their tools.

mod edit;
mod show;

use std::{fs, io::Write, path::Path};

use serde_json::{Value, json};
use toolgate::{ReviewState, ReviewedTool, UpstreamListing, UpstreamReview};
use toolgate_config::{Config, Overrides, model::Upstream};

use crate::{
    CommandExit, Failure,
    args::{OutputFormat, UpstreamAdd, UpstreamArgs, UpstreamCommand},
    commands::publish,
    gateway::{self, Opened},
    similar,
    terminal::{Terminal, visible},
    vetting,
    write::{self, Existing},
};

pub fn run(args: &UpstreamArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    terminal.keep_lines(args.format == OutputFormat::Json);
    let config = args.config.load(&Overrides::default())?;
    match &args.command {
        UpstreamCommand::Add(new) => add(&config, new, terminal),
        UpstreamCommand::List => list(&config, terminal),
        UpstreamCommand::Remove { name } => remove(&config, args, name, terminal),
        UpstreamCommand::Test { name } => with_review(args, &config, name, |review, _| {
            let (server, tools) = (&review.server, review.tools.len());
            writeln!(
                terminal,
                "ok  {name}: {} {}, protocol {}, {tools} tools",
                visible(&server.name),
                visible(&server.version),
                visible(&server.protocol)
            )?;
            terminal.data(json!({ "name": name, "protocol": server.protocol, "tools": tools }));
            Ok(CommandExit::Clean)
        }),
        UpstreamCommand::Review { name } => {
            with_review(args, &config, name, |review, _| {
                for tool in &review.tools {
                    show::tool(tool, terminal)?;
                }
                show::next_step(name, &review.tools, terminal)?;
                terminal.data(json!({ "name": name, "tools": review.tools.iter().map(show::to_json).collect::<Vec<_>>() }));
                Ok(CommandExit::Clean)
            })
        }
        UpstreamCommand::Approve { name, tools, accept, yes } => {
            let codes = vetting::accepted_codes(accept)?;
            let codes: Vec<String> = codes.iter().map(|code| code.name().to_owned()).collect();
            with_review(args, &config, name, |review, toolgate| {
                approve(toolgate, &review, tools, &codes, *yes, terminal)
            })
        }
        UpstreamCommand::Reject { name, tools } => with_review(args, &config, name, |review, toolgate| {
            for tool in chosen(&review, tools)? {
                let rejected = toolgate.reject_upstream_tool(tool, &gateway::operator());
                rejected.map_err(|why| Failure::new(visible(&why)))?;
                writeln!(terminal, "rejected  {}", visible(&tool.tool))?;
            }
            terminal.data(json!({ "rejected": tools }));
            Ok(CommandExit::Clean)
        }),
    }
}

/// Starts the server, and passes its tools on.
fn with_review(
    args: &UpstreamArgs,
    config: &Config,
    name: &str,
    then: impl FnOnce(UpstreamReview, &Opened) -> Result<CommandExit, Failure>,
) -> Result<CommandExit, Failure> {
    check_name(config, name)?;
    gateway::wait(async {
        let toolgate = args.config.open().await?;
        let review = toolgate.review_upstream(name).await.map_err(|why| Failure::new(visible(&why)))?;
        then(review, &toolgate)
    })
}

fn check_name(config: &Config, name: &str) -> Result<(), Failure> {
    let names = || config.upstreams.iter().map(|upstream| upstream.name.as_str());
    if names().any(|known| known == name) {
        return Ok(());
    }
    let hint = similar::closest(name, names());
    let hint = hint.map_or_else(String::new, |close| format!("; did you mean `{}`?", visible(close)));
    Err(Failure::new(format!("unknown upstream server `{}`{hint}", visible(name))))
}

fn add(config: &Config, new: &UpstreamAdd, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let file = config.file.as_deref().ok_or_else(|| Failure::new("there is no configuration file"))?;
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let edited = edit::added(&text, &edit::entry(new));
    check_edit(&edited, file, config.upstreams.len() + 1)?;
    write::write(file, edited.as_bytes(), Existing::Replace)?;
    let name = visible(&new.name);
    writeln!(terminal, "added  {name} in {}", visible(&file.to_string_lossy()))?;
    writeln!(terminal, "  next   review its tools: toolgate upstream review {name}")?;
    terminal.data(json!({ "added": new.name }));
    Ok(CommandExit::Clean)
}

fn remove(
    config: &Config,
    args: &UpstreamArgs,
    name: &str,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    check_name(config, name)?;
    let file = config.file.as_deref().ok_or_else(|| Failure::new("there is no configuration file"))?;
    let text = fs::read_to_string(file).map_err(|error| unreadable(file, &error))?;
    let edited = edit::removed(&text, name).ok_or_else(|| {
        Failure::new(format!(
            "`{}` is not written as `- name: {}`; remove it by hand",
            visible(name),
            visible(name)
        ))
    })?;
    check_edit(&edited, file, config.upstreams.len().saturating_sub(1))?;
    gateway::wait(async {
        let toolgate = args.config.open().await?;
        toolgate
            .remove_upstream_tools(name, &gateway::operator())
            .map_err(|why| Failure::new(visible(&why)))?;
        Ok(())
    })?;
    write::write(file, edited.as_bytes(), Existing::Replace)?;
    writeln!(terminal, "removed  {}", visible(name))?;
    terminal.data(json!({ "removed": name }));
    Ok(CommandExit::Clean)
}

/// The edited file must be valid, and have one server more or less. Otherwise nothing is written.
fn check_edit(edited: &str, file: &Path, expected: usize) -> Result<(), Failure> {
    let directory = file.parent().unwrap_or_else(|| Path::new("."));
    let parsed = Config::parse(edited, directory, &|name| std::env::var(name).ok(), &Overrides::default());
    match parsed {
        Ok(config) if config.upstreams.len() == expected => Ok(()),
        Ok(_) => Err(Failure::new(format!(
            "`upstreams` in `{}` has a form that this command cannot edit; edit the file by hand",
            visible(&file.to_string_lossy())
        ))),
        Err(errors) => {
            let lines: Vec<String> =
                errors.iter().map(|error| format!("\n  {}", visible(&error.to_string()))).collect();
            Err(Failure::Message(format!(
                "not added, because the configuration would have errors:{}",
                lines.concat()
            )))
        }
    }
}

fn list(config: &Config, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    if config.upstreams.is_empty() {
        writeln!(terminal, "no upstream servers; add one with `toolgate upstream add NAME SOURCE`")?;
    }
    let mut servers: Vec<Value> = Vec::new();
    for Upstream { name, source, .. } in &config.upstreams {
        let listing =
            UpstreamListing::read(&config.state, name).map_err(|error| unreadable(&config.state, &error))?;
        let count = |state: ReviewState| listing.tools.values().filter(|tool| tool.state() == state).count();
        let (approved, new, changed) =
            (count(ReviewState::Approved), count(ReviewState::New), count(ReviewState::Changed));
        writeln!(
            terminal,
            "{}  {}  {approved} approved, {new} new, {changed} changed",
            visible(name),
            visible(source)
        )?;
        servers.push(
            json!({ "name": name, "source": source, "approved": approved, "new": new, "changed": changed }),
        );
    }
    terminal.data(json!({ "upstreams": servers }));
    Ok(CommandExit::Clean)
}

/// The named tools, or all that need a decision.
fn chosen<'r>(review: &'r UpstreamReview, names: &[String]) -> Result<Vec<&'r ReviewedTool>, Failure> {
    if names.is_empty() {
        let is_open = |tool: &&ReviewedTool| matches!(tool.state, ReviewState::New | ReviewState::Changed);
        return Ok(review.tools.iter().filter(is_open).collect());
    }
    let find = |name: &String| {
        review.tools.iter().find(|tool| tool.tool == *name).ok_or_else(|| {
            let hint = similar::closest(name, review.tools.iter().map(|tool| tool.tool.as_str()));
            let hint = hint.map_or_else(String::new, |close| format!("; did you mean `{}`?", visible(close)));
            Failure::new(format!("the server has no tool `{}`{hint}", visible(name)))
        })
    };
    names.iter().map(find).collect()
}

fn approve(
    toolgate: &Opened,
    review: &UpstreamReview,
    names: &[String],
    accepted: &[String],
    yes: bool,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let tools = chosen(review, names)?;
    if !yes {
        for tool in &tools {
            show::tool(tool, terminal)?;
        }
        let question = format!("publish these {} tools? [y/N] ", tools.len());
        if !publish::can_ask() || !publish::asked(&question, terminal)? {
            return Err(Failure::new("nothing was approved; in a script, add --yes"));
        }
    }
    let (mut ending, mut approved) = (CommandExit::Clean, Vec::new());
    for tool in tools {
        match toolgate.approve_upstream_tool(tool, accepted, &gateway::operator()) {
            Ok(file) => {
                let name =
                    tool.judged.as_ref().map_or(tool.tool.as_str(), |(document, _)| document.name.as_str());
                writeln!(terminal, "approved  {}  {}", visible(name), visible(&file.to_string_lossy()))?;
                approved.push(name.to_owned());
            }
            Err(why) => {
                writeln!(terminal, "REFUSED   {}: {}", visible(&tool.tool), visible(&why))?;
                ending = CommandExit::Findings;
            }
        }
    }
    terminal.data(json!({ "approved": approved }));
    Ok(ending)
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot read `{}`: {error}", visible(&path.to_string_lossy())))
}
