//! Prints tools under review. Every text of a server is made visible, because it may try to deceive its reader.

use std::io::Write;

use serde_json::{Value, json};
use toolgate::{ReviewState, ReviewedTool};
use toolgate_upstream::ToolChange;

use crate::{
    Failure,
    terminal::{Terminal, visible},
};

pub(super) fn tool(tool: &ReviewedTool, terminal: &mut Terminal) -> Result<(), Failure> {
    let state = tool.state.name();
    let style = terminal.palette.of(state);
    writeln!(terminal, "{}  {style}{state}{style:#}", visible(&tool.tool))?;
    match &tool.judged {
        Ok((document, candidate)) => {
            let live = &candidate.tool;
            writeln!(terminal, "  served as    {}", visible(&document.name))?;
            writeln!(
                terminal,
                "  risk         {}, {}",
                live.inherent_level().name(),
                live.spec().governance.classification.map_or("unclassified", |class| class.name())
            )?;
            for finding in candidate.findings.iter() {
                let mark = if finding.blocks_publishing { "BLOCKS" } else { "warning" };
                writeln!(
                    terminal,
                    "  {mark:<7}      {}: {}",
                    finding.code.name(),
                    visible(&finding.message)
                )?;
            }
        }
        Err(why) => writeln!(terminal, "  unusable     {}", visible(why))?,
    }
    let Some(definition) = &tool.definition else { return Ok(()) };
    if let Some(description) = &definition.description {
        for (index, line) in description.lines().enumerate() {
            let label = if index == 0 { "description" } else { "" };
            writeln!(terminal, "  {label:<11}  {}", visible(line))?;
        }
    }
    for (name, kind) in arguments(&definition.input_schema) {
        writeln!(terminal, "  argument     {} ({})", visible(&name), visible(&kind))?;
    }
    for change in &tool.changes {
        writeln!(terminal, "  CHANGED      {}", visible(&describe(change)))?;
    }
    writeln!(terminal)?;
    Ok(())
}

/// The next command of an operator.
pub(super) fn next_step(name: &str, tools: &[ReviewedTool], terminal: &mut Terminal) -> Result<(), Failure> {
    let open =
        tools.iter().filter(|tool| matches!(tool.state, ReviewState::New | ReviewState::Changed)).count();
    if open == 0 {
        writeln!(terminal, "nothing to decide")?;
    } else {
        writeln!(terminal, "{open} to decide: toolgate upstream approve {} [TOOL ...]", visible(name))?;
    }
    Ok(())
}

pub(super) fn to_json(tool: &ReviewedTool) -> Value {
    let judged = tool.judged.as_ref().ok();
    json!({
        "tool": tool.tool,
        "state": tool.state.name(),
        "name": judged.map(|(document, _)| &document.name),
        "risk": judged.map(|(_, candidate)| candidate.tool.inherent_level().name()),
        "problem": tool.judged.as_ref().err(),
        "findings": judged.map(|(_, candidate)| {
            candidate.findings.iter().map(|finding| finding.code.name()).collect::<Vec<_>>()
        }),
        "definition": tool.definition.as_ref().map(toolgate_upstream::ToolDefinition::to_json),
        "changes": tool.changes.iter().map(describe).collect::<Vec<_>>(),
    })
}

fn arguments(schema: &serde_json::Map<String, Value>) -> Vec<(String, String)> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let kind = |value: &Value| {
        value.get("type").map_or_else(
            || "any".to_owned(),
            |kind| match kind {
                Value::String(kind) => kind.clone(),
                other => other.to_string(),
            },
        )
    };
    properties.map(|(name, value)| (name.clone(), kind(value))).collect()
}

fn describe(change: &ToolChange) -> String {
    match change {
        ToolChange::Text { field, before, after } => format!("{field}: `{before}` is now `{after}`"),
        ToolChange::NewArgument { name, is_required: true } => format!("new required argument `{name}`"),
        ToolChange::NewArgument { name, is_required: false } => format!("new optional argument `{name}`"),
        ToolChange::RemovedArgument { name } => format!("argument `{name}` was removed"),
        ToolChange::Required { name, is_required: true } => format!("argument `{name}` is required now"),
        ToolChange::Required { name, is_required: false } => format!("argument `{name}` is optional now"),
        ToolChange::ArgumentSchema { name } => format!("the schema of argument `{name}`"),
        ToolChange::InputSchema { keyword } => format!("`{keyword}` of the input schema"),
        ToolChange::OutputSchema => "the output schema".to_owned(),
        ToolChange::Hint { name, before, after } => {
            let shown =
                |hint: &Option<bool>| hint.map_or_else(|| "not set".to_owned(), |value| value.to_string());
            format!("{name}: {} is now {}", shown(before), shown(after))
        }
    }
}
