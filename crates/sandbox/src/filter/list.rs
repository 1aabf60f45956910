//! A seccomp list: an allow list kept as data, each row with its reason.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

use super::{
    Countable, CountedResource, FilterVariant, Processes, Sockets,
    calls::Calls,
    constants,
    program::{Action, ArgumentCheck, FilterRule, Otherwise},
};
use crate::command::Children;

/// A parsed list. Names of calls and constants are checked when it is compiled.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeccompList {
    pub(super) otherwise: Otherwise,
    /// Returns `ENOSYS`, as a kernel without these calls would, and is not reported: programs call these to detect
    /// support.
    #[serde(default)]
    absent: Vec<AbsentRow>,
    pub(super) allow: Vec<AllowRow>,
}

/// The process for which a list is compiled.
#[derive(Clone, Copy, Debug)]
pub(super) enum FilterTarget<'a> {
    /// `SEALED_MEMORY` in the list means any of these descriptors.
    Worker {
        sealed_memory: &'a [i32],
    },
    Command(FilterVariant),
}

/// The actions of a list for one target.
#[derive(Debug)]
pub(super) struct ListActions {
    pub(super) actions: BTreeMap<u32, Action>,
    pub(super) counted: Vec<Countable>,
}

impl SeccompList {
    /// Reads the list `name`, whose default action must be `otherwise`.
    pub(super) fn named(name: &str, text: &str, otherwise: Otherwise) -> Result<Self, ProfileError> {
        let mut lists: BTreeMap<String, Self> = serde_json::from_str(text)
            .map_err(|error| ProfileError(format!("cannot parse the profile `{name}`: {error}")))?;
        let list =
            lists.remove(name).ok_or_else(|| ProfileError(format!("the file has no profile `{name}`")))?;
        if list.otherwise != otherwise {
            return Err(ProfileError(format!("`otherwise` of the profile `{name}` is not {otherwise:?}")));
        }
        let reasons = list.allow.iter().map(|row| (&row.calls, &row.reason));
        for (calls, reason) in reasons.chain(list.absent.iter().map(|row| (&row.calls, &row.reason))) {
            if reason.trim().is_empty() || calls.is_empty() {
                return Err(ProfileError(format!("{calls:?} has no reason; write in `for` what needs it")));
            }
        }
        Ok(list)
    }

    /// The action of every known call, without the watched ones.
    pub(super) fn actions(
        &self,
        calls: &Calls,
        target: FilterTarget<'_>,
    ) -> Result<ListActions, ProfileError> {
        let mut actions: BTreeMap<u32, Action> =
            calls.numbers().map(|number| (number, Action::Deny)).collect();
        for row in &self.absent {
            if !target.includes(row.only)? {
                continue;
            }
            // A worker must be killed instead.
            if matches!(target, FilterTarget::Worker { .. }) {
                return Err(wrong(&row.calls, "is `absent`, which only commands support"));
            }
            for number in calls.find_all(&row.calls)? {
                actions.insert(number, Action::Absent);
            }
        }
        let mut counted = Vec::new();
        for row in &self.allow {
            if !target.includes(row.only)? {
                continue;
            }
            let rule = match row.rule(target)? {
                RowRule::Always => None,
                RowRule::If(rule) => Some(rule),
                RowRule::Never => continue,
            };
            for number in calls.find_all(&row.calls)? {
                match row.counted {
                    Some(what) => counted.push(row.countable(number, what, rule.as_ref(), target)?),
                    None => {
                        allow(&mut actions, number, rule.clone()).map_err(|why| wrong(&row.calls, why))?;
                    }
                }
            }
        }
        Ok(ListActions { actions, counted })
    }
}

fn allow(
    actions: &mut BTreeMap<u32, Action>,
    number: u32,
    rule: Option<FilterRule>,
) -> Result<(), &'static str> {
    let action = actions.entry(number).or_insert(Action::Deny);
    match (&mut *action, rule) {
        (Action::Deny, None) => *action = Action::Allow,
        (Action::Deny, Some(rule)) => *action = Action::AllowIf(vec![rule]),
        (Action::AllowIf(rules), Some(rule)) => rules.push(rule),
        (Action::Absent, _) => return Err("is listed both as allowed and as absent"),
        (Action::Allow, _) | (Action::AllowIf(_), None) => {
            return Err("is listed both with and without `when`");
        }
    }
    Ok(())
}

/// Why an allow list is invalid.
#[derive(Debug, Eq, PartialEq)]
pub struct ProfileError(String);

impl ProfileError {
    pub(super) fn new(why: String) -> Self {
        Self(why)
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seccomp: {}", self.0)
    }
}

impl std::error::Error for ProfileError {}

fn wrong(calls: &[String], why: &str) -> ProfileError {
    ProfileError(format!("{calls:?} {why}"))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AbsentRow {
    calls: Vec<String>,
    #[serde(rename = "for")]
    reason: String,
    only: Option<Only>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowRow {
    pub(super) calls: Vec<String>,
    #[serde(rename = "for")]
    reason: String,
    only: Option<Only>,
    /// Allowed a limited number of times: the filter notifies, and the supervisor counts.
    counted: Option<CountedResource>,
    #[serde(default)]
    pub(super) when: BTreeMap<String, AllowCondition>,
}

/// A row that applies to some commands only.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Only {
    Proxied,
    /// The command has its own mount and PID namespaces.
    OwnNamespaces,
    /// The command shares the host's files and processes, and only Landlock isolates it.
    HostProcesses,
    /// The command may start other processes.
    Children,
    /// The command may not start other processes.
    NoChildren,
}

/// Condition on one argument. Compares the low 32 bits only: every listed argument is an `int` or a word of flags
/// whose upper half the kernel ignores or rejects.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum AllowCondition {
    Number(u32),
    Constant(String),
    Any(AnyOf),
    Without(Without),
    Flags(MaskedFlags),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AnyOf {
    any: Vec<String>,
}

/// None of these bits; other bits are allowed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Without {
    without: Vec<String>,
}

/// All of `must`, any of `may`, and no other bit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MaskedFlags {
    #[serde(default)]
    pub(super) must: Vec<String>,
    #[serde(default)]
    pub(super) may: Vec<String>,
}

/// The condition of a row for one target.
enum RowRule {
    Always,
    If(FilterRule),
    /// The row requires sealed memory, and there is none.
    Never,
}

impl AllowRow {
    fn rule(&self, target: FilterTarget<'_>) -> Result<RowRule, ProfileError> {
        let mut checks = Vec::new();
        for (argument, condition) in &self.when {
            match condition.check(argument, target)? {
                ArgumentCheck::Any { values, .. } if values.is_empty() => return Ok(RowRule::Never),
                check => checks.push(check),
            }
        }
        Ok(if checks.is_empty() { RowRule::Always } else { RowRule::If(FilterRule { checks }) })
    }

    fn countable(
        &self,
        number: u32,
        what: CountedResource,
        rule: Option<&FilterRule>,
        target: FilterTarget<'_>,
    ) -> Result<Countable, ProfileError> {
        match (rule, target) {
            (_, FilterTarget::Worker { .. }) => {
                Err(wrong(&self.calls, "has `counted`, which only commands support"))
            }
            (None, _) => Err(wrong(&self.calls, "has `counted` but no `when`")),
            (Some(rule), FilterTarget::Command(_)) => Ok(Countable { number, rule: rule.clone(), what }),
        }
    }
}

impl FilterTarget<'_> {
    fn includes(self, only: Option<Only>) -> Result<bool, ProfileError> {
        let Some(only) = only else { return Ok(true) };
        let Self::Command(variant) = self else {
            return Err(ProfileError("only lists for commands support `only`".to_owned()));
        };
        Ok(match only {
            Only::Proxied => variant.sockets == Sockets::Internet,
            Only::OwnNamespaces => variant.processes == Processes::Namespace,
            Only::HostProcesses => variant.processes == Processes::Group,
            Only::Children => variant.children == Children::Allowed,
            Only::NoChildren => variant.children == Children::Denied,
        })
    }
}

impl AllowCondition {
    fn check(&self, argument: &str, target: FilterTarget<'_>) -> Result<ArgumentCheck, ProfileError> {
        let Some(Ok(argument @ 0..=5)) = argument.strip_prefix("arg").map(str::parse) else {
            return Err(ProfileError(format!("`{argument}` is not one of `arg0` to `arg5`")));
        };
        Ok(match self {
            Self::Number(number) => ArgumentCheck::Any { argument, values: vec![*number] },
            Self::Constant(name) => ArgumentCheck::Any { argument, values: values(name, target)? },
            Self::Any(AnyOf { any }) => ArgumentCheck::Any { argument, values: constants::values(any)? },
            Self::Without(Without { without }) => {
                ArgumentCheck::Masked { argument, mask: constants::union(without)?, value: 0 }
            }
            Self::Flags(MaskedFlags { must, may }) => {
                let (must, may) = (constants::union(must)?, constants::union(may)?);
                ArgumentCheck::Masked { argument, mask: !(may & !must), value: must }
            }
        })
    }
}

/// The values of a constant. Only [`SEALED_MEMORY`] has several, or none.
fn values(name: &str, target: FilterTarget<'_>) -> Result<Vec<u32>, ProfileError> {
    match target {
        FilterTarget::Worker { sealed_memory } if name == SEALED_MEMORY => {
            if sealed_memory.len() > constants::MAX_VALUES {
                return Err(ProfileError(format!("more than {} memory files", constants::MAX_VALUES)));
            }
            Ok(sealed_memory.iter().map(|descriptor| descriptor.cast_unsigned()).collect())
        }
        _ => constants::values(&[name.to_owned()]),
    }
}

/// In a list for workers: one of the memory files sealed against changes, such as the engine's image.
const SEALED_MEMORY: &str = "SEALED_MEMORY";
