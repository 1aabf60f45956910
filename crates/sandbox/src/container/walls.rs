//! Isolation layers around a command in a container.

use std::{collections::BTreeSet, fmt};

use super::RuntimeKind;

/// The layers confirmed by the runtime's description of the finished container and by the kernel.
#[derive(Clone, Eq, PartialEq)]
pub struct ContainerStrength {
    pub(super) runtime: RuntimeKind,
    pub(super) walls: BTreeSet<ContainerWall>,
}

/// One isolation layer.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ContainerWall {
    NetworkNone,
    /// Replaces [`Self::NetworkNone`] with network access: a network namespace that contains only a loopback
    /// interface, checked from inside. The gateway listens there.
    NetworkNamespace,
    ReadOnlyRoot,
    NoCapabilities,
    NoNewPrivileges,
    /// The runtime's default seccomp filter.
    Seccomp,
    PidNamespace,
    IpcNamespace,
    UtsNamespace,
    UnprivilegedUser,
    /// Open files and file sizes of each process.
    Limits,
    MemoryLimit,
    ProcessLimit,
    CpuLimit,
    /// Root in the container is not root outside.
    UserNamespace,
    /// Programs in binds cannot run, unless the bind allows it.
    NoExecution,
    /// Each bind was checked from inside to be the planned file or directory, before the program started.
    SameFiles,
}

impl ContainerWall {
    /// A container does not start without these. Network access is added only after all of them are confirmed.
    pub const MANDATORY: &[Self] = &[
        Self::NetworkNone,
        Self::ReadOnlyRoot,
        Self::NoCapabilities,
        Self::NoNewPrivileges,
        Self::Seccomp,
        Self::PidNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::UnprivilegedUser,
        Self::Limits,
        Self::SameFiles,
    ];

    /// Layers that need control groups.
    pub const BOUNDED: &[Self] = &[Self::MemoryLimit, Self::ProcessLimit, Self::CpuLimit];

    /// Stable: users search journals for these names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NetworkNone => "network-none",
            Self::NetworkNamespace => "network-namespace",
            Self::ReadOnlyRoot => "read-only-root",
            Self::NoCapabilities => "no-capabilities",
            Self::NoNewPrivileges => "no-new-privileges",
            Self::Seccomp => "seccomp-default",
            Self::PidNamespace => "pid-namespace",
            Self::IpcNamespace => "ipc-namespace",
            Self::UtsNamespace => "uts-namespace",
            Self::UnprivilegedUser => "unprivileged-user",
            Self::Limits => "limits",
            Self::MemoryLimit => "memory-limit",
            Self::ProcessLimit => "process-limit",
            Self::CpuLimit => "cpu-limit",
            Self::UserNamespace => "user-namespace",
            Self::NoExecution => "no-execution-in-binds",
            Self::SameFiles => "same-files",
        }
    }
}

impl ContainerStrength {
    pub fn has(&self, wall: ContainerWall) -> bool {
        self.walls.contains(&wall)
    }

    /// Names of the required and mandatory layers that are missing, for people.
    pub fn missing(&self, required: &[ContainerWall]) -> Vec<String> {
        let asked: BTreeSet<ContainerWall> =
            ContainerWall::MANDATORY.iter().chain(required).copied().collect();
        asked.difference(&self.walls).map(|wall| wall.name().to_owned()).collect()
    }

    /// Records that the egress sockets were created: there is a network now.
    pub(super) fn add_egress(&mut self) {
        self.walls.remove(&ContainerWall::NetworkNone);
        self.walls.insert(ContainerWall::NetworkNamespace);
    }

    /// The runtime and the layers in force, for people and the journal.
    pub fn names(&self) -> Vec<String> {
        let runtime = format!("container:{}", self.runtime.name());
        std::iter::once(runtime).chain(self.walls.iter().map(|wall| wall.name().to_owned())).collect()
    }
}

impl fmt::Debug for ContainerStrength {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_layers_are_named() {
        let walls = ContainerWall::MANDATORY.iter().copied().filter(|wall| *wall != ContainerWall::Seccomp);
        let weak = ContainerStrength { runtime: RuntimeKind::Podman, walls: walls.collect() };
        assert_eq!(weak.missing(&[]), ["seccomp-default"]);
        assert_eq!(
            weak.missing(ContainerWall::BOUNDED),
            ["seccomp-default", "memory-limit", "process-limit", "cpu-limit"]
        );
        assert_eq!(weak.names().first().map(String::as_str), Some("container:podman"));
        assert!(!weak.names().contains(&"seccomp-default".to_owned()));
    }
}
