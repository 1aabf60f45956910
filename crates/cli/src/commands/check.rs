//! Are these documents sound? Reads in parallel, reports in order, keeps findings only.

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
    Ending, Failure,
    args::{CheckArgs, ReportFormat},
    check_file::{Filter, Outcome, Rules, check_file},
    duplicates::Duplicates,
    load::{self, Gathered, Input, Unreadable},
    report::{Github, Json, Report, Reported, Sarif, Summary, Text},
    terminal::{Terminal, visible},
};

pub fn run(args: &CheckArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let rules = rules(args)?;
    let Gathered { inputs, unreadable } = load::gather(&args.paths);
    let mut run = Run {
        report: reporter(args, terminal),
        summary: Summary::default(),
        duplicates: Duplicates::default(),
        unmet: rules.overrides.iter().flat_map(UserOverrides::tool_names).map(str::to_owned).collect(),
        progress: progress(args, inputs.len()),
    };
    run.report.begin(terminal)?;
    for problem in &unreadable {
        run.unreadable(problem, terminal)?;
    }
    // One batch at a time: what is held in memory is bounded by the batch, and the order is the inputs'.
    for batch in inputs.chunks(BATCH) {
        let outcomes: Vec<Outcome> = batch
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

struct Run {
    report: Box<dyn Report + Sync>,
    summary: Summary,
    duplicates: Duplicates,
    /// The names in the overrides that no tool has had so far.
    unmet: BTreeSet<String>,
    progress: ProgressBar,
}

impl Run {
    fn outcome(&mut self, input: &Input, outcome: Outcome, terminal: &mut Terminal) -> Result<(), Failure> {
        match outcome {
            Outcome::NotATool => Ok(()),
            Outcome::Unreadable(problem) => self.unreadable(&problem, terminal),
            Outcome::Checked(checked) => {
                self.summary.files += 1;
                self.summary.tools += checked.tool_count;
                self.summary.errors += checked.errors;
                self.summary.warnings += checked.warnings;
                self.summary.not_shown += checked.not_shown;
                for tool in &checked.tools {
                    self.unmet.remove(&tool.name);
                }
                self.warn_of_permissions(input);
                self.duplicates.remember(input, checked.tools);
                self.print(&checked.findings, terminal)
            }
        }
    }

    /// On standard error: it is about the file and not about the document.
    fn warn_of_permissions(&self, input: &Input) {
        if let Input::File { path, .. } = input
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
        // The bar steps aside, or its line and ours would share one.
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

    fn finish(&mut self, rules: &Rules, terminal: &mut Terminal) -> Result<(), Failure> {
        self.progress.finish_and_clear();
        let duplicates = std::mem::take(&mut self.duplicates).findings(rules);
        self.summary.errors += duplicates.len();
        self.print(&duplicates, terminal)?;
        self.report.end(terminal, &self.summary)?;
        io::Write::flush(terminal)?;
        // An override that nobody heeds looks like a guard and is none.
        if let Some(name) = self.unmet.first() {
            let more = match self.unmet.len() - 1 {
                0 => String::new(),
                more => format!(" (nor {more} more of its names)"),
            };
            let name = visible(name);
            Terminal::note(&format!(
                "the override of `{name}` has no effect: no sound tool is called so{more}"
            ));
        }
        if self.summary.files == 0 && self.summary.unreadable == 0 {
            // A gate that passes because its path was wrong is no gate.
            terminal.complain("no tool document was found");
        }
        Ok(())
    }

    fn ending(&self, deny_warnings: bool) -> Ending {
        let Summary { files, errors, warnings, unreadable, .. } = self.summary;
        if unreadable > 0 || files == 0 {
            Ending::CouldNotRead
        } else if errors > 0 || (deny_warnings && warnings > 0) {
            Ending::Findings
        } else {
            Ending::Clean
        }
    }
}

fn rules(args: &CheckArgs) -> Result<Rules, Failure> {
    let filter = if args.only.is_empty() {
        Filter::AllExcept(warnings(&args.allow)?)
    } else {
        Filter::Only(warnings(&args.only)?)
    };
    Ok(Rules { filter, stdin_format: args.stdin_format.into(), ..args.policy.rules()? })
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

fn reporter(args: &CheckArgs, terminal: &Terminal) -> Box<dyn Report + Sync> {
    match args.format {
        ReportFormat::Text => Box::new(Text {
            palette: terminal.palette,
            with_summary: !args.quiet,
            columns: terminal.columns(),
        }),
        ReportFormat::Json => Box::new(Json::new(args.deny_warnings)),
        ReportFormat::Sarif => Box::new(Sarif::default()),
        ReportFormat::Github => Box::new(Github),
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

/// Files read before their findings are printed; with two cores a few hundredths of a second.
const BATCH: usize = 256;

/// Fewer files are done before a bar is drawn.
const WORTH_A_BAR: usize = 100;
