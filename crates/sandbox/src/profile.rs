//! Seccomp profile of a sealed worker: an allow list kept as data, each row with its reason. Any other system call
//! kills the process.

use std::{collections::BTreeMap, fmt};

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch,
};
use serde::Deserialize;

/// A validated allow list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeccompProfile {
    #[expect(dead_code, reason = "has one value; it is there for the reader of the file")]
    otherwise: ProfileDefault,
    allow: Vec<ProfileRow>,
}

impl SeccompProfile {
    /// The profile of a worker that runs JavaScript.
    pub fn worker_js() -> Result<Self, ProfileError> {
        Self::named("worker-js", WORKER_JS)
    }

    fn named(name: &str, text: &str) -> Result<Self, ProfileError> {
        let mut profiles: BTreeMap<String, Self> = serde_json::from_str(text)
            .map_err(|error| ProfileError(format!("cannot parse the profile `{name}`: {error}")))?;
        let profile =
            profiles.remove(name).ok_or_else(|| ProfileError(format!("the file has no profile `{name}`")))?;
        match profile.allow.iter().find(|row| row.reason.trim().is_empty()) {
            Some(row) => {
                Err(ProfileError(format!("`{}` has no reason; write in `for` who needs it", row.call)))
            }
            None => Ok(profile),
        }
    }

    /// Compiles the filter for this machine. `SEALED_MEMORY` in the list means any of the descriptors in
    /// `sealed_memory`.
    pub(crate) fn compile(&self, sealed_memory: &[i32]) -> Result<BpfProgram, ProfileError> {
        let here = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| {
            ProfileError(format!("no seccomp filter for the architecture `{}`", std::env::consts::ARCH))
        })?;
        self.compile_for(here, sealed_memory)
    }

    fn compile_for(&self, machine: TargetArch, sealed_memory: &[i32]) -> Result<BpfProgram, ProfileError> {
        let mut calls: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        for row in &self.allow {
            let number = call_number(&row.call, machine)?;
            let rules = row.rules(sealed_memory)?;
            // The filter library treats a call without rules as allowed without conditions. If both kinds of row
            // existed for one call, the wider one would silently win.
            let is_new = !calls.contains_key(&number);
            match rules {
                RowRules::Always if is_new => drop(calls.insert(number, Vec::new())),
                RowRules::Never => {}
                RowRules::Any(rules)
                    if is_new || calls.get(&number).is_some_and(|known| !known.is_empty()) =>
                {
                    calls.entry(number).or_default().extend(rules);
                }
                RowRules::Always | RowRules::Any(_) => {
                    return Err(ProfileError(format!(
                        "`{}` is listed both with and without `when`",
                        row.call
                    )));
                }
            }
        }
        SeccompFilter::new(calls, SeccompAction::KillProcess, SeccompAction::Allow, machine)
            .and_then(TryInto::try_into)
            .map_err(|error| ProfileError(format!("cannot compile the profile: {error}")))
    }
}

/// Why an allow list is invalid.
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
enum ProfileDefault {
    Kill,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileRow {
    call: String,
    #[serde(rename = "for")]
    reason: String,
    #[serde(default)]
    when: BTreeMap<ArgumentIndex, ProfileCondition>,
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(rename_all = "lowercase")]
enum ArgumentIndex {
    Arg0,
    Arg1,
    Arg2,
    Arg3,
    Arg4,
    Arg5,
}

/// Condition on one argument. Compares the low 32 bits only: every listed argument is an `int` or a word of flags
/// whose upper half the kernel ignores or rejects.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ProfileCondition {
    Number(u32),
    Word(String),
    Flags(ProfileFlags),
}

/// All of `must`, any of `may`, and no other bit.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProfileFlags {
    #[serde(default)]
    must: Vec<String>,
    #[serde(default)]
    may: Vec<String>,
}

/// The rules of a row on this machine.
enum RowRules {
    Always,
    Any(Vec<SeccompRule>),
    /// The row requires sealed memory, and there is none.
    Never,
}

impl ProfileRow {
    fn rules(&self, sealed_memory: &[i32]) -> Result<RowRules, ProfileError> {
        if self.when.is_empty() {
            return Ok(RowRules::Always);
        }
        let mut fixed = Vec::new();
        let mut memory_argument = None;
        for (argument, condition) in &self.when {
            match condition {
                ProfileCondition::Number(number) => fixed.push(argument.equals(*number)?),
                ProfileCondition::Word(word) if word == SEALED_MEMORY => memory_argument = Some(*argument),
                ProfileCondition::Word(word) => fixed.push(argument.equals(value(word)?)?),
                ProfileCondition::Flags(flags) => fixed.push(argument.has_flags(flags)?),
            }
        }
        let Some(argument) = memory_argument else {
            return Ok(RowRules::Any(vec![rule(fixed)?]));
        };
        let rules: Vec<SeccompRule> = sealed_memory
            .iter()
            .map(|descriptor| {
                let is_it = argument.equals(descriptor.cast_unsigned())?;
                rule(fixed.iter().cloned().chain([is_it]).collect())
            })
            .collect::<Result<_, _>>()?;
        Ok(if rules.is_empty() { RowRules::Never } else { RowRules::Any(rules) })
    }
}

impl ArgumentIndex {
    fn equals(self, number: u32) -> Result<SeccompCondition, ProfileError> {
        self.compare(SeccompCmpOp::Eq, number)
    }

    fn has_flags(self, flags: &ProfileFlags) -> Result<SeccompCondition, ProfileError> {
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
        .ok_or_else(|| ProfileError(format!("unknown constant `{word}`; add it to the table of constants")))
}

fn call_number(call: &str, machine: TargetArch) -> Result<i64, ProfileError> {
    let Some((_, x86_64, aarch64)) = CALLS.iter().find(|(known, _, _)| *known == call) else {
        return Err(ProfileError(format!(
            "unknown system call `{call}`; add it to the table of system calls"
        )));
    };
    match machine {
        TargetArch::x86_64 => Ok(*x86_64),
        TargetArch::aarch64 => Ok(*aarch64),
        TargetArch::riscv64 => {
            Err(ProfileError("no seccomp filter for the architecture `riscv64`".to_owned()))
        }
    }
}

const WORKER_JS: &str = include_str!("../../../profiles/seccomp/worker-js.json");

/// In a list: one of the memory files sealed against changes, such as the engine's image.
const SEALED_MEMORY: &str = "SEALED_MEMORY";

/// The same on both architectures.
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
