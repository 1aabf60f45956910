//! Prints the effective configuration and where each value comes from.

use std::io::Write;

use serde_json::{Value, json};
use toolgate_config::Overrides;

use crate::{
    CommandExit, Failure,
    args::{ConfigCommand, ConfigCommandArgs, OutputFormat},
    terminal::{Terminal, json as json_text},
};

pub fn run(args: &ConfigCommandArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let config = args.config.load(&Overrides::default())?;
    let ConfigCommand::Show { origin, format } = &args.command;
    let shown = |entry: &toolgate_config::ConfigEntry| {
        if entry.is_secret { json!("***") } else { entry.value.clone() }
    };
    match format {
        OutputFormat::Json => {
            let entries: Vec<Value> = config
                .entries()
                .iter()
                .map(|entry| json!({ "key": entry.key, "value": shown(entry), "origin": entry.origin.to_string() }))
                .collect();
            terminal.data(json!({ "entries": entries }));
        }
        OutputFormat::Text => {
            let widest = config.entries().iter().map(|entry| entry.key.len()).max().unwrap_or(0);
            let dim = terminal.palette.dim;
            for entry in config.entries() {
                write!(terminal, "{:<widest$}  {}", entry.key, json_text(&shown(entry)))?;
                if *origin {
                    write!(terminal, "  {dim}{}", entry.origin)?;
                    if let Some(position) = entry.position {
                        write!(terminal, ", line {}", position.line)?;
                    }
                    write!(terminal, "{dim:#}")?;
                }
                writeln!(terminal)?;
            }
        }
    }
    Ok(CommandExit::Clean)
}
