//! Numbers and names of system calls on each architecture.

use std::collections::BTreeMap;

use super::list::ProfileError;

/// The system calls of one architecture.
#[derive(Debug)]
pub(crate) struct Calls {
    machine: Machine,
    numbers: BTreeMap<&'static str, Option<u32>>,
    names: BTreeMap<u32, &'static str>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Machine {
    X86_64,
    Aarch64,
}

impl Calls {
    pub(crate) fn of_this_machine() -> Result<Self, ProfileError> {
        match std::env::consts::ARCH {
            "x86_64" => Self::of(Machine::X86_64),
            "aarch64" => Self::of(Machine::Aarch64),
            other => Err(ProfileError::new(format!("no seccomp filter for the architecture `{other}`"))),
        }
    }

    pub(crate) fn of(machine: Machine) -> Result<Self, ProfileError> {
        let mut calls = Self { machine, numbers: BTreeMap::new(), names: BTreeMap::new() };
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split(' ');
            let (Some(name), Some(x86_64), Some(aarch64), None) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                return Err(ProfileError::new(format!("invalid line `{line}` in the table of system calls")));
            };
            let number = match machine {
                Machine::X86_64 => x86_64,
                Machine::Aarch64 => aarch64,
            };
            let number = number.parse().ok();
            calls.numbers.insert(name, number);
            calls.names.extend(number.map(|number| (number, name)));
        }
        Ok(calls)
    }

    pub(crate) fn machine(&self) -> Machine {
        self.machine
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.names.keys().copied()
    }

    pub(crate) fn name(&self, number: u32) -> Option<&'static str> {
        self.names.get(&number).copied()
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.numbers.get(name).copied().flatten()
    }

    /// The numbers of these calls, without those that this architecture lacks. A name unknown on every architecture
    /// is an error.
    pub(crate) fn find_all(&self, names: &[String]) -> Result<Vec<u32>, ProfileError> {
        let mut found = Vec::new();
        for name in names {
            match self.numbers.get(name.as_str()) {
                Some(number) => found.extend(number),
                None => {
                    return Err(ProfileError::new(format!(
                        "unknown system call `{name}`; add it to the table of system calls"
                    )));
                }
            }
        }
        Ok(found)
    }
}

const TABLE: &str = include_str!("calls.txt");
