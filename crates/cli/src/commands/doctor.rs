//! What does this machine enforce, and what would help?

use std::io::Write;

use serde_json::{Value, json};
use toolgate::{Problem, layer_state};
use toolgate_config::Overrides;
use toolgate_sandbox::{HostRow, probe};

use crate::{
    Ending, Failure,
    args::{DoctorArgs, OutputFormat},
    gateway,
    terminal::{Terminal, json_pretty, visible},
};

pub fn run(args: &DoctorArgs, terminal: &mut Terminal) -> Result<Ending, Failure> {
    let host = probe();
    let gateway = checks(args);
    let is_well = gateway.iter().all(|check| check.problem.is_none());
    match args.format {
        OutputFormat::Json => {
            let rows: Vec<Value> = host
                .rows
                .iter()
                .map(|row| json!({ "name": row.name, "state": layer_state(row.state), "why": row.why, "remedy": row.remedy }))
                .collect();
            let checks: Vec<Value> =
                gateway.iter().map(|check| json!({ "name": check.name, "problem": check.problem })).collect();
            let report = json!({ "kernel": host.kernel, "host": rows, "gateway": checks });
            writeln!(terminal, "{}", json_pretty(&report))?;
        }
        OutputFormat::Text => {
            writeln!(terminal, "kernel {}", visible(&host.kernel))?;
            for row in &host.rows {
                write!(terminal, "{}", lines(row))?;
            }
            writeln!(terminal, "gateway")?;
            for check in &gateway {
                let (word, what) =
                    check.problem.as_ref().map_or(("ok", String::new()), |what| ("PROBLEM", what.clone()));
                writeln!(terminal, "  {word:<9} {:<20} {}", check.name, visible(&what))?;
            }
        }
    }
    Ok(if is_well { Ending::Clean } else { Ending::Findings })
}

/// A row, and below it what helps, where anything does: also what is in force may lack something.
fn lines(row: &HostRow) -> String {
    let line = |word: &str, name: &str, what: &str| format!("  {word:<9} {name:<20} {what}\n");
    let mut text = line(layer_state(row.state), row.name, &visible(&row.why));
    if !row.remedy.is_empty() {
        text += &line("", "", row.remedy);
    }
    text
}

struct Check {
    name: &'static str,
    problem: Option<String>,
}

/// Puts a gateway together as a command would, which starts a jailed worker for each shipped tool's test run.
fn checks(args: &DoctorArgs) -> Vec<Check> {
    let config = match args.config.load(&Overrides::default()) {
        Ok(config) => config,
        Err(failure) => return vec![Check { name: "configuration", problem: Some(failure.to_string()) }],
    };
    let open: Vec<String> = config.writable_by_others().iter().map(ToString::to_string).collect();
    let mut checks = vec![
        Check { name: "configuration", problem: None },
        Check { name: "permissions", problem: (!open.is_empty()).then(|| open.join("; ")) },
    ];
    let opened = gateway::wait(async {
        let toolgate = gateway::Opened(gateway::open(config, toolgate::Writes::Command).await?);
        let loaded = toolgate.loaded();
        let told = |problems: &[Problem]| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            (!lines.is_empty()).then(|| lines.join("; "))
        };
        Ok((told(&loaded.problems), told(&loaded.unheeded), gateway::older_state(&toolgate)))
    });
    match opened {
        Err(failure) => checks.push(Check { name: "gateway", problem: Some(failure.to_string()) }),
        Ok((documents, overrides, older)) => {
            checks.push(Check { name: "state and journal", problem: older });
            checks.push(Check { name: "documents", problem: documents });
            checks.push(Check { name: "overrides", problem: overrides });
        }
    }
    checks
}

#[cfg(test)]
mod tests {
    use toolgate_sandbox::HostState;

    use super::*;

    #[track_caller]
    fn check(state: HostState, remedy: &'static str, expect: &str) {
        let row = HostRow { name: "container runtime", state, why: "podman 4.9".to_owned(), remedy };
        assert_eq!(lines(&row), expect);
    }

    #[test]
    fn every_remedy_is_printed_whatever_the_state() {
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
}
