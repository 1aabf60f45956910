//! System call filters: allow lists kept as data, each row with its reason, and their compiler.
//!
//! The worker's list kills. A command runs third-party programs, which must get an error and survive, and the
//! manifest's author must learn what was refused. That needs the action `USER_NOTIF` and rows that exclude flags,
//! which the crate `seccompiler` does not support. Its programs also compare one number after the other, which costs
//! time at every start of a command. Hence our own generator in `program.rs`, with four kinds of instruction.

mod calls;
mod constants;
mod list;
mod program;
mod worker;

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;

use crate::{command::Children, sys::filter::Instruction};
pub(crate) use calls::Calls;
pub use list::ProfileError;
use list::{FilterTarget, SeccompList};
use program::{Action, ArgumentCheck, FilterRule, Otherwise};
pub use worker::SeccompProfile;

/// The list for commands. A denied call notifies the supervisor.
#[derive(Debug)]
pub(crate) struct CommandProfile(SeccompList);

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
        SeccompList::named(name, text, Otherwise::Report).map(Self)
    }

    /// Compiles the filter for this machine. Allowed calls in `looks` also notify the supervisor, which then lets
    /// them continue.
    pub(crate) fn compile(
        &self,
        calls: &Calls,
        variant: FilterVariant,
        looks: &[WatchedCall],
    ) -> Result<CommandFilter, ProfileError> {
        let found = self.0.actions(calls, FilterTarget::Command(variant))?;
        let mut actions = found.actions;
        let mut asked = BTreeMap::new();
        if variant.paths == Paths::Watched {
            for (look, number) in looks.iter().filter_map(|look| Some((look, calls.number(look.call)?))) {
                // The supervisor must not let a forbidden call through.
                let conditions = match actions.get(&number) {
                    Some(Action::Allow) => Conditions::None,
                    Some(Action::AllowIf(rules)) => Conditions::OneOf(rules.clone()),
                    Some(Action::Deny | Action::Absent) | None => continue,
                };
                let action = match (look.unless, &conditions) {
                    (Some(SkipCondition { argument, value }), Conditions::None) => {
                        let checks = vec![ArgumentCheck::Any { argument, values: vec![value] }];
                        Action::AllowIf(vec![FilterRule { checks }])
                    }
                    _ => Action::Deny,
                };
                asked.insert(number, conditions);
                actions.insert(number, action);
            }
        }
        Ok(CommandFilter {
            program: program::generate(&actions, calls.machine(), self.0.otherwise),
            watched: Arc::new(asked),
            counted: found.counted.into(),
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

const COMMAND: &str = include_str!("../../../profiles/seccomp/command.json");

#[cfg(test)]
mod tests;
