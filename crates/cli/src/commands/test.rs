//! Do these tools pass? Each one is run once with its test values, in the sandbox it would be served in.

use std::{io::Write, sync::Arc};

use serde_json::{Value, json};
use toolgate_handlers::JsReport;
use toolgate_spec::model::Body;

use crate::{
    Ending, Failure,
    args::{OutputFormat, TestArgs},
    check_file::Rules,
    commands::{
        resolve::Resolved,
        run::{print_failure, to_json},
    },
    documents::{self, Document},
    report::counted,
    runner::{self, Runner},
    terminal::{Terminal, json_pretty, visible},
};

pub fn run(args: &TestArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let rules = args.policy.rules()?;
    let files = documents::gather(&args.paths, &rules)?;
    let runner = Runner::new(&args.sandbox)?;
    let mut passes = Passes::default();
    for document in files.iter().flat_map(|file| &file.tools).filter(|document| may_be_javascript(document)) {
        let passed = try_one(document, &rules, &runner, terminal);
        match passed {
            Ok(None) => {}
            Ok(Some(report)) => passes.note(document, &report, args.format, terminal)?,
            // What is wrong with one tool is no reason to leave the others untried.
            Err(failure @ (Failure::Findings(_) | Failure::Told(_))) => {
                passes.note_failure(document, &failure.to_string(), args.format, terminal)?;
            }
            Err(output) => return Err(output),
        }
    }
    passes.finish(args.format, terminal)
}

fn try_one(
    document: &Document,
    rules: &Rules,
    runner: &Runner,
    terminal: &Terminal,
) -> Result<Option<JsReport>, Failure> {
    let resolved = Resolved::new(document, rules, terminal)?;
    let spec = Arc::new(resolved.spec.clone());
    runner.run(&spec, &resolved.policy, &runner::test_arguments(&spec)?)
}

#[derive(Default)]
struct Passes {
    passed: usize,
    failed: usize,
    tools: Vec<Value>,
}

impl Passes {
    fn note(
        &mut self,
        document: &Document,
        report: &JsReport,
        format: OutputFormat,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        let is_pass = report.outcome.is_ok();
        if is_pass {
            self.passed += 1
        } else {
            self.failed += 1
        }
        if format == OutputFormat::Text {
            writeln!(
                terminal,
                "{}  {}",
                if is_pass { "pass" } else { "FAIL" },
                visible(&document.check.name)
            )?;
            if let Err(failure) = &report.outcome {
                print_failure(failure, terminal)?;
            }
        }
        self.tools.push(named(to_json(report), document));
        Ok(())
    }

    fn note_failure(
        &mut self,
        document: &Document,
        what: &str,
        format: OutputFormat,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        self.failed += 1;
        if format == OutputFormat::Text {
            writeln!(terminal, "FAIL  {}\nfailed   {what}", visible(&document.check.name))?;
        }
        self.tools.push(named(json!({ "error": what }), document));
        Ok(())
    }

    fn finish(self, format: OutputFormat, terminal: &mut Terminal) -> Result<Ending, Failure> {
        if self.passed + self.failed == 0 {
            return Err(Failure::new("no JavaScript tool was found"));
        }
        match format {
            OutputFormat::Json => {
                let report = json!({ "passed": self.passed, "failed": self.failed, "tools": self.tools });
                writeln!(terminal, "{}", json_pretty(&report))?;
            }
            OutputFormat::Text => {
                writeln!(terminal, "\n{} passed, {} failed", counted(self.passed, "tool"), self.failed)?;
            }
        }
        Ok(if self.failed == 0 { Ending::Clean } else { Ending::Findings })
    }
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
