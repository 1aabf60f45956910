//! Checks documents in parallel and reports findings in order.

use std::{
    collections::BTreeSet,
    io::{self, IsTerminal},
};

use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use toolgate_config::Writable;
use toolgate_policy::UserOverrides;
use toolgate_spec::{Code, Severity};

use super::explain;
use crate::{
    CommandExit, Failure,
    args::{CheckArgs, ReportFormat},
    check_file::{CheckRules, FileOutcome, WarningFilter, check_file},
    duplicates::Duplicates,
    load::{self, DocumentSource, GatheredFiles, Unreadable},
    report::{GithubReport, JsonReport, ReportFormatter, Reported, SarifReport, Summary, TextReport},
    terminal::{Terminal, visible},
};

pub fn run(args: &CheckArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let rules = rules(args)?;
    let GatheredFiles { inputs, unreadable } = load::gather(&args.paths);
    let mut run = CheckRun {
        report: reporter(args, terminal),
        summary: Summary::default(),
        duplicates: Duplicates::default(),
        unmatched: rules.overrides.iter().flat_map(UserOverrides::tool_names).map(str::to_owned).collect(),
        progress: progress(args, inputs.len()),
    };
    run.report.begin(terminal)?;
    for problem in &unreadable {
        run.unreadable(problem, terminal)?;
    }
    // Batches bound the memory and keep the order of the inputs.
    for batch in inputs.chunks(BATCH) {
        let outcomes: Vec<FileOutcome> = batch
            .par_iter()
            .map(|input| {
                let outcome = check_file(input, &rules);
                run.progress.inc(1);
                outcome
            })
            .collect();
        for (input, outcome) in batch.iter().zip(outcomes) {
            run.outcome(input, outcome, terminal)?;
        }
    }
    run.finish(&rules, terminal)?;
    Ok(run.ending(args.deny_warnings))
}

struct CheckRun {
    report: Box<dyn ReportFormatter + Sync>,
    summary: Summary,
    duplicates: Duplicates,
    /// Names in the overrides that match no tool so far.
    unmatched: BTreeSet<String>,
    progress: ProgressBar,
}

impl CheckRun {
    fn outcome(
        &mut self,
        input: &DocumentSource,
        outcome: FileOutcome,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        match outcome {
            FileOutcome::NotATool => Ok(()),
            FileOutcome::Unreadable(problem) => self.unreadable(&problem, terminal),
            FileOutcome::Checked(checked) => {
                self.summary.files += 1;
                self.summary.tools += checked.tool_count;
                self.summary.errors += checked.errors;
                self.summary.warnings += checked.warnings;
                self.summary.not_shown += checked.not_shown;
                for tool in &checked.tools {
                    self.unmatched.remove(&tool.name);
                }
                self.warn_of_permissions(input);
                self.duplicates.remember(input, checked.tools);
                self.print(&checked.findings, terminal)
            }
        }
    }

    /// Printed on standard error, because it is about the file and not the document.
    fn warn_of_permissions(&self, input: &DocumentSource) {
        if let DocumentSource::File { path, .. } = input
            && let Some(open) = Writable::check(path)
        {
            self.progress.suspend(|| Terminal::note(&format!("warning: {}", visible(&open.to_string()))));
        }
    }

    fn print(&mut self, findings: &[Reported], terminal: &mut Terminal) -> Result<(), Failure> {
        if findings.is_empty() {
            return Ok(());
        }
        let report = &mut self.report;
        // Hide the progress bar while printing.
        self.progress.suspend(|| {
            for reported in findings {
                report.finding(terminal, reported)?;
            }
            io::Write::flush(terminal)
        })?;
        Ok(())
    }

    fn unreadable(&mut self, problem: &Unreadable, terminal: &mut Terminal) -> Result<(), Failure> {
        self.summary.unreadable += 1;
        self.report.unreadable(terminal, problem)?;
        io::Write::flush(terminal)?;
        self.progress.suspend(|| terminal.complain(&visible(&problem.problem)));
        Ok(())
    }

    fn finish(&mut self, rules: &CheckRules, terminal: &mut Terminal) -> Result<(), Failure> {
        self.progress.finish_and_clear();
        let duplicates = std::mem::take(&mut self.duplicates).findings(rules);
        self.summary.errors += duplicates.len();
        self.print(&duplicates, terminal)?;
        self.report.end(terminal, &self.summary)?;
        io::Write::flush(terminal)?;
        // An override for an unknown tool protects nothing.
        if let Some(name) = self.unmatched.first() {
            let more = match self.unmatched.len() - 1 {
                0 => String::new(),
                more => format!("; the same is true for {more} more"),
            };
            let name = visible(name);
            Terminal::note(&format!(
                "the override for `{name}` has no effect: no valid tool has this name{more}"
            ));
        }
        if self.summary.files == 0 && self.summary.unreadable == 0 {
            // Fail, because a wrong path in CI would otherwise pass.
            terminal.complain("no tool document found");
        }
        Ok(())
    }

    fn ending(&self, deny_warnings: bool) -> CommandExit {
        let Summary { files, errors, warnings, unreadable, .. } = self.summary;
        if unreadable > 0 || files == 0 {
            CommandExit::CouldNotRead
        } else if errors > 0 || (deny_warnings && warnings > 0) {
            CommandExit::Findings
        } else {
            CommandExit::Clean
        }
    }
}

fn rules(args: &CheckArgs) -> Result<CheckRules, Failure> {
    let filter = if args.only.is_empty() {
        WarningFilter::AllExcept(warnings(&args.allow)?)
    } else {
        WarningFilter::Only(warnings(&args.only)?)
    };
    Ok(CheckRules { filter, stdin_format: args.stdin_format.into(), ..args.policy.rules()? })
}

fn warnings(names: &[String]) -> Result<Vec<Code>, Failure> {
    names
        .iter()
        .map(|name| match explain::code(name)? {
            code if code.severity() == Severity::Warning => Ok(code),
            code => {
                Err(Failure::new(format!("`{}` is an error; only warnings can be filtered", code.name())))
            }
        })
        .collect()
}

fn reporter(args: &CheckArgs, terminal: &Terminal) -> Box<dyn ReportFormatter + Sync> {
    match args.format {
        ReportFormat::Text => Box::new(TextReport {
            palette: terminal.palette,
            with_summary: !args.quiet,
            columns: terminal.columns(),
        }),
        ReportFormat::Json => Box::new(JsonReport::new(args.deny_warnings)),
        ReportFormat::Sarif => Box::new(SarifReport::default()),
        ReportFormat::Github => Box::new(GithubReport),
    }
}

fn progress(args: &CheckArgs, files: usize) -> ProgressBar {
    if args.quiet || files < WORTH_A_BAR || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(files as u64);
    match ProgressStyle::with_template("checking {bar:40} {human_pos}/{human_len} files") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// Files that are read before their findings are printed.
const BATCH: usize = 256;

/// Fewer files need no progress bar.
const WORTH_A_BAR: usize = 100;
