//! Compares two versions of a tool, or of the policy around it, by reach and risk.

mod reach;
mod relaxed;
mod values;

use std::fmt;

use serde_json::Value;
use toolgate_spec::{
    ArgTemplate,
    model::{Argument, ArgumentGroup, Body, CliHandler, Handler, ToolSpec},
};

use crate::{EffectivePolicy, Risk, SettingView};
use reach::SettingReach;
pub use relaxed::{Relaxation, relaxations};
pub use values::SettingValues;

/// Everything that differs, in the order of `EffectivePolicy::settings`; then risk, then the document's own parts.
pub fn compare(before: ToolVersion<'_>, after: ToolVersion<'_>) -> Vec<PolicyChange> {
    let mut changes = policy_changes(&SettingValues::of(before.policy), after.policy);
    if before.risk.level != after.risk.level {
        let direction = if before.risk.level < after.risk.level {
            ChangeDirection::Widened
        } else {
            ChangeDirection::Narrowed
        };
        let (old, new) = (before.risk.level.name(), after.risk.level.name());
        changes.push(PolicyChange::new("risk", direction, old, new));
    }
    changes.extend(command_changes(before.spec, after.spec));
    changes.extend(document_changes(before.spec, after.spec));
    changes
}

/// The settings that differ from those of an earlier policy. Settings that the earlier policy did not have are left out.
pub fn policy_changes(before: &SettingValues, after: &EffectivePolicy) -> Vec<PolicyChange> {
    let now = SettingValues::of(after);
    let change = |new: SettingView| {
        let old = before.get(new.name)?;
        (*old != new.value).then(|| {
            let direction = direction(new.name, before, &now);
            PolicyChange {
                origin: new.origin,
                ..PolicyChange::new(new.name, direction, shown(old), shown(&new.value))
            }
        })
    };
    after.settings().into_iter().filter_map(change).collect()
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct ToolVersion<'v> {
    pub spec: &'v ToolSpec,
    pub policy: &'v EffectivePolicy,
    pub risk: &'v Risk,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PolicyChange {
    /// A name from `EffectivePolicy::settings`, or `risk`, `childProcesses`, `allowOption`, `name`, `description`, `params`, `permissions`, `code`…
    pub setting: &'static str,
    pub direction: ChangeDirection,
    pub before: String,
    pub after: String,
    /// The layer that sets the value of `after`; empty for parts of the document.
    pub origin: String,
}

impl PolicyChange {
    fn new(
        setting: &'static str,
        direction: ChangeDirection,
        before: impl Into<String>,
        after: impl Into<String>,
    ) -> Self {
        Self { setting, direction, before: before.into(), after: after.into(), origin: String::new() }
    }
}

/// Whether the tool may do more or less than before. Values without an order are `Changed`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChangeDirection {
    Widened,
    Narrowed,
    Changed,
}

impl ChangeDirection {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Widened => "widened",
            Self::Narrowed => "narrowed",
            Self::Changed => "changed",
        }
    }
}

impl fmt::Display for ChangeDirection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn direction(setting: &str, before: &SettingValues, after: &SettingValues) -> ChangeDirection {
    let (old, new) = (SettingReach::of(setting, before), SettingReach::of(setting, after));
    match (old, new) {
        (Some(old), Some(new)) => match (new.includes(&old), old.includes(&new)) {
            (true, false) => ChangeDirection::Widened,
            (false, true) => ChangeDirection::Narrowed,
            (false, false) if new.adds_an_address_to(&old) => ChangeDirection::Widened,
            (true, true) | (false, false) => ChangeDirection::Changed,
        },
        _ => ChangeDirection::Changed,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "(none)".into(),
        Value::Array(items) => {
            let texts: Vec<String> = items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect();
            texts.join(", ")
        }
        Value::Null => "(none)".into(),
        other => other.to_string(),
    }
}

/// Limits that the handler of a command sets and that are not policy settings.
fn command_changes(before: &ToolSpec, after: &ToolSpec) -> Vec<PolicyChange> {
    let (Some(old), Some(new)) = (command(before), command(after)) else { return Vec::new() };
    let mut changes = Vec::new();
    if old.child_processes != new.child_processes {
        let direction =
            if new.child_processes { ChangeDirection::Widened } else { ChangeDirection::Narrowed };
        let (was, is) = (old.child_processes.to_string(), new.child_processes.to_string());
        changes.push(PolicyChange::new("childProcesses", direction, was, is));
    }
    let (were, are) = (option_arguments(old), option_arguments(new));
    let is_added = are.iter().any(|template| !were.contains(template));
    let is_removed = were.iter().any(|template| !are.contains(template));
    if is_added || is_removed {
        let direction = if is_added { ChangeDirection::Widened } else { ChangeDirection::Narrowed };
        changes.push(PolicyChange::new(
            "allowOption",
            direction,
            were.len().to_string(),
            are.len().to_string(),
        ));
    }
    changes
}

const fn command(spec: &ToolSpec) -> Option<&CliHandler> {
    match &spec.body {
        Body::Handler(Handler::Cli(command)) => Some(command),
        _ => None,
    }
}

/// Arguments that may start with `-`.
fn option_arguments(command: &CliHandler) -> Vec<&ArgTemplate> {
    let arguments = command.args.iter().flat_map(|group| match group {
        ArgumentGroup::One(argument) => std::slice::from_ref(argument),
        ArgumentGroup::When { args, .. } | ArgumentGroup::Each { args, .. } => args.as_slice(),
    });
    let may_be_option = |argument: &&Argument| argument.may_be_option;
    arguments.filter(may_be_option).map(|argument| &argument.template).collect()
}

/// Changes of the parts that the model sees or that run. Omits the texts: they may be long or contain instructions for a model.
fn document_changes(before: &ToolSpec, after: &ToolSpec) -> Vec<PolicyChange> {
    let governance = (&before.governance, &after.governance);
    let parts = [
        ("name", before.name != after.name),
        ("toolId", before.id != after.id),
        ("description", before.description != after.description),
        ("params", before.params != after.params || governance.0.input != governance.1.input),
        ("staticVariables", before.statics != after.statics),
        ("code", before.body != after.body),
        ("humanInTheLoop", before.approval != after.approval),
        ("permissions", governance.0.permissions != governance.1.permissions),
        ("output", governance.0.output != governance.1.output),
        ("outputPolicy", governance.0.output_policy != governance.1.output_policy),
        ("piiFields", governance.0.pii_fields != governance.1.pii_fields),
        ("exposed", governance.0.exposed != governance.1.exposed),
        ("touches", governance.0.touches != governance.1.touches),
    ];
    parts
        .into_iter()
        .filter(|(_, differs)| *differs)
        .map(|(name, _)| PolicyChange::new(name, ChangeDirection::Changed, "", format!("{name} changed")))
        .collect()
}

#[cfg(test)]
mod tests;
