//! What does this machine enforce, and what would help?

use std::io::Write;

use serde_json::{Value, json};
use toolgate_config::Overrides;
use toolgate_sandbox::{HostState, probe};

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
                .map(|row| json!({ "name": row.name, "state": state(row.state), "why": row.why, "remedy": row.remedy }))
                .collect();
            let checks: Vec<Value> =
                gateway.iter().map(|check| json!({ "name": check.name, "problem": check.problem })).collect();
            let report = json!({ "kernel": host.kernel, "host": rows, "gateway": checks });
            writeln!(terminal, "{}", json_pretty(&report))?;
        }
        OutputFormat::Text => {
            writeln!(terminal, "kernel {}", visible(&host.kernel))?;
            for row in &host.rows {
                writeln!(terminal, "  {:<9} {:<20} {}", state(row.state), row.name, visible(&row.why))?;
                if row.state != HostState::Enforced && !row.remedy.is_empty() {
                    writeln!(terminal, "  {:<9} {:<20} {}", "", "", row.remedy)?;
                }
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
    let mut checks = vec![Check { name: "configuration", problem: None }];
    let opened = gateway::wait(async {
        let toolgate = gateway::Opened(gateway::open(config, toolgate::Writes::Command).await?);
        let problems: Vec<String> =
            toolgate.loaded().problems.iter().map(|one| format!("{}: {}", one.place, one.what)).collect();
        Ok((toolgate.gate().live_count(), problems))
    });
    match opened {
        Err(failure) => checks.push(Check { name: "gateway", problem: Some(failure.to_string()) }),
        Ok((_, problems)) => {
            checks.push(Check { name: "state and journal", problem: None });
            checks.push(Check {
                name: "documents",
                problem: (!problems.is_empty()).then(|| problems.join("; ")),
            });
        }
    }
    checks
}

const fn state(state: HostState) -> &'static str {
    match state {
        HostState::Enforced => "enforced",
        HostState::Missing => "missing",
    }
}
