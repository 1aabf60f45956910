//! What really stands around a command in a container, and is it enough?

use std::{collections::BTreeSet, fmt};

use super::RuntimeKind;

/// What the runtime, asked about the finished container, and the kernel said.
#[derive(Clone, Eq, PartialEq)]
pub struct ContainerStrength {
    pub(super) runtime: RuntimeKind,
    pub(super) walls: BTreeSet<ContainerWall>,
}

/// One wall.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum ContainerWall {
    NetworkNone,
    /// In place of [`Self::NetworkNone`] where there is a way out: a network of its own, seen from inside to hold a loopback and
    /// nothing else, on which the gateway listens.
    NetworkNamespace,
    ReadOnlyRoot,
    NoCapabilities,
    NoNewPrivileges,
    /// The runtime's own filter of system calls.
    Seccomp,
    PidNamespace,
    IpcNamespace,
    UtsNamespace,
    UnprivilegedUser,
    /// Descriptors and file sizes of each process.
    Limits,
    MemoryLimit,
    ProcessLimit,
    CpuLimit,
    /// Root in the container would not be root outside.
    UserNamespace,
    /// Nothing in a bind can be run, unless the bind says so.
    NoExecution,
    /// Each bind was seen from inside to be the file or folder that was meant, before the program started.
    SameFiles,
}

impl ContainerWall {
    /// Without these no container is started, whatever is asked. A way out is made when they all stand.
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

    /// What a host with control groups has.
    pub const BOUNDED: &[Self] = &[Self::MemoryLimit, Self::ProcessLimit, Self::CpuLimit];

    /// Stable: journals are searched for these words.
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

    /// What is asked for, or mandatory, and does not stand; for people.
    pub fn missing(&self, required: &[ContainerWall]) -> Vec<String> {
        let asked: BTreeSet<ContainerWall> =
            ContainerWall::MANDATORY.iter().chain(required).copied().collect();
        asked.difference(&self.walls).map(|wall| wall.name().to_owned()).collect()
    }

    /// A way out was made: there is a network now.
    pub(super) fn has_a_way_out(&mut self) {
        self.walls.remove(&ContainerWall::NetworkNone);
        self.walls.insert(ContainerWall::NetworkNamespace);
    }

    /// The names of what holds, for people and the journal; the runtime's first.
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
    fn what_is_missing_is_named() {
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
