//! Jails: what the kernel is told before untrusted code runs, and the socket that remains. Knows no tool and no caller.

mod command;
mod confine;
mod container;
mod death;
mod filter;
mod jail;
mod limits;
mod mount_table;
mod namespaces;
mod pool;
mod privileges;
mod probe;
mod profile;
mod status;
mod strength;
mod sys;
mod way_out;
pub mod wire;

pub use command::{
    Access, Attempt, Bind, Children, CommandJail, CommandLimits, CommandReport, CommandRequired,
    CommandStrength, CommandUsage, Ending, JAILER_NAME, Jailer, Network, OutputCaps, Refused, Running,
    SYSTEM_FOLDERS, Source, SpawnError, Trace, View, Wall, jailer_main, run_if_jailer, system_settings,
};
pub use container::{
    ContainerJail, ContainerLimits, ContainerReport, ContainerStrength, ContainerUser, ContainerWall,
    ImageName, NoRuntime, RunningContainer, Runtime, RuntimeKind, RuntimeProgram, Shortage, container_row,
    probe_runtime, way_out_of_containers,
};
pub use death::{Death, describe_exit};
pub use jail::{Entered, JailError, Namespaces, WorkerJail};
pub use mount_table::MountTable;
pub use pool::{Effects, Isolation, Lease, OnEnd, Pool, PoolConfig, Report, RunFailure, Tenant, WorkerEnd};
pub use probe::{HostRow, HostState, HostStrength, probe, probe_layers};
pub use profile::{ProfileError, SeccompProfile};
pub use strength::{Part, Required, Strength};
pub use sys::leave;
pub use way_out::ProxySockets;

/// A process whose name (`argv[0]`) is this one is a worker.
pub const WORKER_NAME: &str = "toolgate-worker";
