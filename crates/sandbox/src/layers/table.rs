//! The table of isolation layers.

/// One isolation layer. The numbers are bits of an encoded [`super::LayerSet`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Layer {
    Descriptors,
    Seccomp,
    RuntimeSeccomp,
    NoNewPrivileges,
    NoCapabilities,
    EmptyBoundingSet,
    UnprivilegedIds,
    UnprivilegedUser,
    NoGroups,
    NotDumpable,
    NoNewExecutableMemory,
    Limits,
    MemoryLimit,
    ProcessLimit,
    CpuLimit,
    ControlGroup,
    DiesWithParent,
    DiesTogether,
    UserNamespace,
    PrivateView,
    NetworkNone,
    PidNamespace,
    NetworkNamespace,
    IpcNamespace,
    UtsNamespace,
    MountNamespace,
    CgroupNamespace,
    PrivateProc,
    EmptyRoot,
    ReadOnlyRoot,
    NoExecution,
    SameFiles,
}

impl Layer {
    pub const ALL: [Self; 32] = [
        Self::Descriptors,
        Self::Seccomp,
        Self::RuntimeSeccomp,
        Self::NoNewPrivileges,
        Self::NoCapabilities,
        Self::EmptyBoundingSet,
        Self::UnprivilegedIds,
        Self::UnprivilegedUser,
        Self::NoGroups,
        Self::NotDumpable,
        Self::NoNewExecutableMemory,
        Self::Limits,
        Self::MemoryLimit,
        Self::ProcessLimit,
        Self::CpuLimit,
        Self::ControlGroup,
        Self::DiesWithParent,
        Self::DiesTogether,
        Self::UserNamespace,
        Self::PrivateView,
        Self::NetworkNone,
        Self::PidNamespace,
        Self::NetworkNamespace,
        Self::IpcNamespace,
        Self::UtsNamespace,
        Self::MountNamespace,
        Self::CgroupNamespace,
        Self::PrivateProc,
        Self::EmptyRoot,
        Self::ReadOnlyRoot,
        Self::NoExecution,
        Self::SameFiles,
    ];

    /// Stable: users search journals for these names.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// One sentence for people.
    pub const fn description(self) -> &'static str {
        self.row().1
    }

    pub(super) const fn bit(self) -> u64 {
        1 << self as u8
    }

    const fn row(self) -> (&'static str, &'static str) {
        match self {
            Self::Descriptors => ("one-socket", "No descriptor but one socket leads out of the process."),
            Self::Seccomp => ("seccomp", "Toolgate's filter allows only listed system calls."),
            Self::RuntimeSeccomp => {
                ("seccomp-default", "The container runtime's default filter restricts system calls.")
            }
            Self::NoNewPrivileges => ("no-new-privileges", "No program can gain privileges."),
            Self::NoCapabilities => ("no-capabilities", "The process holds no capability."),
            Self::EmptyBoundingSet => ("empty-bounding-set", "No capability can be gained again."),
            Self::UnprivilegedIds => ("unprivileged-ids", "No user or group id of the process is root's."),
            Self::UnprivilegedUser => {
                ("unprivileged-user", "The command runs as the requested user, who is not root.")
            }
            Self::NoGroups => ("no-groups", "The process has no supplementary groups."),
            Self::NotDumpable => ("not-dumpable", "No debugger can attach, and no core dump is written."),
            Self::NoNewExecutableMemory => {
                ("no-new-executable-memory", "Memory that was not executable cannot become executable.")
            }
            Self::Limits => ("limits", "Each process has resource limits."),
            Self::MemoryLimit => ("memory-limit", "The total memory of all processes is limited."),
            Self::ProcessLimit => ("process-limit", "The number of processes is limited."),
            Self::CpuLimit => ("cpu-limit", "The share of CPU time is limited."),
            Self::ControlGroup => ("control-group", "A control group limits memory and processes together."),
            Self::DiesWithParent => ("dies-with-parent", "The kernel kills the worker with its gateway."),
            Self::DiesTogether => {
                ("dies-together", "Every process is killed with the gateway, and with the command.")
            }
            Self::UserNamespace => ("user-namespace", "Root inside is not root outside."),
            Self::PrivateView => ("private-view", "Files that are not granted do not exist."),
            Self::NetworkNone => ("network-none", "There is no network."),
            Self::PidNamespace => ("pid-namespace", "Processes outside are neither visible nor reachable."),
            Self::NetworkNamespace => {
                ("network-namespace", "The network has only its own loopback interface.")
            }
            Self::IpcNamespace => ("ipc-namespace", "Shared memory and message queues are separate."),
            Self::UtsNamespace => ("uts-namespace", "The host name is separate."),
            Self::MountNamespace => ("mount-namespace", "Mounts are separate."),
            Self::CgroupNamespace => ("cgroup-namespace", "Control groups of the host are not visible."),
            Self::PrivateProc => ("private-proc", "`/proc` shows only the command's own processes."),
            Self::EmptyRoot => ("empty-root", "The root directory is empty."),
            Self::ReadOnlyRoot => ("read-only-root", "The image is read-only."),
            Self::NoExecution => {
                ("no-execution-in-binds", "Programs in binds cannot run, unless the bind allows it.")
            }
            Self::SameFiles => {
                ("same-files", "Each bind was checked from inside to be the requested file or directory.")
            }
        }
    }
}
