//! Reports the isolation that this machine enforces, and remedies for missing parts.

use std::io::Write;

use anstyle::Style;
use serde_json::{Value, json};
use toolgate::{Config, LoadProblem, layer_state};
use toolgate_config::Overrides;
use toolgate_sandbox::{HostRow, HostState, HostStrength, probe};
use toolgate_store::KeyOrigin;

use crate::{
    CommandExit, Failure,
    args::{DoctorArgs, OutputFormat},
    gateway, passphrase,
    report::counted,
    terminal::{Terminal, visible},
};

pub fn run(args: &DoctorArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let host = probe();
    let gateway = checks(args);
    let verdict = DoctorVerdict::of(&host.rows, &gateway);
    match args.format {
        OutputFormat::Json => {
            let rows: Vec<Value> = host
                .rows
                .iter()
                .map(|row| json!({ "name": row.name, "state": layer_state(row.state), "why": row.why, "remedy": row.remedy }))
                .collect();
            let checks: Vec<Value> = gateway
                .iter()
                .map(|check| json!({ "name": check.name, "problem": check.problem, "note": check.note }))
                .collect();
            let report = json!({
                "kernel": host.kernel, "host": rows, "gateway": checks, "summary": verdict.sentence(),
                "problems": verdict.problems, "notes": verdict.notes,
            });
            terminal.data(report);
        }
        OutputFormat::Text => print(&host, &gateway, &verdict, terminal)?,
    }
    Ok(if verdict.problems == 0 { CommandExit::Clean } else { CommandExit::Findings })
}

fn print(
    host: &HostStrength,
    gateway: &[GatewayCheck],
    verdict: &DoctorVerdict,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let palette = terminal.palette;
    writeln!(terminal, "kernel {}", visible(&host.kernel))?;
    for row in &host.rows {
        let style = match (row.state, is_needed(row)) {
            (HostState::Enforced, _) => palette.good,
            (HostState::Missing, true) => palette.error,
            _ => palette.warning,
        };
        write!(terminal, "{}", lines(row, style))?;
    }
    writeln!(terminal, "gateway")?;
    for check in gateway {
        let (word, style, what) = match (&check.problem, &check.note) {
            (Some(problem), _) => ("PROBLEM", palette.error, problem.as_str()),
            (None, Some(note)) => ("note", palette.warning, note.as_str()),
            (None, None) => ("ok", palette.good, ""),
        };
        let line = format!("  {style}{word:<9}{style:#} {:<20} {}", check.name, visible(what));
        writeln!(terminal, "{}", line.trim_end())?;
    }
    let style = if verdict.problems == 0 { palette.good } else { palette.error };
    writeln!(terminal, "\n{style}{}{style:#}", verdict.sentence())?;
    Ok(())
}

/// Problems decide the exit code; notes do not.
struct DoctorVerdict {
    problems: usize,
    notes: usize,
}

impl DoctorVerdict {
    fn of(rows: &[HostRow], gateway: &[GatewayCheck]) -> Self {
        let weaker = || rows.iter().filter(|row| row.state != HostState::Enforced);
        let lacking = weaker().filter(|row| is_needed(row) && row.state == HostState::Missing).count();
        let problems = gateway.iter().filter(|check| check.problem.is_some()).count();
        let notes = gateway.iter().filter(|check| check.problem.is_none() && check.note.is_some()).count();
        Self { problems: problems + lacking, notes: notes + weaker().count() - lacking }
    }

    fn sentence(&self) -> String {
        let head = match self.problems {
            0 => "everything needed works".to_owned(),
            count => counted(count, "problem"),
        };
        match self.notes {
            0 => head,
            count => format!("{head}; {} about optional parts", counted(count, "note")),
        }
    }
}

/// Without these no tool runs: the system-call filter, path confinement, and the jail for commands.
fn is_needed(row: &HostRow) -> bool {
    matches!(row.name, "seccomp" | "openat2" | "jail for commands")
}

/// A row and its remedy. An enforced layer may have a remedy, too.
fn lines(row: &HostRow, style: Style) -> String {
    let (word, why) = (layer_state(row.state), visible(&row.why));
    let remedy = if row.remedy.is_empty() { String::new() } else { format!("{:33}{}\n", "", row.remedy) };
    format!("  {style}{word:<9}{style:#} {:<20} {why}\n{remedy}", row.name)
}

#[derive(Default)]
struct GatewayCheck {
    name: &'static str,
    /// Keeps the gateway from working.
    problem: Option<String>,
    /// Does not change the exit code.
    note: Option<String>,
}

/// Opens a gateway as a command does. That test-runs shipped tools in sandboxed workers.
fn checks(args: &DoctorArgs) -> Vec<GatewayCheck> {
    if args.config.names_none() {
        let note = Some("no configuration found; run `toolgate init` to create one".to_owned());
        return vec![GatewayCheck { name: "configuration", note, ..GatewayCheck::default() }];
    }
    let config = match args.config.load(&Overrides::default()) {
        Ok(config) => config,
        Err(failure) => {
            let problem = Some(failure.to_string());
            return vec![GatewayCheck { name: "configuration", problem, ..GatewayCheck::default() }];
        }
    };
    let open: Vec<String> = config.writable_by_others().iter().map(ToString::to_string).collect();
    let check = |name, problem| GatewayCheck { name, problem, ..GatewayCheck::default() };
    let mut checks =
        vec![check("configuration", None), check("permissions", (!open.is_empty()).then(|| open.join("; ")))];
    checks.push(secret_store(&config));
    let opened = gateway::wait(async {
        let toolgate = gateway::Opened(gateway::open(config, toolgate::JournalOwner::Command).await?);
        let loaded = toolgate.loaded();
        let joined = |problems: &[LoadProblem]| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            (!lines.is_empty()).then(|| lines.join("; "))
        };
        Ok((joined(&loaded.problems), joined(&loaded.unused_settings), gateway::older_state(&toolgate)))
    });
    match opened {
        Err(failure) => checks.push(check("gateway", Some(failure.to_string()))),
        Ok((documents, overrides, older)) => {
            checks.push(check("state and journal", older));
            checks.push(check("documents", documents));
            checks.push(GatewayCheck { name: "overrides", note: overrides, ..GatewayCheck::default() });
        }
    }
    checks
}

/// The place of the key. A key file is the weakest one.
fn secret_store(config: &Config) -> GatewayCheck {
    let name = "secret store";
    match passphrase::vault(config).key_origin() {
        Err(error) => GatewayCheck { name, problem: Some(error.to_string()), note: None },
        Ok(Some(origin @ KeyOrigin::File(_))) => {
            let note = format!("its key is in {origin}; any program that runs as you can read it");
            GatewayCheck { name, problem: None, note: Some(note) }
        }
        Ok(Some(_) | None) => GatewayCheck { name, ..GatewayCheck::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(state: HostState, remedy: &'static str, expect: &str) {
        let row = HostRow { name: "container runtime", state, why: "podman 4.9".to_owned(), remedy };
        assert_eq!(lines(&row, Style::new()), expect);
    }

    #[test]
    fn remedy_is_printed_in_every_state() {
        let remedy = format!("{}use another\n", " ".repeat(33));
        for (state, word) in [
            (HostState::Enforced, "enforced "),
            (HostState::Partly, "partly   "),
            (HostState::Missing, "missing  "),
        ] {
            let line = format!("  {word} container runtime    podman 4.9\n");
            check(state, "", &line);
            check(state, "use another", &format!("{line}{remedy}"));
        }
    }

    #[test]
    fn missing_optional_parts_are_notes() {
        let row = |name, state| HostRow { name, state, why: String::new(), remedy: "" };
        let verdict = |rows: &[HostRow], checks: &[GatewayCheck]| {
            let verdict = DoctorVerdict::of(rows, checks);
            (verdict.problems, verdict.sentence())
        };
        let fine = [row("seccomp", HostState::Enforced), row("jail for commands", HostState::Partly)];
        assert_eq!(
            verdict(&fine[..1], &[GatewayCheck::default()]),
            (0, "everything needed works".to_owned())
        );
        let optional = [row("seccomp", HostState::Enforced), row("cgroups v2", HostState::Missing)];
        let note = GatewayCheck { note: Some("no configuration".to_owned()), ..GatewayCheck::default() };
        let expect = "everything needed works; 2 notes about optional parts";
        assert_eq!(verdict(&optional, &[note]), (0, expect.to_owned()));
        assert_eq!(verdict(&fine, &[]).0, 0);
        let lacking = [row("jail for commands", HostState::Missing)];
        assert_eq!(verdict(&lacking, &[]), (1, "1 problem".to_owned()));
        let broken = GatewayCheck { problem: Some("x".to_owned()), ..GatewayCheck::default() };
        assert_eq!(verdict(&fine[..1], &[broken]).0, 1);
    }
}
