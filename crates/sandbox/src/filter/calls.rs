//! Which number has a system call on this machine, and which name has a number?

use std::collections::BTreeMap;

use crate::profile::ProfileError;

/// The calls of one machine.
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
            other => Err(ProfileError::new(format!("no filter for machines of type `{other}`"))),
        }
    }

    pub(crate) fn of(machine: Machine) -> Result<Self, ProfileError> {
        let mut calls = Self { machine, numbers: BTreeMap::new(), names: BTreeMap::new() };
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split(' ');
            let (Some(name), Some(x86_64), Some(aarch64), None) =
                (fields.next(), fields.next(), fields.next(), fields.next())
            else {
                return Err(ProfileError::new(format!("the table of calls has the line `{line}`")));
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

    /// The numbers of these calls, without those that this machine does not have. A name that no machine has is an error.
    pub(crate) fn find_all(&self, names: &[String]) -> Result<Vec<u32>, ProfileError> {
        let mut found = Vec::new();
        for name in names {
            match self.numbers.get(name.as_str()) {
                Some(number) => found.extend(number),
                None => {
                    return Err(ProfileError::new(format!(
                        "the call `{name}` is unknown; add it to the table of calls"
                    )));
                }
            }
        }
        Ok(found)
    }
}

const TABLE: &str = include_str!("calls.txt");
