//! Which system calls has a command, and what happens to the others? A list kept as data, each row with its reason.
//!
//! The worker's list kills; here a program of somebody else must be told "no" and live, and the author of a manifest must
//! be told what was refused. That takes an action, `USER_NOTIF`, which the filter library does not know, and rows that
//! exclude; and its programs compare one number after the other, which the kernel pays for at every start of a command.
//! Hence a generator of our own, in `program.rs`, that knows four kinds of instruction.

mod calls;
mod program;
mod words;

use std::{collections::BTreeMap, sync::Arc};

use serde::Deserialize;

use crate::{command::Children, profile::ProfileError, sys::filter::Instruction};
pub(crate) use calls::Calls;
use program::{Action, Check, Rule};

/// A checked list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandProfile {
    #[expect(dead_code, reason = "has one value; it is there for the reader of the file")]
    otherwise: Otherwise,
    /// Answered as a kernel would that does not have them, and not reported: programs ask in order to find out.
    absent: Vec<Plain>,
    allow: Vec<Row>,
}

/// A call that the supervisor looks at before the kernel judges it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) call: &'static str,
    pub(crate) unless: Option<Unseen>,
}

/// Nothing is to be seen where this argument has this value, and nobody is kept waiting.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unseen {
    pub(crate) argument: u32,
    pub(crate) value: u32,
}

/// What makes one filter differ from another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Variant {
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
    /// Everything dies with the first process of the namespace.
    Namespace,
    /// Everything dies with the process group, which therefore nobody may leave.
    Group,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Paths {
    /// The supervisor looks at every path before the kernel judges it.
    Watched,
    Unwatched,
}

impl CommandProfile {
    /// The list that is shipped.
    pub(crate) fn shipped() -> Result<Self, ProfileError> {
        Self::named("command", COMMAND)
    }

    fn named(name: &str, text: &str) -> Result<Self, ProfileError> {
        let mut profiles: BTreeMap<String, Self> = serde_json::from_str(text)
            .map_err(|error| ProfileError::new(format!("the list `{name}` does not parse: {error}")))?;
        let profile = profiles
            .remove(name)
            .ok_or_else(|| ProfileError::new(format!("the list has no entry `{name}`")))?;
        let reasons = profile.allow.iter().map(|row| (&row.calls, &row.reason));
        let reasons = reasons.chain(profile.absent.iter().map(|row| (&row.calls, &row.reason)));
        for (calls, reason) in reasons {
            if reason.trim().is_empty() || calls.is_empty() {
                return Err(ProfileError::new(format!("{calls:?} does not say what needs it in `for`")));
            }
        }
        Ok(profile)
    }

    /// The filter for this machine. Of the calls in `looks`, those that are allowed are asked about all the same; whoever
    /// answers lets them go on.
    pub(crate) fn compile(
        &self,
        calls: &Calls,
        variant: Variant,
        looks: &[Look],
    ) -> Result<Filter, ProfileError> {
        let mut actions: BTreeMap<u32, Action> =
            calls.numbers().map(|number| (number, Action::Report)).collect();
        for row in self.absent.iter().filter(|row| holds_for(row.only, variant)) {
            for number in calls.find_all(&row.calls)? {
                actions.insert(number, Action::Absent);
            }
        }
        let mut counted = Vec::new();
        for row in self.allow.iter().filter(|row| holds_for(row.only, variant)) {
            let rule = row.rule()?;
            for number in calls.find_all(&row.calls)? {
                if let Some(what) = row.counted {
                    let rule = rule.clone().ok_or_else(|| row.wrong("is counted without `when`"))?;
                    counted.push(Countable { number, rule, what });
                    continue;
                }
                allow(&mut actions, number, rule.clone()).map_err(|why| row.wrong(why))?;
            }
        }
        let mut asked = BTreeMap::new();
        if variant.paths == Paths::Watched {
            for (look, number) in looks.iter().filter_map(|look| Some((look, calls.number(look.call)?))) {
                // One that is not allowed must not be let through by whoever watches.
                let conditions = match actions.get(&number) {
                    Some(Action::Allow) => Conditions::None,
                    Some(Action::AllowIf(rules)) => Conditions::OneOf(rules.clone()),
                    Some(Action::Report | Action::Absent) | None => continue,
                };
                let action = match (look.unless, &conditions) {
                    (Some(Unseen { argument, value }), Conditions::None) => {
                        let checks = vec![Check::Any { argument, values: vec![value] }];
                        Action::AllowIf(vec![Rule { checks }])
                    }
                    _ => Action::Report,
                };
                asked.insert(number, conditions);
                actions.insert(number, action);
            }
        }
        Ok(Filter {
            program: program::generate(&actions, calls.machine()),
            watched: Arc::new(asked),
            counted: counted.into(),
        })
    }
}

/// What the kernel gets, and what its questions mean.
#[derive(Debug)]
pub(crate) struct Filter {
    pub(crate) program: Vec<Instruction>,
    /// Calls that are allowed, and asked about only to be seen. Every other question is a refusal.
    pub(crate) watched: Arc<BTreeMap<u32, Conditions>>,
    /// Calls that are allowed a number of times.
    pub(crate) counted: Arc<[Countable]>,
}

/// What must hold for a watched call to be let through.
#[derive(Clone, Debug)]
pub(crate) enum Conditions {
    None,
    OneOf(Vec<Rule>),
}

impl Conditions {
    /// Only numbers are looked at, which nobody changes while a call waits.
    pub(crate) fn hold(&self, arguments: [u64; 6]) -> bool {
        match self {
            Self::None => true,
            Self::OneOf(rules) => rules.iter().any(|rule| rule.holds(arguments)),
        }
    }
}

/// A call with such arguments is one more of these.
#[derive(Clone, Debug)]
pub(crate) struct Countable {
    number: u32,
    rule: Rule,
    what: Counted,
}

impl Countable {
    /// What such a call takes one of. Only numbers are looked at, which nobody changes while a call waits.
    pub(crate) fn of(&self, number: u32, arguments: [u64; 6]) -> Option<Counted> {
        (self.number == number && self.rule.holds(arguments)).then_some(self.what)
    }
}

/// What a command may have so many of, and the kernel bounds for nobody, or for all commands together.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Counted {
    /// Of parts of files.
    Locks,
    /// What a program waits for with `epoll`.
    Waits,
}

fn allow(actions: &mut BTreeMap<u32, Action>, number: u32, rule: Option<Rule>) -> Result<(), &'static str> {
    let action = actions.entry(number).or_insert(Action::Report);
    match (&mut *action, rule) {
        (Action::Report, None) => *action = Action::Allow,
        (Action::Report, Some(rule)) => *action = Action::AllowIf(vec![rule]),
        (Action::AllowIf(rules), Some(rule)) => rules.push(rule),
        (Action::Absent, _) => return Err("is listed as allowed and as absent"),
        (Action::Allow, _) | (Action::AllowIf(_), None) => return Err("is listed with and without `when`"),
    }
    Ok(())
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Otherwise {
    Report,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain {
    calls: Vec<String>,
    #[serde(rename = "for")]
    reason: String,
    only: Option<Only>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    calls: Vec<String>,
    #[serde(rename = "for")]
    reason: String,
    only: Option<Only>,
    /// Allowed only so often: the filter asks, and the supervisor counts.
    counted: Option<Counted>,
    #[serde(default)]
    when: BTreeMap<String, Condition>,
}

/// A row that does not hold for every jail.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Only {
    Proxied,
    /// Files and processes are the command's own.
    OwnNamespaces,
    /// Files and processes are the host's, and Landlock alone is between.
    HostProcesses,
    /// The command may start other processes.
    Children,
    /// It may not.
    NoChildren,
}

/// What one argument must be. All comparisons are of the low 32 bits: every argument named in the list is an `int` or a
/// word of flags whose upper half the kernel ignores or refuses.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Condition {
    Any(AnyOf),
    Without(Without),
    Flags(Flags),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnyOf {
    any: Vec<String>,
}

/// None of these bits; others may be there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Without {
    without: Vec<String>,
}

/// Each of `must`, any of `may`, and no other bit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Flags {
    #[serde(default)]
    must: Vec<String>,
    #[serde(default)]
    may: Vec<String>,
}

impl Row {
    fn rule(&self) -> Result<Option<Rule>, ProfileError> {
        let checks: Vec<Check> = self
            .when
            .iter()
            .map(|(argument, condition)| condition.check(argument))
            .collect::<Result<_, _>>()?;
        Ok((!checks.is_empty()).then_some(Rule { checks }))
    }

    fn wrong(&self, why: &str) -> ProfileError {
        ProfileError::new(format!("{:?} {why}", self.calls))
    }
}

fn holds_for(only: Option<Only>, variant: Variant) -> bool {
    match only {
        None => true,
        Some(Only::Proxied) => variant.sockets == Sockets::Internet,
        Some(Only::OwnNamespaces) => variant.processes == Processes::Namespace,
        Some(Only::HostProcesses) => variant.processes == Processes::Group,
        Some(Only::Children) => variant.children == Children::Allowed,
        Some(Only::NoChildren) => variant.children == Children::Denied,
    }
}

impl Condition {
    fn check(&self, argument: &str) -> Result<Check, ProfileError> {
        let Some(Ok(argument @ 0..=5)) = argument.strip_prefix("arg").map(str::parse) else {
            return Err(ProfileError::new(format!("`{argument}` is none of `arg0` to `arg5`")));
        };
        Ok(match self {
            Self::Any(AnyOf { any }) => Check::Any { argument, values: words::values(any)? },
            Self::Without(Without { without }) => {
                Check::Masked { argument, mask: words::union(without)?, value: 0 }
            }
            Self::Flags(Flags { must, may }) => {
                let (must, may) = (words::union(must)?, words::union(may)?);
                Check::Masked { argument, mask: !(may & !must), value: must }
            }
        })
    }
}

const COMMAND: &str = include_str!("../../../profiles/seccomp/command.json");

#[cfg(test)]
mod tests;
