//! Compares the reach and risk of two versions of a tool.

use std::io::Write;

use serde_json::{Value, json};
use toolgate_policy::{ChangeDirection, EffectivePolicy, PolicyChange, SettingOrigin, ToolVersion, compare};

use super::resolve::Resolved;
use crate::{
    CommandExit, Failure,
    args::{DiffArgs, OutputFormat, PolicyArgs},
    check_file::CheckRules,
    documents::{self, ToolDocument},
    terminal::{Terminal, visible},
};

pub fn run(args: &DiffArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let after_rules = args.policy.rules()?;
    let of_before = PolicyArgs {
        profiles: args.before_profiles.clone(),
        baseline: args.before_baseline.clone(),
        overrides: args.before_overrides.clone(),
    };
    let before_rules = of_before.or(&args.policy).rules()?;
    let before = documents::all(&args.before, &before_rules)?;
    let after = documents::all(&args.after, &after_rules)?;
    let differences = differences(&before, &after, [&before_rules, &after_rules], terminal)?;
    match args.format {
        OutputFormat::Text => print(&differences, terminal)?,
        OutputFormat::Json => print_json(&differences, terminal),
    }
    let is_wider = differences.iter().any(Difference::is_wider);
    Ok(if is_wider { CommandExit::Findings } else { CommandExit::Clean })
}

/// The difference of one tool between two versions.
struct Difference {
    name: String,
    kind: DifferenceKind,
    changes: Vec<PolicyChange>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum DifferenceKind {
    Added,
    Removed,
    Changed,
}

impl Difference {
    /// A change that is neither wider nor narrower counts as wider, because the tool reaches something new.
    fn is_wider(&self) -> bool {
        match self.kind {
            DifferenceKind::Added => true,
            DifferenceKind::Removed => false,
            DifferenceKind::Changed => self.changes.iter().any(|change| match change.direction {
                ChangeDirection::Widened => true,
                ChangeDirection::Narrowed => false,
                ChangeDirection::Changed => !WITHOUT_REACH.contains(&change.setting),
            }),
        }
    }
}

fn differences(
    before: &[ToolDocument],
    after: &[ToolDocument],
    rules: [&CheckRules; 2],
    terminal: &Terminal,
) -> Result<Vec<Difference>, Failure> {
    let [_, after_rules] = rules;
    if let ([old], [new]) = (before, after) {
        // Two files with one tool each are versions of the same tool, even if its name changed.
        return Ok(vec![changed(old, new, rules, terminal)?]);
    }
    let mut found = Vec::new();
    for new in after {
        if let Some(old) = before.iter().find(|old| old.check.name == new.check.name) {
            found.push(changed(old, new, rules, terminal)?);
        } else {
            // An added tool with errors has no policy, so its reach is unknown.
            Resolved::new(new, after_rules, terminal)?;
            found.push(whole(new, DifferenceKind::Added));
        }
    }
    let is_gone = |old: &&ToolDocument| !after.iter().any(|new| new.check.name == old.check.name);
    found.extend(before.iter().filter(is_gone).map(|old| whole(old, DifferenceKind::Removed)));
    Ok(found)
}

fn changed(
    old: &ToolDocument,
    new: &ToolDocument,
    [before_rules, after_rules]: [&CheckRules; 2],
    terminal: &Terminal,
) -> Result<Difference, Failure> {
    let before = Resolved::new(old, before_rules, terminal)?;
    let after = Resolved::new(new, after_rules, terminal)?;
    let mut changes = compare(version(&before), version(&after));
    for change in changes.iter_mut().filter(|change| is_derived(change, &after.policy)) {
        change.direction = ChangeDirection::Changed;
    }
    changes.sort_by_key(|change| match change.direction {
        ChangeDirection::Widened => 0,
        ChangeDirection::Changed => 1,
        ChangeDirection::Narrowed => 2,
    });
    Ok(Difference { name: new.check.name.clone(), kind: DifferenceKind::Changed, changes })
}

/// Whether the label is derived and not set by anyone. A tool that cannot leak data may accept untrusted input, so a
/// narrower tool would seem wider.
fn is_derived(change: &PolicyChange, after: &EffectivePolicy) -> bool {
    change.setting == DERIVED && after.labels.accepts_untrusted.origin == SettingOrigin::Builtin
}

fn version<'v>(resolved: &'v Resolved<'v>) -> ToolVersion<'v> {
    ToolVersion { spec: resolved.spec, policy: &resolved.policy, risk: &resolved.risk }
}

fn whole(document: &ToolDocument, kind: DifferenceKind) -> Difference {
    Difference { name: document.check.name.clone(), kind, changes: Vec::new() }
}

fn print(differences: &[Difference], terminal: &mut Terminal) -> Result<(), Failure> {
    let palette = terminal.palette;
    let (bold, error, good) = (palette.bold, palette.error, palette.good);
    let mut is_silent = true;
    for difference in differences {
        let name = visible(&difference.name);
        match difference.kind {
            DifferenceKind::Added => {
                writeln!(terminal, "{bold}{name}{bold:#}\n  {error}widened{error:#}   the tool is new")?;
            }
            DifferenceKind::Removed => {
                writeln!(terminal, "{bold}{name}{bold:#}\n  {good}narrowed{good:#}  the tool is gone")?;
            }
            DifferenceKind::Changed if difference.changes.is_empty() => continue,
            DifferenceKind::Changed => writeln!(terminal, "{bold}{name}{bold:#}")?,
        }
        is_silent = false;
        for change in &difference.changes {
            let style = match change.direction {
                ChangeDirection::Widened => error,
                ChangeDirection::Narrowed => good,
                ChangeDirection::Changed => palette.warning,
            };
            let direction = change.direction.name();
            write!(terminal, "  {style}{direction:<8}{style:#}  ")?;
            if WITHOUT_VALUES.contains(&change.setting) {
                writeln!(terminal, "{}", change.setting)?;
            } else {
                let (before, after) = (visible(&change.before), visible(&change.after));
                let by =
                    if change.origin.is_empty() { String::new() } else { format!("  ({})", change.origin) };
                writeln!(terminal, "{:<28} {before} -> {after}{}", change.setting, visible(&by))?;
            }
            if let Some(consequence) = change.consequence() {
                writeln!(terminal, "            {consequence}")?;
            }
        }
    }
    if is_silent {
        writeln!(terminal, "no change in reach or risk")?;
    }
    Ok(())
}

fn print_json(differences: &[Difference], terminal: &mut Terminal) {
    let tools: Vec<Value> = differences
        .iter()
        .map(|difference| {
            let changes = difference.changes.iter().map(|change| {
                json!({
                    "setting": change.setting,
                    "direction": change.direction.name(),
                    "before": change.before,
                    "after": change.after,
                    "origin": change.origin,
                    "consequence": change.consequence(),
                })
            });
            let kind = match difference.kind {
                DifferenceKind::Added => "added",
                DifferenceKind::Removed => "removed",
                DifferenceKind::Changed if difference.changes.is_empty() => "same",
                DifferenceKind::Changed => "changed",
            };
            json!({
                "name": difference.name,
                "kind": kind,
                "wider": difference.is_wider(),
                "changes": changes.collect::<Vec<_>>(),
            })
        })
        .collect();
    let wider = differences.iter().any(Difference::is_wider);
    let report = json!({ "wider": wider, "tools": tools });
    terminal.data(report);
}

/// Parts that have no reach themselves. Settings determine what they may reach; a text diff shows the rest.
const WITHOUT_REACH: [&str; 7] =
    ["name", "toolId", "description", "params", "code", "humanInTheLoop", DERIVED];

const DERIVED: &str = "labels.acceptsUntrusted";

/// Parts whose values are not printed, because `compare` omits them.
const WITHOUT_VALUES: [&str; 13] = [
    "name",
    "toolId",
    "description",
    "params",
    "staticVariables",
    "code",
    "humanInTheLoop",
    "permissions",
    "output",
    "outputPolicy",
    "piiFields",
    "exposed",
    "touches",
];
