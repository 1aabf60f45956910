//! Which system calls remain to a sealed worker? A list kept as data, each row with its reason; all else kills.

use std::{collections::BTreeMap, fmt};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use serde::Deserialize;

/// A checked allow list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeccompProfile {
    #[expect(dead_code, reason = "has one value; it is there for the reader of the file")]
    otherwise: Otherwise,
    allow: Vec<Row>,
}

impl SeccompProfile {
    /// What a worker needs that runs JavaScript.
    pub fn worker_js() -> Result<Self, ProfileError> {
        Self::named("worker-js", WORKER_JS)
    }

    fn named(name: &str, text: &str) -> Result<Self, ProfileError> {
        let mut profiles: BTreeMap<String, Self> = serde_json::from_str(text)
            .map_err(|error| ProfileError(format!("the list `{name}` does not parse: {error}")))?;
        let profile =
            profiles.remove(name).ok_or_else(|| ProfileError(format!("the list has no entry `{name}`")))?;
        match profile.allow.iter().find(|row| row.reason.trim().is_empty()) {
            Some(row) => Err(ProfileError(format!("`{}` does not say in `for` who needs it", row.call))),
            None => Ok(profile),
        }
    }

    /// The filter for this machine. `sealed_memory` are the descriptors that `SEALED_MEMORY` in the list stands for.
    pub(crate) fn compile(&self, sealed_memory: &[i32]) -> Result<BpfProgram, ProfileError> {
        let here = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
            ProfileError(format!("no filter for machines of type `{}`", std::env::consts::ARCH))
        })?;
        self.compile_for(here, sealed_memory)
    }

    fn compile_for(&self, machine: TargetArch, sealed_memory: &[i32]) -> Result<BpfProgram, ProfileError> {
        let mut calls: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        for row in &self.allow {
            let number = call_number(&row.call, machine)?;
            let rules = row.rules(sealed_memory)?;
            // To the filter library a call without rules is a call without conditions: rows of both kinds for one
            // call would mean that the wider one silently wins.
            let is_new = !calls.contains_key(&number);
            match rules {
                Rules::Always if is_new => drop(calls.insert(number, Vec::new())),
                Rules::Never => {}
                Rules::Any(rules) if is_new || calls.get(&number).is_some_and(|known| !known.is_empty()) => {
                    calls.entry(number).or_default().extend(rules);
                }
                Rules::Always | Rules::Any(_) => {
                    return Err(ProfileError(format!("`{}` is listed with and without `when`", row.call)));
                }
            }
        }
        SeccompFilter::new(calls, SeccompAction::KillProcess, SeccompAction::Allow, machine)
            .and_then(TryInto::try_into)
            .map_err(|error| ProfileError(format!("the list does not compile: {error}")))
    }
}

/// What is wrong with an allow list.
#[derive(Debug, Eq, PartialEq)]
pub struct ProfileError(String);

impl ProfileError {
    pub(crate) fn new(why: String) -> Self {
        Self(why)
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "seccomp: {}", self.0)
    }
}

impl std::error::Error for ProfileError {}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Otherwise {
    Kill,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    call: String,
    #[serde(rename = "for")]
    reason: String,
    #[serde(default)]
    when: BTreeMap<Argument, Condition>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
enum Argument {
    Arg0,
    Arg1,
    Arg2,
    Arg3,
    Arg4,
    Arg5,
}

/// What one argument must be. All comparisons are of the low 32 bits: every argument named in a list is an `int` or a
/// word of flags whose upper half the kernel ignores or refuses.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Condition {
    Number(u32),
    Word(String),
    Flags(Flags),
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

/// What a row comes to on this machine.
enum Rules {
    Always,
    Any(Vec<SeccompRule>),
    /// It speaks of sealed memory, and there is none.
    Never,
}

impl Row {
    fn rules(&self, sealed_memory: &[i32]) -> Result<Rules, ProfileError> {
        if self.when.is_empty() {
            return Ok(Rules::Always);
        }
        let mut fixed = Vec::new();
        let mut memory_argument = None;
        for (argument, condition) in &self.when {
            match condition {
                Condition::Number(number) => fixed.push(argument.equals(*number)?),
                Condition::Word(word) if word == SEALED_MEMORY => memory_argument = Some(*argument),
                Condition::Word(word) => fixed.push(argument.equals(value(word)?)?),
                Condition::Flags(flags) => fixed.push(argument.has_flags(flags)?),
            }
        }
        let Some(argument) = memory_argument else {
            return Ok(Rules::Any(vec![rule(fixed)?]));
        };
        let rules: Vec<SeccompRule> = sealed_memory
            .iter()
            .map(|descriptor| {
                let is_it = argument.equals(descriptor.cast_unsigned())?;
                rule(fixed.iter().cloned().chain([is_it]).collect())
            })
            .collect::<Result<_, _>>()?;
        Ok(if rules.is_empty() { Rules::Never } else { Rules::Any(rules) })
    }
}

impl Argument {
    fn equals(self, number: u32) -> Result<SeccompCondition, ProfileError> {
        self.compare(SeccompCmpOp::Eq, number)
    }

    fn has_flags(self, flags: &Flags) -> Result<SeccompCondition, ProfileError> {
        let (must, may) = (union(&flags.must)?, union(&flags.may)?);
        self.compare(SeccompCmpOp::MaskedEq(u64::from(!(may & !must))), must)
    }

    fn compare(self, operator: SeccompCmpOp, number: u32) -> Result<SeccompCondition, ProfileError> {
        SeccompCondition::new(self as u8, SeccompCmpArgLen::Dword, operator, u64::from(number))
            .map_err(|error| ProfileError(error.to_string()))
    }
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, ProfileError> {
    SeccompRule::new(conditions).map_err(|error| ProfileError(error.to_string()))
}

fn union(words: &[String]) -> Result<u32, ProfileError> {
    words.iter().try_fold(0, |all, word| Ok(all | value(word)?))
}

fn value(word: &str) -> Result<u32, ProfileError> {
    let found = WORDS.iter().find(|(known, _)| *known == word);
    found
        .map(|(_, value)| value.cast_unsigned())
        .ok_or_else(|| ProfileError(format!("the word `{word}` is unknown; add it to the table of words")))
}

fn call_number(call: &str, machine: TargetArch) -> Result<i64, ProfileError> {
    let Some((_, x86_64, aarch64)) = CALLS.iter().find(|(known, _, _)| *known == call) else {
        return Err(ProfileError(format!("the call `{call}` is unknown; add it to the table of calls")));
    };
    match machine {
        TargetArch::x86_64 => Ok(*x86_64),
        TargetArch::aarch64 => Ok(*aarch64),
        TargetArch::riscv64 => Err(ProfileError("no filter for machines of type `riscv64`".to_owned())),
    }
}

const WORKER_JS: &str = include_str!("../../../profiles/seccomp/worker-js.json");

/// In a list: one of the memory files that nobody can change any more, such as the engine's image.
const SEALED_MEMORY: &str = "SEALED_MEMORY";

/// The same on both machines.
const WORDS: [(&str, i32); 15] = [
    ("FUTEX_CLOCK_REALTIME", 256),
    ("FUTEX_PRIVATE_FLAG", 128),
    ("FUTEX_WAIT", 0),
    ("FUTEX_WAIT_BITSET", 9),
    ("FUTEX_WAKE", 1),
    ("MADV_DONTNEED", 4),
    ("MAP_ANONYMOUS", 0x20),
    ("MAP_FIXED", 0x10),
    ("MAP_NORESERVE", 0x4000),
    ("MAP_PRIVATE", 0x02),
    ("MAP_STACK", 0x2_0000),
    ("MREMAP_MAYMOVE", 1),
    ("PIDFD_SELF", -10_000),
    ("PROT_READ", 1),
    ("PROT_WRITE", 2),
];

/// Name, number on x86_64, number on aarch64.
const CALLS: [(&str, i64, i64); 18] = [
    ("brk", 12, 214),
    ("clock_gettime", 228, 113),
    ("clock_nanosleep", 230, 115),
    ("exit", 60, 93),
    ("exit_group", 231, 94),
    ("futex", 202, 98),
    ("getrandom", 318, 278),
    ("madvise", 28, 233),
    ("mmap", 9, 222),
    ("mprotect", 10, 226),
    ("mremap", 25, 216),
    ("munmap", 11, 215),
    ("process_madvise", 440, 440),
    ("read", 0, 63),
    ("restart_syscall", 219, 128),
    ("rt_sigreturn", 15, 139),
    ("sched_yield", 24, 124),
    ("write", 1, 64),
];

#[cfg(test)]
mod tests;
