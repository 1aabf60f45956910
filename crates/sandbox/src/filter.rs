//! System call filter of a command: an allow list kept as data, each row with its reason.
//!
//! The worker's list kills. A command runs third-party programs, which must get an error and survive, and the
//! manifest's author must learn what was refused. That needs the action `USER_NOTIF` and rows that exclude flags,
//! which the filter library does not support. Its programs also compare one number after the other, which costs
//! time at every start of a command. Hence our own generator in `program.rs`, with four kinds of instruction.

mod calls;
mod constants;
mod program;

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;

use crate::{command::Children, profile::ProfileError, sys::filter::Instruction};
pub(crate) use calls::Calls;
use program::{Action, ArgumentCheck, FilterRule};

/// A validated list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandProfile {
    #[expect(dead_code, reason = "has one value; it is there for the reader of the file")]
    otherwise: FilterDefault,
    /// Returns `ENOSYS`, as a kernel without these calls would, and is not reported: programs call these to detect
    /// support.
    absent: Vec<AbsentRow>,
    allow: Vec<AllowRow>,
}

/// A system call that the supervisor inspects before the kernel checks it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedCall {
    pub(crate) call: &'static str,
    pub(crate) unless: Option<SkipCondition>,
}

/// The supervisor is not notified if this argument has this value, because there is nothing to inspect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkipCondition {
    pub(crate) argument: u32,
    pub(crate) value: u32,
}

/// Parameters of a filter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct FilterVariant {
    pub(crate) sockets: Sockets,
    pub(crate) processes: Processes,
    pub(crate) paths: Paths,
    pub(crate) children: Children,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sockets {
    None,
    Internet,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Processes {
    /// Everything is killed with the first process of the namespace.
    Namespace,
    /// Everything is killed with the process group, so no process may leave it.
    Group,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Paths {
    /// The supervisor inspects every path before the kernel checks it.
    Watched,
    Unwatched,
}

impl CommandProfile {
    /// The shipped list.
    pub(crate) fn shipped() -> Result<Self, ProfileError> {
        Self::named("command", COMMAND)
    }

    fn named(name: &str, text: &str) -> Result<Self, ProfileError> {
        let mut profiles: BTreeMap<String, Self> = serde_json::from_str(text)
            .map_err(|error| ProfileError::new(format!("cannot parse the profile `{name}`: {error}")))?;
        let profile = profiles
            .remove(name)
            .ok_or_else(|| ProfileError::new(format!("the file has no profile `{name}`")))?;
        let reasons = profile.allow.iter().map(|row| (&row.calls, &row.reason));
        let reasons = reasons.chain(profile.absent.iter().map(|row| (&row.calls, &row.reason)));
        for (calls, reason) in reasons {
            if reason.trim().is_empty() || calls.is_empty() {
                return Err(ProfileError::new(format!(
                    "{calls:?} has no reason; write in `for` what needs it"
                )));
            }
        }
        Ok(profile)
    }

    /// Compiles the filter for this machine. Allowed calls in `looks` also notify the supervisor, which then lets
    /// them continue.
    pub(crate) fn compile(
        &self,
        calls: &Calls,
        variant: FilterVariant,
        looks: &[WatchedCall],
    ) -> Result<CommandFilter, ProfileError> {
        let mut actions: BTreeMap<u32, Action> =
            calls.numbers().map(|number| (number, Action::Report)).collect();
        for row in self.absent.iter().filter(|row| applies_to(row.only, variant)) {
            for number in calls.find_all(&row.calls)? {
                actions.insert(number, Action::Absent);
            }
        }
        let mut counted = Vec::new();
        for row in self.allow.iter().filter(|row| applies_to(row.only, variant)) {
            let rule = row.rule()?;
            for number in calls.find_all(&row.calls)? {
                if let Some(what) = row.counted {
                    let rule = rule.clone().ok_or_else(|| row.wrong("has `counted` but no `when`"))?;
                    counted.push(Countable { number, rule, what });
                    continue;
                }
                allow(&mut actions, number, rule.clone()).map_err(|why| row.wrong(why))?;
            }
        }
        let mut asked = BTreeMap::new();
        if variant.paths == Paths::Watched {
            for (look, number) in looks.iter().filter_map(|look| Some((look, calls.number(look.call)?))) {
                // The supervisor must not let a forbidden call through.
                let conditions = match actions.get(&number) {
                    Some(Action::Allow) => Conditions::None,
                    Some(Action::AllowIf(rules)) => Conditions::OneOf(rules.clone()),
                    Some(Action::Report | Action::Absent) | None => continue,
                };
                let action = match (look.unless, &conditions) {
                    (Some(SkipCondition { argument, value }), Conditions::None) => {
                        let checks = vec![ArgumentCheck::Any { argument, values: vec![value] }];
                        Action::AllowIf(vec![FilterRule { checks }])
                    }
                    _ => Action::Report,
                };
                asked.insert(number, conditions);
                actions.insert(number, action);
            }
        }
        Ok(CommandFilter {
            program: program::generate(&actions, calls.machine()),
            watched: Arc::new(asked),
            counted: counted.into(),
        })
    }
}

/// The program for the kernel, and the meaning of its notifications.
#[derive(Debug)]
pub(crate) struct CommandFilter {
    pub(crate) program: Vec<Instruction>,
    /// Calls that are allowed, and asked about only to be seen. Every other question is a refusal.
    pub(crate) watched: Arc<BTreeMap<u32, Conditions>>,
    /// Calls that are allowed a number of times.
    pub(crate) counted: Arc<[Countable]>,
}

/// Conditions under which a watched call may continue.
#[derive(Clone, Debug)]
pub(crate) enum Conditions {
    None,
    OneOf(Vec<FilterRule>),
}

impl Conditions {
    /// Checks register values only, which no thread can change while the call waits.
    pub(crate) fn hold(&self, arguments: [u64; 6]) -> bool {
        match self {
            Self::None => true,
            Self::OneOf(rules) => rules.iter().any(|rule| rule.holds(arguments)),
        }
    }
}

/// A call with matching arguments takes one unit of a counted resource.
#[derive(Clone, Debug)]
pub(crate) struct Countable {
    number: u32,
    rule: FilterRule,
    what: CountedResource,
}

impl Countable {
    /// The resource that this call takes. Checks register values only, which no thread can change while the call
    /// waits.
    pub(crate) fn of(&self, number: u32, arguments: [u64; 6]) -> Option<CountedResource> {
        (self.number == number && self.rule.holds(arguments)).then_some(self.what)
    }
}

/// Resources limited per command that the kernel does not limit, or only limits for all commands together.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CountedResource {
    /// Record locks on files.
    Locks,
    /// Entries in `epoll` sets.
    Waits,
}

fn allow(
    actions: &mut BTreeMap<u32, Action>,
    number: u32,
    rule: Option<FilterRule>,
) -> Result<(), &'static str> {
    let action = actions.entry(number).or_insert(Action::Report);
    match (&mut *action, rule) {
        (Action::Report, None) => *action = Action::Allow,
        (Action::Report, Some(rule)) => *action = Action::AllowIf(vec![rule]),
        (Action::AllowIf(rules), Some(rule)) => rules.push(rule),
        (Action::Absent, _) => return Err("is listed both as allowed and as absent"),
        (Action::Allow, _) | (Action::AllowIf(_), None) => {
            return Err("is listed both with and without `when`");
        }
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FilterDefault {
    Report,
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
struct AllowRow {
    calls: Vec<String>,
    #[serde(rename = "for")]
    reason: String,
    only: Option<Only>,
    /// Allowed a limited number of times: the filter notifies, and the supervisor counts.
    counted: Option<CountedResource>,
    #[serde(default)]
    when: BTreeMap<String, AllowCondition>,
}

/// A row that applies to some jails only.
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
enum AllowCondition {
    Any(AnyOf),
    Without(Without),
    Flags(MaskedFlags),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnyOf {
    any: Vec<String>,
}

/// None of these bits; other bits are allowed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Without {
    without: Vec<String>,
}

/// All of `must`, any of `may`, and no other bit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MaskedFlags {
    #[serde(default)]
    must: Vec<String>,
    #[serde(default)]
    may: Vec<String>,
}

impl AllowRow {
    fn rule(&self) -> Result<Option<FilterRule>, ProfileError> {
        let checks: Vec<ArgumentCheck> = self
            .when
            .iter()
            .map(|(argument, condition)| condition.check(argument))
            .collect::<Result<_, _>>()?;
        Ok((!checks.is_empty()).then_some(FilterRule { checks }))
    }

    fn wrong(&self, why: &str) -> ProfileError {
        ProfileError::new(format!("{:?} {why}", self.calls))
    }
}

fn applies_to(only: Option<Only>, variant: FilterVariant) -> bool {
    match only {
        None => true,
        Some(Only::Proxied) => variant.sockets == Sockets::Internet,
        Some(Only::OwnNamespaces) => variant.processes == Processes::Namespace,
        Some(Only::HostProcesses) => variant.processes == Processes::Group,
        Some(Only::Children) => variant.children == Children::Allowed,
        Some(Only::NoChildren) => variant.children == Children::Denied,
    }
}

impl AllowCondition {
    fn check(&self, argument: &str) -> Result<ArgumentCheck, ProfileError> {
        let Some(Ok(argument @ 0..=5)) = argument.strip_prefix("arg").map(str::parse) else {
            return Err(ProfileError::new(format!("`{argument}` is not one of `arg0` to `arg5`")));
        };
        Ok(match self {
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

const COMMAND: &str = include_str!("../../../profiles/seccomp/command.json");

#[cfg(test)]
mod tests;
