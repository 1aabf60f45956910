//! Runs a tool once and shows everything it did.

use std::{io::Write, sync::Arc};

use serde_json::{Value, json};
use toolgate_gate::{EffectEntry, EndKind, RunFailure, RunReport};

use crate::{
    CommandExit, Failure,
    args::{OutputFormat, RunArgs},
    commands::resolve::Resolved,
    documents,
    runner::{self, Runner},
    table::Table,
    terminal::{Terminal, json_pretty, visible},
};

pub fn run(args: &RunArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let rules = args.policy.rules()?;
    let (_, _, document) = documents::find(&args.tool, args.name.as_deref(), &rules)?;
    let resolved = Resolved::new(&document, &rules, terminal)?;
    if let Some(finding) = toolgate::reserved_name(&document.check) {
        let (message, remedy) = (visible(&finding.message), visible(&finding.remedy));
        Terminal::note(&format!("this tool cannot be published: {message}; {remedy}"));
    }
    let spec = Arc::new(resolved.spec.clone());
    let arguments = if args.arguments.is_empty() {
        toolgate_gate::test_arguments(&spec).map_err(|problem| Failure::new(visible(&problem)))?
    } else {
        runner::arguments(&spec, &args.arguments)?
    };
    let arguments =
        toolgate_gate::fitted(&spec, arguments).map_err(|problem| Failure::new(visible(&problem)))?;
    let runner = Runner::new(&args.sandbox)?;
    let report = runner.run(&spec, &resolved.policy, &arguments)?;
    match args.format {
        OutputFormat::Json => terminal.data(to_json(&report)),
        OutputFormat::Text => print(&report, terminal)?,
    }
    Ok(ending(&report))
}

fn ending(report: &RunReport) -> CommandExit {
    match &report.outcome {
        Ok(_) => CommandExit::Clean,
        Err(failure) if failure.reason.end() == EndKind::Broken => CommandExit::CouldNotRead,
        Err(_) => CommandExit::Findings,
    }
}

fn print(report: &RunReport, terminal: &mut Terminal) -> Result<(), Failure> {
    for (level, text) in &report.console {
        writeln!(terminal, "{level:<8} {}", indented(text))?;
    }
    if report.console_dropped > 0 {
        writeln!(terminal, "{:<8} {} more lines did not fit", "console", report.console_dropped)?;
    }
    match &report.outcome {
        Ok(Some(value)) => {
            writeln!(terminal, "result   {}", json_pretty(value).replace('\n', "\n         "))?;
        }
        Ok(None) => writeln!(terminal, "result   undefined")?,
        Err(failure) => print_failure(failure, terminal)?,
    }
    if !report.effects.is_empty() {
        writeln!(terminal)?;
        let mut table = Table::new([28, 40, 40]).with_header(["host call", "target", "outcome"]);
        for effect in &report.effects {
            let outcome =
                format!("{}, {} bytes, {} ms", effect.outcome, effect.bytes, effect.elapsed.as_millis());
            let target = match &effect.to {
                Some(to) => format!("{} → {to}", effect.target),
                None => effect.target.clone(),
            };
            table.row([&visible(&effect.what), &visible(&target), &visible(&outcome)]);
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
    for refused in &report.refused {
        writeln!(terminal, "refused  {}", visible(refused))?;
    }
    if report.refused_dropped > 0 {
        writeln!(terminal, "refused  {} more", report.refused_dropped)?;
    }
    let layers =
        if report.layers.is_empty() { "nothing was run".to_owned() } else { report.layers.join(" ") };
    writeln!(terminal, "layers   {layers}")?;
    Ok(())
}

fn print_failure(failure: &RunFailure, terminal: &mut Terminal) -> Result<(), Failure> {
    let style = terminal.palette.of("failed");
    writeln!(terminal, "{style}failed{style:#}   {}: {}", failure.reason.code(), indented(&failure.message))?;
    if let Some(helper) = &failure.helper {
        let [kind, name, reason] = helper.each_ref().map(|word| visible(word));
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

/// A run for `--format json`.
fn to_json(report: &RunReport) -> Value {
    let usage = &report.usage;
    let outcome = match &report.outcome {
        Ok(Some(value)) => json!({ "ok": true, "result": value }),
        Ok(None) => json!({ "ok": true, "result": "undefined" }),
        Err(failure) => json!({
            "ok": false,
            "code": failure.reason.code(),
            "message": failure.message,
            "stack": failure.stack,
            "helper": failure.helper.as_deref().map(|[kind, name, reason]| json!({
                "kind": kind, "name": name, "reason": reason,
            })),
        }),
    };
    json!({
        "outcome": outcome,
        "console": report.console.iter().map(|(level, text)| json!({ "level": level, "text": text })).collect::<Vec<_>>(),
        "consoleDropped": report.console_dropped,
        "hostCalls": report.effects.iter().map(effect).collect::<Vec<_>>(),
        "used": {
            "statements": usage.statements,
            "memoryBytes": usage.memory_bytes,
            "hostCalls": usage.host_calls,
            "hostBytes": usage.host_bytes,
            "elapsedUs": usage.elapsed_us,
        },
        "refused": report.refused,
        "refusedDropped": report.refused_dropped,
        "layers": if report.layers.is_empty() { Value::Null } else { json!(report.layers) },
    })
}

fn effect(record: &EffectEntry) -> Value {
    let mut shown = json!({
        "what": record.what,
        "target": record.target,
        "outcome": record.outcome,
        "bytes": record.bytes,
        "elapsedUs": u64::try_from(record.elapsed.as_micros()).unwrap_or(u64::MAX),
    });
    if let (Some(to), Some(members)) = (&record.to, shown.as_object_mut()) {
        members.insert("to".into(), to.as_str().into());
    }
    shown
}
