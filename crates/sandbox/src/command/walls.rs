//! What really stands around a command, and is it enough?

use std::fmt;

use crate::Namespaces;

/// What holds, as the jail found it while it was made. Travels as one number.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct CommandStrength {
    walls: u32,
    landlock_abi: u8,
}

/// One wall. The numbers are bits of the encoded form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Wall {
    /// Refused system calls are answered with an error and reported.
    Seccomp = 0,
    NoNewPrivileges = 1,
    NoCapabilities = 2,
    EmptyBoundingSet = 3,
    /// Memory, processor time, descriptors, file size of each process.
    Limits = 4,
    /// No number of processes beyond the limit.
    ProcessLimit = 5,
    /// Memory and processes are bounded together, by a control group.
    ControlGroup = 6,
    /// Everything dies with the gateway, and with the command.
    DiesTogether = 7,
    UserNamespace = 8,
    /// Own mounts: files that are not granted are not there.
    PrivateView = 9,
    PidNamespace = 10,
    NetworkNamespace = 11,
    IpcNamespace = 12,
    UtsNamespace = 13,
    CgroupNamespace = 14,
    /// `/proc` shows the command's own processes and nothing of the host.
    PrivateProc = 15,
    /// All processes together hold no more memory than the limit says, by a control group or by a supervisor that sees them all.
    MemoryLimit = 16,
}

/// What the caller insists on, on top of the walls without which no command runs.
#[derive(Clone, Copy, Debug)]
pub struct CommandRequired {
    pub walls: &'static [Wall],
    /// The lowest Landlock version that will do.
    pub landlock_abi: u8,
    /// Whether namespaces are tried.
    pub namespaces: Namespaces,
}

impl CommandRequired {
    /// Landlock, seccomp and limits: what an ordinary user has where namespaces are forbidden. Namespaces are used where they
    /// can be had; without them Landlock must be of the version that keeps signals in, whatever is said here.
    pub const MINIMUM: Self = Self { walls: &[], landlock_abi: 1, namespaces: Namespaces::Enter };

    /// Two independent walls around files, processes and network.
    pub const HARDENED: Self = Self {
        walls: &[
            Wall::PrivateView,
            Wall::PidNamespace,
            Wall::NetworkNamespace,
            Wall::IpcNamespace,
            Wall::ProcessLimit,
        ],
        landlock_abi: 1,
        namespaces: Namespaces::Enter,
    };
}

impl CommandStrength {
    pub(crate) const NONE: Self = Self { walls: 0, landlock_abi: 0 };

    pub(crate) fn add(&mut self, wall: Wall) {
        self.walls |= wall.bit();
    }

    /// Adds the wall if it was found to hold.
    pub(crate) fn add_if(&mut self, wall: Wall, holds: bool) {
        if holds {
            self.add(wall);
        }
    }

    pub(crate) fn set_landlock_abi(&mut self, abi: u8) {
        self.landlock_abi = abi;
    }

    pub fn has(self, wall: Wall) -> bool {
        self.walls & wall.bit() != 0
    }

    /// The Landlock version in force, if any.
    pub fn landlock_abi(self) -> Option<u8> {
        (self.landlock_abi > 0).then_some(self.landlock_abi)
    }

    /// The names of what holds, for people and the journal.
    pub fn names(self) -> Vec<String> {
        let walls = Wall::ALL.iter().filter(|wall| self.has(**wall)).map(|wall| wall.name().to_owned());
        walls.chain(self.landlock_abi().map(|abi| format!("landlock-{abi}"))).collect()
    }

    /// What is asked for, or mandatory, and does not stand; for people.
    pub(crate) fn missing(self, asked: Asked) -> Vec<String> {
        let walls = Wall::ALL.iter().filter(|wall| MANDATORY.contains(wall) || asked.walls & wall.bit() != 0);
        let mut missing: Vec<String> =
            walls.filter(|wall| !self.has(**wall)).map(|wall| wall.name().to_owned()).collect();
        if self.landlock_abi < asked.landlock_abi {
            missing.push(format!("landlock-{}", asked.landlock_abi));
        }
        missing
    }

    /// Walls in the low 24 bits, the Landlock version above.
    pub(crate) fn to_bits(self) -> u32 {
        self.walls | u32::from(self.landlock_abi) << LANDLOCK_SHIFT
    }

    /// `None` for bits that mean nothing here.
    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        let walls = bits & ((1 << LANDLOCK_SHIFT) - 1);
        let known = Wall::ALL.iter().fold(0, |known, wall| known | wall.bit());
        let landlock_abi = u8::try_from(bits >> LANDLOCK_SHIFT).ok()?;
        (walls & !known == 0).then_some(Self { walls, landlock_abi })
    }
}

impl fmt::Debug for CommandStrength {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}

/// The same question in the form in which it travels.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Asked {
    walls: u32,
    landlock_abi: u8,
}

impl Asked {
    pub(crate) fn to_bits(self) -> u32 {
        self.walls | u32::from(self.landlock_abi) << LANDLOCK_SHIFT
    }

    pub(crate) fn from_bits(bits: u32) -> Option<Self> {
        let CommandStrength { walls, landlock_abi } = CommandStrength::from_bits(bits)?;
        Some(Self { walls, landlock_abi })
    }

    /// The same, and at least this version of Landlock.
    pub(crate) fn with_landlock(self, abi: u8) -> Self {
        Self { landlock_abi: self.landlock_abi.max(abi), ..self }
    }

    pub(crate) fn asks(self, wall: Wall) -> bool {
        self.walls & wall.bit() != 0
    }
}

impl From<&CommandRequired> for Asked {
    fn from(required: &CommandRequired) -> Self {
        let walls = required.walls.iter().fold(0, |walls, wall| walls | wall.bit());
        Self { walls, landlock_abi: required.landlock_abi }
    }
}

impl Wall {
    pub const ALL: [Self; 17] = [
        Self::Seccomp,
        Self::NoNewPrivileges,
        Self::NoCapabilities,
        Self::EmptyBoundingSet,
        Self::Limits,
        Self::ProcessLimit,
        Self::ControlGroup,
        Self::DiesTogether,
        Self::UserNamespace,
        Self::PrivateView,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::CgroupNamespace,
        Self::PrivateProc,
        Self::MemoryLimit,
    ];

    /// Stable: journals are searched for these words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seccomp => "seccomp",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::NoCapabilities => "no-capabilities",
            Self::EmptyBoundingSet => "empty-bounding-set",
            Self::Limits => "limits",
            Self::ProcessLimit => "process-limit",
            Self::ControlGroup => "control-group",
            Self::DiesTogether => "dies-together",
            Self::UserNamespace => "user-namespace",
            Self::PrivateView => "private-view",
            Self::PidNamespace => "pid-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::CgroupNamespace => "cgroup-namespace",
            Self::PrivateProc => "private-proc",
            Self::MemoryLimit => "memory-limit",
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// Without these, and without any Landlock where there is no private view, no command runs.
const MANDATORY: &[Wall] =
    &[Wall::Seccomp, Wall::NoNewPrivileges, Wall::NoCapabilities, Wall::Limits, Wall::DiesTogether];

const LANDLOCK_SHIFT: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn strength(walls: &[Wall], landlock_abi: u8) -> CommandStrength {
        let mut strength = CommandStrength::NONE;
        for wall in walls {
            strength.add(*wall);
        }
        strength.set_landlock_abi(landlock_abi);
        strength
    }

    #[test]
    fn every_strength_survives_its_encoding() {
        for wall in Wall::ALL {
            let one = strength(&[wall], 6);
            assert_eq!(CommandStrength::from_bits(one.to_bits()), Some(one), "{wall:?}");
            assert_eq!(one.names(), [wall.name(), "landlock-6"]);
        }
        for unknown in 17..LANDLOCK_SHIFT {
            assert_eq!(CommandStrength::from_bits(1 << unknown), None, "bit {unknown}");
        }
    }

    #[test]
    fn without_a_mandatory_wall_nothing_is_enough() {
        let nothing_more = Asked { walls: 0, landlock_abi: 0 };
        for wall in MANDATORY {
            let others: Vec<Wall> = Wall::ALL.into_iter().filter(|other| other != wall).collect();
            assert_eq!(strength(&others, 9).missing(nothing_more), [wall.name()]);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let weak = strength(MANDATORY, 0);
        let missing = weak.missing(Asked::from(&CommandRequired::HARDENED));
        let names = [
            "process-limit",
            "private-view",
            "pid-namespace",
            "network-namespace",
            "ipc-namespace",
            "landlock-1",
        ];
        assert_eq!(missing, names);
        assert!(strength(&Wall::ALL, 1).missing(Asked::from(&CommandRequired::HARDENED)).is_empty());
    }
}
