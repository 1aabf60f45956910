//! Tests tools: calls each one once with its test values, through all stages, in the sandbox that would serve it.

use std::{fs::Permissions, io::Write, os::unix::fs::PermissionsExt as _};

use serde_json::{Map, Value, json};
use toolgate::{Config, JournalOwner, Loaded, LoadedTool, TestRunError, TestRuns, ToolOrigin, Toolgate};
use toolgate_config::{Overrides, model::RequiredJail};
use toolgate_gate::{Candidate, Trial, WiderGrant, tightened};

use crate::{
    CommandExit, Failure,
    args::{OutputFormat, TestArgs},
    draft, gateway,
    progress::Spinner,
    report::counted,
    terminal::{Terminal, visible},
    trial,
};

pub fn run(args: &TestArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    gateway::wait(async {
        refuse_idle_flags(args)?;
        if args.paths.is_empty() {
            let mut config = args.config.load(&Overrides::default())?;
            if args.sandbox.hardened {
                config.worker.required = RequiredJail::Hardened;
            }
            let toolgate = gateway::Opened(gateway::open(config, JournalOwner::Command).await?);
            return test_all(&toolgate, args, terminal).await;
        }
        // Documents outside a workspace leave no stored results.
        let private = Permissions::from_mode(0o700);
        let scratch = tempfile::Builder::new().permissions(private).tempdir();
        let scratch = scratch
            .map_err(|error| Failure::new(format!("the scratch directory cannot be created: {error}")))?;
        let config = config_for(args, scratch.path())?;
        let toolgate = gateway::Opened(gateway::open(config, JournalOwner::Command).await?);
        test_all(&toolgate, args, terminal).await
    })
}

/// Refuses flags that would have no effect.
fn refuse_idle_flags(args: &TestArgs) -> Result<(), Failure> {
    if !args.paths.is_empty() {
        return match args.config.config {
            Some(_) => {
                Err(Failure::new("use either `--config` or paths: the configuration already names the tools"))
            }
            None => Ok(()),
        };
    }
    let policy = &args.policy;
    let given = [
        ("--workspace", "workspace", args.sandbox.workspace.is_some()),
        ("--profiles", "policy.profiles", policy.profiles.is_some()),
        ("--baseline", "policy.baseline", policy.baseline.is_some()),
        ("--overrides", "policy.overrides", policy.overrides.is_some()),
    ];
    match given.into_iter().find(|(_, _, is_given)| *is_given) {
        Some((flag, key, _)) => Err(Failure::new(format!(
            "`{flag}` needs paths; for the tools of the workspace set `{key}` in the configuration"
        ))),
        None => Ok(()),
    }
}

fn config_for(args: &TestArgs, scratch: &std::path::Path) -> Result<Config, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the current directory is unknown: {error}")))?;
    for path in &args.paths {
        if !path.exists() {
            return Err(Failure::at(path, "no such file or directory"));
        }
    }
    let defaults = Config::parse("version: 1\n", &here, &|_| None, &Overrides::default());
    let mut config =
        defaults.map_err(|_| Failure::new("the default configuration is invalid; report this"))?;
    config.workspace = here.join(args.sandbox.workspace());
    let environment = |name: &str| std::env::var(name).ok();
    config.also_guarded = toolgate_config::guarded_in(&config.workspace, &environment);
    config.also_own = toolgate_config::own_variables_in(&config.workspace, &environment);
    config.state = scratch.join("state");
    config.tools = args.paths.iter().map(|path| here.join(path)).collect();
    config.policy.baseline = args.policy.baseline.as_ref().map(|path| here.join(path));
    config.policy.profiles = args.policy.profiles.as_ref().map(|path| here.join(path));
    config.policy.overrides = args.policy.overrides.as_ref().map(|path| here.join(path));
    config.worker.required =
        if args.sandbox.hardened { RequiredJail::Hardened } else { RequiredJail::Minimum };
    Ok(config)
}

async fn test_all(
    toolgate: &Toolgate,
    args: &TestArgs,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let loaded = toolgate.loaded();
    let runs = if args.for_real { TestRuns::ForReal } else { TestRuns::Contained };
    let mut passes = Passes { format: args.format, ..Passes::default() };
    for tool in &loaded.tools {
        match &tool.candidate {
            Ok(candidate) => {
                let waiting = Spinner::to(format!("testing {}", visible(&tool.name)));
                let tested = toolgate.local_pass(candidate, &tool.origin, runs).await;
                drop(waiting);
                let trial = match tested {
                    Ok(trial) => trial,
                    Err(why @ TestRunError::NeedsConsent(_)) => {
                        passes.note_mistake(
                            tool,
                            &format!("{why}; nothing was run; add --for-real to run it"),
                            terminal,
                        )?;
                        continue;
                    }
                    Err(TestRunError::Failed(problem)) => {
                        let problem = format!("`{}`: {}", visible(&tool.name), visible(&problem));
                        return Err(Failure::new(problem));
                    }
                };
                if trial.was_unpublished {
                    toolgate
                        .note_publication("tool.unpublished", &candidate.tool, &gateway::operator())
                        .map_err(|error| Failure::new(visible(&error.to_string())))?;
                }
                let wider = passes.note(tool, candidate, &trial, terminal)?;
                if args.tighten && trial.has_passed() {
                    tighten(tool, &wider, args.format, terminal)?;
                }
            }
            Err(problem) if is_mistake(&loaded, problem) => passes.note_mistake(tool, problem, terminal)?,
            // A tool of a kind that does not run yet, or a command that is not installed.
            Err(problem) => passes.not_run.push(format!("`{}`: {problem}", tool.name)),
        }
    }
    passes.finish(&loaded, terminal)
}

fn is_mistake(loaded: &Loaded, problem: &str) -> bool {
    loaded.problems.iter().any(|known| known.what == problem)
}

/// Writes the narrower grants into the document, which must then be tested again.
fn tighten(
    tool: &LoadedTool,
    wider: &[WiderGrant],
    format: OutputFormat,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let ToolOrigin::File(file) = &tool.origin else { return Ok(()) };
    if wider.iter().all(|one| one.enough.is_null()) {
        return Ok(());
    }
    draft::change(file, &tool.name, |document| {
        let overrides = document.get("sandboxOverrides").and_then(Value::as_object).cloned();
        let tight = tightened(&overrides.unwrap_or_else(Map::new), wider);
        Some(vec![("sandboxOverrides", Some(Value::Object(tight)))])
    })?;
    if format == OutputFormat::Text {
        writeln!(terminal, "  tightened {}; test it again", visible(&file.to_string_lossy()))?;
    }
    Ok(())
}

struct Passes {
    format: OutputFormat,
    passed: usize,
    failed: usize,
    tools: Vec<Value>,
    /// Tools that this gateway cannot run, each with the reason.
    not_run: Vec<String>,
}

impl Default for Passes {
    fn default() -> Self {
        Self { format: OutputFormat::Text, passed: 0, failed: 0, tools: Vec::new(), not_run: Vec::new() }
    }
}

impl Passes {
    fn note(
        &mut self,
        tool: &LoadedTool,
        candidate: &Candidate,
        trial: &Trial,
        terminal: &mut Terminal,
    ) -> Result<Vec<WiderGrant>, Failure> {
        let word = if trial.has_passed() { "pass" } else { "FAIL" };
        if trial.has_passed() {
            self.passed += 1;
        } else {
            self.failed += 1;
        }
        self.tools.push(named(trial::to_json(candidate, trial), tool));
        if self.format == OutputFormat::Json {
            return Ok(trial::wider(candidate, trial));
        }
        writeln!(terminal, "{word}  {}", visible(&tool.name))?;
        trial::print_failure(candidate, trial, terminal)?;
        trial::print_wider(candidate, trial, terminal)
    }

    fn note_mistake(
        &mut self,
        tool: &LoadedTool,
        what: &str,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        self.failed += 1;
        if self.format == OutputFormat::Text {
            writeln!(terminal, "FAIL  {}\n  failed   {}", visible(&tool.name), visible(what))?;
        }
        self.tools.push(named(json!({ "error": what }), tool));
        Ok(())
    }

    fn finish(self, loaded: &Loaded, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
        if self.passed + self.failed == 0 {
            return Err(match loaded.problems.first() {
                Some(problem) => {
                    Failure::new(format!("{}: {}", visible(&problem.place), visible(&problem.what)))
                }
                None if self.not_run.is_empty() => Failure::new("no tool was found"),
                None => Failure::new(format!("no tool was run: {}", visible(&self.not_run.join("; ")))),
            });
        }
        match self.format {
            OutputFormat::Json => {
                let report = json!({ "passed": self.passed, "failed": self.failed, "tools": self.tools });
                terminal.data(report);
            }
            OutputFormat::Text => {
                for reason in &self.not_run {
                    writeln!(terminal, "SKIP  {}", visible(reason))?;
                }
                writeln!(terminal, "\n{} passed, {} failed", counted(self.passed, "tool"), self.failed)?;
            }
        }
        Ok(if self.failed == 0 { CommandExit::Clean } else { CommandExit::Findings })
    }
}

fn named(mut report: Value, tool: &LoadedTool) -> Value {
    if let Value::Object(members) = &mut report {
        members.insert("tool".to_owned(), json!(tool.name));
        members.insert(
            "file".to_owned(),
            match &tool.origin {
                ToolOrigin::Shipped | ToolOrigin::Program => Value::Null,
                ToolOrigin::File(file) => json!(file),
            },
        );
    }
    report
}
