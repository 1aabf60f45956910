//! Protections in force around a worker, and comparison with the required ones.

use std::fmt;

/// Protections that the jailed process verified after setting them up. Sent as one number.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Strength {
    parts: u32,
    landlock_abi: u8,
}

/// One protection. The numbers are bits of the encoded form.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Part {
    /// One socket, and no other descriptor that leads out of the process.
    Descriptors = 0,
    Seccomp = 1,
    NoNewPrivileges = 2,
    Limits = 3,
    NotDumpable = 4,
    DiesWithParent = 5,
    NoCapabilities = 6,
    EmptyBoundingSet = 7,
    UnprivilegedIds = 8,
    NoGroups = 9,
    NoNewExecutableMemory = 10,
    UserNamespace = 11,
    NetworkNamespace = 12,
    IpcNamespace = 13,
    UtsNamespace = 14,
    MountNamespace = 15,
    CgroupNamespace = 16,
    /// The root directory is empty.
    EmptyRoot = 17,
}

/// Protections that a tool or an operator requires, in addition to the mandatory ones.
#[derive(Clone, Copy, Debug)]
pub struct Required {
    pub parts: &'static [Part],
    /// The lowest acceptable Landlock version; 0 requires none.
    pub landlock_abi: u8,
}

impl Required {
    /// The parts that every worker has; it refuses to run without them.
    pub const MINIMUM: Self = Self { parts: MANDATORY, landlock_abi: 0 };

    /// Two independent layers around files and network, and an unprivileged user.
    pub const HARDENED: Self = Self {
        parts: &[Part::NetworkNamespace, Part::UnprivilegedIds, Part::IpcNamespace, Part::MountNamespace],
        landlock_abi: 1,
    };
}

impl Strength {
    pub(crate) const NONE: Self = Self { parts: 0, landlock_abi: 0 };

    pub(crate) fn add(&mut self, part: Part) {
        self.parts |= part.bit();
    }

    /// Adds the part if it was found to hold.
    pub(crate) fn add_if(&mut self, part: Part, holds: bool) {
        if holds {
            self.add(part);
        }
    }

    pub(crate) fn set_landlock_abi(&mut self, abi: u8) {
        self.landlock_abi = abi;
    }

    pub fn has(self, part: Part) -> bool {
        self.parts & part.bit() != 0
    }

    /// The Landlock version in force, if any.
    pub fn landlock_abi(self) -> Option<u8> {
        (self.landlock_abi > 0).then_some(self.landlock_abi)
    }

    pub fn meets(self, required: &Required) -> bool {
        self.missing(required).is_empty()
    }

    /// Names of the required and mandatory parts that are not in force, for people.
    pub fn missing(self, required: &Required) -> Vec<String> {
        let parts = Part::ALL.iter().filter(|part| MANDATORY.contains(part) || required.parts.contains(part));
        let mut missing: Vec<String> =
            parts.filter(|part| !self.has(**part)).map(|part| part.name().to_owned()).collect();
        if self.landlock_abi < required.landlock_abi {
            missing.push(format!("landlock-{}", required.landlock_abi));
        }
        missing
    }

    /// Names of the parts in force, for people and the journal.
    pub fn names(self) -> Vec<String> {
        let parts = Part::ALL.iter().filter(|part| self.has(**part)).map(|part| part.name().to_owned());
        parts.chain(self.landlock_abi().map(|abi| format!("landlock-{abi}"))).collect()
    }

    /// Parts in the low 24 bits, the Landlock version above.
    pub fn to_bits(self) -> u32 {
        self.parts | u32::from(self.landlock_abi) << LANDLOCK_SHIFT
    }

    /// `None` for unknown bits: the other side is from another build.
    pub fn from_bits(bits: u32) -> Option<Self> {
        let parts = bits & ((1 << LANDLOCK_SHIFT) - 1);
        let known = Part::ALL.iter().fold(0, |known, part| known | part.bit());
        let landlock_abi = u8::try_from(bits >> LANDLOCK_SHIFT).ok()?;
        (parts & !known == 0).then_some(Self { parts, landlock_abi })
    }
}

impl fmt::Debug for Strength {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Strength({})", self.names().join(" "))
    }
}

impl Part {
    pub const ALL: [Self; 18] = [
        Self::Descriptors,
        Self::Seccomp,
        Self::NoNewPrivileges,
        Self::Limits,
        Self::NotDumpable,
        Self::DiesWithParent,
        Self::NoCapabilities,
        Self::EmptyBoundingSet,
        Self::UnprivilegedIds,
        Self::NoGroups,
        Self::NoNewExecutableMemory,
        Self::UserNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::MountNamespace,
        Self::CgroupNamespace,
        Self::EmptyRoot,
    ];

    /// Stable: users search journals for these names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Descriptors => "one-socket",
            Self::Seccomp => "seccomp",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Limits => "limits",
            Self::NotDumpable => "not-dumpable",
            Self::DiesWithParent => "dies-with-parent",
            Self::NoCapabilities => "no-capabilities",
            Self::EmptyBoundingSet => "empty-bounding-set",
            Self::UnprivilegedIds => "unprivileged-ids",
            Self::NoGroups => "no-groups",
            Self::NoNewExecutableMemory => "no-new-executable-memory",
            Self::UserNamespace => "user-namespace",
            Self::NetworkNamespace => "network-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::MountNamespace => "mount-namespace",
            Self::CgroupNamespace => "cgroup-namespace",
            Self::EmptyRoot => "empty-root",
        }
    }

    const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// A worker does not run without these, whatever is required.
pub(crate) const MANDATORY: &[Part] = &[
    Part::Descriptors,
    Part::Seccomp,
    Part::NoNewPrivileges,
    Part::Limits,
    Part::NotDumpable,
    Part::DiesWithParent,
    Part::NoCapabilities,
];

const LANDLOCK_SHIFT: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn strength(parts: &[Part], landlock_abi: u8) -> Strength {
        let mut strength = Strength::NONE;
        for part in parts {
            strength.add(*part);
        }
        strength.set_landlock_abi(landlock_abi);
        strength
    }

    #[test]
    fn every_strength_survives_encoding() {
        for part in Part::ALL {
            let one = strength(&[part], 6);
            assert_eq!(Strength::from_bits(one.to_bits()), Some(one), "{part:?}");
            assert_eq!(one.names(), [part.name(), "landlock-6"]);
        }
        let all = strength(&Part::ALL, u8::MAX);
        assert_eq!(Strength::from_bits(all.to_bits()), Some(all));
        assert_eq!(all.names().len(), Part::ALL.len() + 1);
        assert_eq!(Strength::from_bits(0), Some(Strength::NONE));
    }

    #[test]
    fn bits_of_another_build_are_rejected() {
        for unknown in 18..LANDLOCK_SHIFT {
            assert_eq!(Strength::from_bits(1 << unknown), None, "bit {unknown}");
        }
    }

    #[test]
    fn strength_without_a_mandatory_part_meets_no_requirement() {
        assert!(strength(MANDATORY, 0).meets(&Required::MINIMUM));
        for part in MANDATORY {
            let others: Vec<Part> = Part::ALL.into_iter().filter(|other| other != part).collect();
            let nothing_asked = Required { parts: &[], landlock_abi: 0 };
            assert_eq!(strength(&others, 9).missing(&nothing_asked), [part.name()]);
        }
    }

    #[test]
    fn missing_parts_are_named() {
        let weak = strength(MANDATORY, 0);
        let missing = weak.missing(&Required::HARDENED);
        assert_eq!(
            missing,
            ["unprivileged-ids", "network-namespace", "ipc-namespace", "mount-namespace", "landlock-1"]
        );
        assert!(!weak.meets(&Required::HARDENED));
        assert!(!strength(&Part::ALL, 3).meets(&Required { parts: &[], landlock_abi: 4 }));
    }
}
