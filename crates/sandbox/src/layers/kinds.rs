//! Kinds of jail: their possible and mandatory layers, and the requirements that a caller can choose.

use super::{Layer, LayerSet};

/// The kind of a jail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JailKind {
    /// A process that runs JavaScript.
    Worker,
    Command,
    /// A command in a container.
    Container,
}

impl JailKind {
    /// All layers that a jail of this kind can have. A report of any other layer is false.
    pub const fn possible(self) -> LayerSet {
        match self {
            Self::Worker => OF_WORKERS,
            Self::Command => OF_COMMANDS,
            Self::Container => OF_CONTAINERS,
        }
    }

    /// Nothing runs without these, whatever the caller requires. On the host's file tree a command also needs a
    /// version of Landlock that restricts signals.
    pub const fn mandatory(self) -> LayerSet {
        match self {
            Self::Worker => LayerSet::of(&[
                Layer::Descriptors,
                Layer::Seccomp,
                Layer::NoNewPrivileges,
                Layer::Limits,
                Layer::NotDumpable,
                Layer::DiesWithParent,
                Layer::NoCapabilities,
            ]),
            Self::Command => LayerSet::of(&[
                Layer::Seccomp,
                Layer::NoNewPrivileges,
                Layer::NoCapabilities,
                Layer::Limits,
                Layer::DiesTogether,
            ]),
            // Network access is added only after all of them are confirmed.
            Self::Container => LayerSet::of(&[
                Layer::NetworkNone,
                Layer::ReadOnlyRoot,
                Layer::NoCapabilities,
                Layer::NoNewPrivileges,
                Layer::RuntimeSeccomp,
                Layer::PidNamespace,
                Layer::IpcNamespace,
                Layer::UtsNamespace,
                Layer::UnprivilegedUser,
                Layer::Limits,
                Layer::SameFiles,
            ]),
        }
    }

    /// The weakest requirement. Commands need Landlock, which ordinary users have even if namespaces are forbidden.
    pub const fn minimum(self) -> LayerSet {
        match self {
            Self::Worker | Self::Container => LayerSet::NONE,
            Self::Command => LayerSet::NONE.with_landlock(1),
        }
    }

    /// Workers and commands: two independent layers around files and network. Containers: the limits that need
    /// control groups.
    pub const fn hardened(self) -> LayerSet {
        match self {
            Self::Worker => LayerSet::of(&[
                Layer::NetworkNamespace,
                Layer::UnprivilegedIds,
                Layer::IpcNamespace,
                Layer::MountNamespace,
            ])
            .with_landlock(1),
            Self::Command => LayerSet::of(&[
                Layer::PrivateView,
                Layer::PidNamespace,
                Layer::NetworkNamespace,
                Layer::IpcNamespace,
                Layer::ProcessLimit,
            ])
            .with_landlock(1),
            Self::Container => LayerSet::of(&[Layer::MemoryLimit, Layer::ProcessLimit, Layer::CpuLimit]),
        }
    }
}

const OF_WORKERS: LayerSet = LayerSet::of(&[
    Layer::Descriptors,
    Layer::Seccomp,
    Layer::NoNewPrivileges,
    Layer::NoCapabilities,
    Layer::EmptyBoundingSet,
    Layer::UnprivilegedIds,
    Layer::NoGroups,
    Layer::NotDumpable,
    Layer::NoNewExecutableMemory,
    Layer::Limits,
    Layer::DiesWithParent,
    Layer::UserNamespace,
    Layer::NetworkNamespace,
    Layer::IpcNamespace,
    Layer::UtsNamespace,
    Layer::MountNamespace,
    Layer::CgroupNamespace,
    Layer::EmptyRoot,
])
.with_landlock(u8::MAX);

const OF_COMMANDS: LayerSet = LayerSet::of(&[
    Layer::Seccomp,
    Layer::NoNewPrivileges,
    Layer::NoCapabilities,
    Layer::EmptyBoundingSet,
    Layer::Limits,
    Layer::MemoryLimit,
    Layer::ProcessLimit,
    Layer::ControlGroup,
    Layer::DiesTogether,
    Layer::UserNamespace,
    Layer::PrivateView,
    Layer::PidNamespace,
    Layer::NetworkNamespace,
    Layer::IpcNamespace,
    Layer::UtsNamespace,
    Layer::CgroupNamespace,
    Layer::PrivateProc,
])
.with_landlock(u8::MAX);

const OF_CONTAINERS: LayerSet = LayerSet::of(&[
    Layer::RuntimeSeccomp,
    Layer::NoNewPrivileges,
    Layer::NoCapabilities,
    Layer::UnprivilegedUser,
    Layer::Limits,
    Layer::MemoryLimit,
    Layer::ProcessLimit,
    Layer::CpuLimit,
    Layer::UserNamespace,
    Layer::NetworkNone,
    Layer::PidNamespace,
    Layer::NetworkNamespace,
    Layer::IpcNamespace,
    Layer::UtsNamespace,
    Layer::ReadOnlyRoot,
    Layer::NoExecution,
    Layer::SameFiles,
]);
