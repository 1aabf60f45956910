//! What does this tool do? One run with everything shown.

use std::{io::Write, sync::Arc};

use serde_json::{Value, json};
use toolgate_handlers::{EffectRecord, Failure as ToolFailure, FailureCode, JsReport, Returned};
use toolgate_sandbox::Strength;

use crate::{
    Ending, Failure,
    args::{OutputFormat, RunArgs},
    commands::resolve::Resolved,
    documents,
    runner::{self, Runner},
    table::Table,
    terminal::{Terminal, json_pretty, visible},
};

pub fn run(args: &RunArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let rules = args.policy.rules()?;
    let (_, _, document) = documents::find(&args.tool, args.name.as_deref(), &rules)?;
    let resolved = Resolved::new(&document, &rules, terminal)?;
    let spec = Arc::new(resolved.spec.clone());
    let arguments = if args.arguments.is_empty() {
        toolgate_gate::test_arguments(&spec).map_err(|problem| Failure::new(visible(&problem)))?
    } else {
        runner::arguments(&spec, &args.arguments)?
    };
    let runner = Runner::new(&args.sandbox)?;
    let Some(report) = runner.run(&spec, &resolved.policy, &arguments)? else {
        let name = visible(&spec.name);
        return Err(Failure::new(format!(
            "`{name}` is not JavaScript; only JavaScript tools can be run so far"
        )));
    };
    match args.format {
        OutputFormat::Json => writeln!(terminal, "{}", json_pretty(&to_json(&report)))?,
        OutputFormat::Text => print(&report, terminal)?,
    }
    Ok(ending(&report))
}

fn ending(report: &JsReport) -> Ending {
    match &report.outcome {
        Ok(_) => Ending::Clean,
        Err(failure) if failure.code == FailureCode::WorkerUnavailable => Ending::CouldNotRead,
        Err(_) => Ending::Findings,
    }
}

fn print(report: &JsReport, terminal: &mut Terminal) -> Result<(), Failure> {
    for line in &report.console {
        writeln!(terminal, "{:<8} {}", line.level.name(), indented(&line.text))?;
    }
    if report.console_dropped > 0 {
        writeln!(terminal, "{:<8} {} more lines did not fit", "console", report.console_dropped)?;
    }
    match &report.outcome {
        Ok(Returned::Value(value)) => {
            writeln!(terminal, "result   {}", json_pretty(value).replace('\n', "\n         "))?;
        }
        Ok(Returned::Undefined) => writeln!(terminal, "result   undefined")?,
        Err(failure) => print_failure(failure, terminal)?,
    }
    if !report.effects.is_empty() {
        writeln!(terminal)?;
        let mut table = Table::new([28, 40, 40]).with_header(["host call", "target", "outcome"]);
        for effect in &report.effects {
            let outcome =
                format!("{}, {} bytes, {} ms", effect.outcome, effect.bytes, effect.elapsed.as_millis());
            table.row([&visible(&effect.what), &visible(&effect.target), &visible(&outcome)]);
        }
        table.print(terminal)?;
    }
    let usage = &report.usage;
    writeln!(terminal)?;
    writeln!(
        terminal,
        "used     {} statements, {} KiB of memory, {} host calls, {} bytes through them, {} µs",
        usage.statements,
        usage.memory_bytes >> 10,
        usage.host_calls,
        usage.host_bytes,
        usage.elapsed_us
    )?;
    let walls =
        report.strength.map_or_else(|| "nothing was run".to_owned(), |strength| strength.names().join(" "));
    writeln!(terminal, "walls    {walls}")?;
    Ok(())
}

fn print_failure(failure: &ToolFailure, terminal: &mut Terminal) -> Result<(), Failure> {
    writeln!(terminal, "failed   {}: {}", failure.code.code(), indented(&failure.message))?;
    if let Some(helper) = &failure.helper {
        let (kind, name, reason) = (visible(&helper.kind), visible(&helper.helper), visible(&helper.reason));
        writeln!(terminal, "         {kind} {name}: {reason}")?;
    }
    for frame in &failure.stack {
        writeln!(terminal, "         at {}", visible(frame))?;
    }
    Ok(())
}

fn indented(text: &str) -> String {
    text.lines().map(|line| visible(line).into_owned()).collect::<Vec<_>>().join("\n         ")
}

/// The machine's view of a run.
fn to_json(report: &JsReport) -> Value {
    let usage = &report.usage;
    let outcome = match &report.outcome {
        Ok(Returned::Value(value)) => json!({ "ok": true, "result": value }),
        Ok(Returned::Undefined) => json!({ "ok": true, "result": "undefined" }),
        Err(failure) => json!({
            "ok": false,
            "code": failure.code.code(),
            "message": failure.message,
            "stack": failure.stack,
            "helper": failure.helper.as_ref().map(|helper| json!({
                "kind": helper.kind, "name": helper.helper, "reason": helper.reason,
            })),
        }),
    };
    json!({
        "outcome": outcome,
        "console": report.console.iter().map(|line| json!({ "level": line.level.name(), "text": line.text })).collect::<Vec<_>>(),
        "consoleDropped": report.console_dropped,
        "hostCalls": report.effects.iter().map(effect).collect::<Vec<_>>(),
        "used": {
            "statements": usage.statements,
            "memoryBytes": usage.memory_bytes,
            "hostCalls": usage.host_calls,
            "hostBytes": usage.host_bytes,
            "elapsedUs": usage.elapsed_us,
        },
        "walls": report.strength.map(Strength::names),
    })
}

fn effect(record: &EffectRecord) -> Value {
    json!({
        "what": record.what,
        "target": record.target,
        "outcome": record.outcome,
        "bytes": record.bytes,
        "elapsedUs": u64::try_from(record.elapsed.as_micros()).unwrap_or(u64::MAX),
    })
}
