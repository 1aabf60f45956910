//! Prints what a tool reaches and what was relaxed, before the tool is tested and published.

use std::io::Write;

use toolgate::{LoadedTool, ToolOrigin, Toolgate};
use toolgate_gate::Candidate;
use toolgate_policy::{ChangeDirection, EffectivePolicy, PolicyChange, RiskLevel};
use toolgate_spec::model::{ApprovalMode, NetworkMode};

use crate::{
    Failure,
    terminal::{Terminal, visible},
};

/// Prints reach, relaxed settings and the suggested approval mode. Returns what the weaker approval means for calls, one
/// sentence for each setting; nothing if approval is as strict as in the published version.
pub fn announce(
    toolgate: &Toolgate,
    tool: &LoadedTool,
    candidate: &Candidate,
    terminal: &mut Terminal,
) -> Result<Vec<&'static str>, Failure> {
    let live = &candidate.tool;
    let name = visible(&tool.name).into_owned();
    if live.inherent_level() >= RiskLevel::L3 {
        for line in reach(live.policy()) {
            writeln!(terminal, "reaches    {name}: {}", visible(&line))?;
        }
    }
    let publisher = toolgate.publisher();
    let since = publisher.changes_since_publication(live);
    let since = since.map_err(|problem| Failure::new(format!("`{name}`: {}", visible(&problem))))?;
    let mut consequences = Vec::new();
    if let Some(changes) = since {
        for change in changes.iter().filter(|change| change.direction == ChangeDirection::Widened) {
            print_relaxed(&name, change, &format!("set by {}", change.origin), terminal)?;
            consequences.extend(change.consequence());
        }
    } else {
        for relaxed in publisher.relaxations(live) {
            print_relaxed(&name, &relaxed.change, &format!("by {}", relaxed.by), terminal)?;
        }
    }
    let is_silent =
        live.spec().approval.mode == ApprovalMode::Unstated && live.policy().approval.level_follows_class;
    if is_silent && matches!(tool.origin, ToolOrigin::File(_)) {
        let level = live.inherent_level();
        let mode = if level == RiskLevel::L0 { "DISABLED" } else { "REQUIRED" };
        writeln!(
            terminal,
            "suggests   {name}: `humanInTheLoop: {{mode: {mode}}}`; the document says nothing, and the tool is rated {}",
            level.name()
        )?;
    }
    Ok(consequences)
}

fn print_relaxed(
    name: &str,
    change: &PolicyChange,
    by: &str,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let (before, after, by) = (visible(&change.before), visible(&change.after), visible(by));
    writeln!(terminal, "relaxed    {name}: {} {before} -> {after}, {by}", change.setting)?;
    if let Some(consequence) = change.consequence() {
        writeln!(terminal, "  means    {consequence}")?;
    }
    Ok(())
}

/// Hosts and paths, for a person who reviews them.
fn reach(policy: &EffectivePolicy) -> Vec<String> {
    let mut lines = Vec::new();
    let network = &policy.network;
    match network.mode.value {
        NetworkMode::Blocked if network.proxy_on_approval.value => {
            lines.push("hosts that a person approves, call by call".to_owned());
        }
        NetworkMode::Blocked => {}
        NetworkMode::Allowlist => {
            let hosts: Vec<String> = network.hosts.values().map(ToString::to_string).collect();
            lines.push(format!("hosts {}", hosts.join(", ")));
        }
        NetworkMode::Strict => lines.push("every public host".to_owned()),
        NetworkMode::Open => lines.push("every host, private networks included".to_owned()),
    }
    let files = &policy.files;
    let may = match (files.read.value, files.write.value) {
        (true, true) => "reads and writes",
        (true, false) => "reads",
        (false, true) => "writes",
        (false, false) => return lines,
    };
    let paths: Vec<&str> = files.allowed_paths.values().map(toolgate_spec::PathPattern::text).collect();
    lines.push(format!("{may} {}", paths.join(", ")));
    lines
}
