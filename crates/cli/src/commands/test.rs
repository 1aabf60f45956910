//! Do these tools pass? Each one is run once with its test values, in the sandbox it would be served in.

use std::{io::Write, sync::Arc};

use serde_json::{Value, json};
use toolgate_spec::model::Body;

use crate::{
    Ending, Failure,
    args::{OutputFormat, TestArgs},
    commands::{
        resolve::Resolved,
        run::{ending, print_failure, to_json},
    },
    documents::{self, Document},
    report::counted,
    runner::{self, Runner},
    terminal::{Terminal, json_pretty, visible},
};

pub fn run(args: &TestArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let rules = args.policy.rules()?;
    let mut documents = Vec::new();
    for path in &args.paths {
        documents.extend(documents::all(path, &rules)?);
    }
    let runner = Runner::new(&args.sandbox)?;
    let (mut worst, mut passed, mut failed, mut results) = (Ending::Clean, 0, 0, Vec::new());
    for document in documents.iter().filter(|document| may_be_javascript(document)) {
        let resolved = match Resolved::new(document, &rules, terminal) {
            Ok(resolved) => resolved,
            Err(Failure::Findings(what)) => {
                worst = worst.max(Ending::Findings);
                failed += 1;
                results.push(json!({ "tool": document.check.name, "file": document.file, "error": what }));
                if args.format == OutputFormat::Text {
                    writeln!(terminal, "FAIL  {}", visible(&document.check.name))?;
                }
                continue;
            }
            Err(other) => return Err(other),
        };
        let spec = Arc::new(resolved.spec.clone());
        let arguments = runner::test_arguments(&spec)?;
        let Some(report) = runner.run(&spec, &resolved.policy, &arguments)? else { continue };
        let is_pass = report.outcome.is_ok();
        if is_pass { passed += 1 } else { failed += 1 }
        worst = worst.max(ending(&report));
        if args.format == OutputFormat::Text {
            writeln!(terminal, "{}  {}", if is_pass { "pass" } else { "FAIL" }, visible(&spec.name))?;
            if let Err(failure) = &report.outcome {
                print_failure(failure, terminal)?;
            }
        }
        results.push(named(to_json(&report), document));
    }
    if passed + failed == 0 {
        return Err(Failure::new("no JavaScript tool was found"));
    }
    match args.format {
        OutputFormat::Json => writeln!(terminal, "{}", json_pretty(&json!({ "passed": passed, "failed": failed, "tools": results })))?,
        OutputFormat::Text => writeln!(terminal, "\n{} passed, {failed} failed", counted(passed, "tool"))?,
    }
    Ok(worst)
}

fn may_be_javascript(document: &Document) -> bool {
    document.check.spec.as_ref().is_none_or(|spec| matches!(spec.body, Body::JavaScript { .. }))
}

fn named(mut report: Value, document: &Document) -> Value {
    if let Value::Object(members) = &mut report {
        members.insert("tool".to_owned(), json!(document.check.name));
        members.insert("file".to_owned(), json!(document.file));
    }
    report
}
