//! Isolation layers around a command.

use std::fmt;

use crate::Namespaces;

/// Layers confirmed while the jail was created. Sent as one number.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct CommandStrength {
    walls: u32,
    landlock_abi: u8,
}

/// One isolation layer. The numbers are bits of the encoded form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Wall {
    /// Denied system calls return an error and are reported.
    Seccomp = 0,
    NoNewPrivileges = 1,
    NoCapabilities = 2,
    EmptyBoundingSet = 3,
    /// Memory, CPU time, descriptors and file size of each process.
    Limits = 4,
    /// The number of processes is limited.
    ProcessLimit = 5,
    /// A control group limits memory and processes together.
    ControlGroup = 6,
    /// Everything is killed with the gateway, and with the command.
    DiesTogether = 7,
    UserNamespace = 8,
    /// Mount namespace: files that are not granted do not exist.
    PrivateView = 9,
    PidNamespace = 10,
    NetworkNamespace = 11,
    IpcNamespace = 12,
    UtsNamespace = 13,
    CgroupNamespace = 14,
    /// `/proc` shows the command's own processes and nothing of the host.
    PrivateProc = 15,
    /// The total memory of all processes is limited, by a control group or by a supervisor that can see them all.
    MemoryLimit = 16,
}

/// Layers that the caller requires, in addition to the mandatory ones.
#[derive(Clone, Copy, Debug)]
pub struct CommandRequired {
    pub walls: &'static [Wall],
    /// The lowest acceptable Landlock version.
    pub landlock_abi: u8,
    /// Whether to try namespaces.
    pub namespaces: Namespaces,
}

impl CommandRequired {
    /// Landlock, seccomp and limits: available to ordinary users even if namespaces are forbidden. Namespaces are
    /// used where possible. Without them, Landlock must be recent enough to restrict signals, whatever this says.
    pub const MINIMUM: Self = Self { walls: &[], landlock_abi: 1, namespaces: Namespaces::Enter };

    /// Two independent layers around files, processes and network.
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

    /// Adds the layer if it is in force.
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

    /// Names of the layers in force, for people and the journal.
    pub fn names(self) -> Vec<String> {
        let walls = Wall::ALL.iter().filter(|wall| self.has(**wall)).map(|wall| wall.name().to_owned());
        walls.chain(self.landlock_abi().map(|abi| format!("landlock-{abi}"))).collect()
    }

    /// Names of the required and mandatory layers that are missing, for people.
    pub(crate) fn missing(self, asked: Asked) -> Vec<String> {
        let walls = Wall::ALL.iter().filter(|wall| MANDATORY.contains(wall) || asked.walls & wall.bit() != 0);
        let mut missing: Vec<String> =
            walls.filter(|wall| !self.has(**wall)).map(|wall| wall.name().to_owned()).collect();
        if self.landlock_abi < asked.landlock_abi {
            missing.push(format!("landlock-{}", asked.landlock_abi));
        }
        missing
    }

    /// Layers in the low 24 bits, the Landlock version above.
    pub(crate) fn to_bits(self) -> u32 {
        self.walls | u32::from(self.landlock_abi) << LANDLOCK_SHIFT
    }

    /// `None` for unknown bits.
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

/// The required layers, encoded for sending.
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

    /// The same, with at least this version of Landlock.
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

    /// Stable: users search journals for these names.
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

/// A command does not run without these, nor without Landlock if it has no private view.
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
    fn every_strength_survives_encoding() {
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
    fn missing_mandatory_layers_are_always_reported() {
        let nothing_more = Asked { walls: 0, landlock_abi: 0 };
        for wall in MANDATORY {
            let others: Vec<Wall> = Wall::ALL.into_iter().filter(|other| other != wall).collect();
            assert_eq!(strength(&others, 9).missing(nothing_more), [wall.name()]);
        }
    }

    #[test]
    fn missing_layers_are_named() {
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
