//! Prints the published JSON Schemas.

use std::io::Write;

use serde_json::json;
use toolgate_spec::Schema;

use crate::{
    CommandExit, Failure,
    args::{OutputFormat, SchemaArgs},
    similar,
    terminal::{Terminal, visible},
};

pub fn run(args: &SchemaArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    if args.list {
        return list(args.format, terminal);
    }
    if args.name == CONFIG {
        serde_json::to_writer_pretty(&mut *terminal, &toolgate_config::schema())?;
        writeln!(terminal)?;
        return Ok(CommandExit::Clean);
    }
    let Some(schema) = Schema::from_name(&args.name) else {
        let names: Vec<&str> = Schema::ALL.map(Schema::name).into_iter().chain([CONFIG]).collect();
        let hint = match similar::closest(&args.name, names.iter().copied()) {
            Some(close) => format!("did you mean `{close}`?"),
            None => format!("known: {}", names.join(", ")),
        };
        return Err(Failure::new(format!("unknown schema `{}`; {hint}", visible(&args.name))));
    };
    serde_json::to_writer_pretty(&mut *terminal, &schema.document())?;
    writeln!(terminal)?;
    Ok(CommandExit::Clean)
}

fn list(format: OutputFormat, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    if format == OutputFormat::Json {
        let names = Schema::ALL.map(Schema::name).into_iter().chain([CONFIG]);
        terminal.data(json!({ "schemas": names.collect::<Vec<_>>() }));
        return Ok(CommandExit::Clean);
    }
    for schema in Schema::ALL {
        let document = schema.document();
        let title = document.get("title").and_then(serde_json::Value::as_str).unwrap_or_default();
        writeln!(terminal, "{:<16}{title}", schema.name())?;
    }
    writeln!(terminal, "{CONFIG:<16}The configuration `toolgate.yaml`")?;
    Ok(CommandExit::Clean)
}

/// The schema of `toolgate.yaml`, which is not a tool document.
const CONFIG: &str = "config";
