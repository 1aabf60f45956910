//! Jails for untrusted code: workers, commands and containers, and the socket protocol to workers. Knows no tools
//! and no callers.

mod command;
mod confine;
mod container;
mod death;
mod egress_sockets;
mod filter;
mod jail;
mod layers;
mod limits;
mod mount_table;
mod namespaces;
mod pool;
mod privileges;
mod probe;
mod status;
mod sys;
pub mod wire;

pub use command::{
    Access, Attempt, Bind, Children, CommandJail, CommandLimits, CommandReport, CommandUsage, Ending,
    JAILER_NAME, Jailer, Network, OutputCaps, Refused, Running, SYSTEM_FOLDERS, ServiceHandle,
    ServiceStreams, Source, SpawnError, Trace, View, jailer_main, run_if_jailer, system_settings,
};
pub use container::{
    ContainerJail, ContainerLimits, ContainerReport, ContainerStrength, ContainerUser, ImageName, NoRuntime,
    RunningContainer, Runtime, RuntimeKind, RuntimeProgram, Shortage, container_egress, container_row,
    probe_runtime,
};
pub use death::{Death, describe_exit};
pub use egress_sockets::ProxySockets;
pub use filter::{ProfileError, SeccompProfile};
pub use jail::{Entered, JailError, Namespaces, WorkerJail};
pub use layers::{JailKind, Layer, LayerSet};
pub use mount_table::MountTable;
pub use pool::{
    Effects, Isolation, Lease, OnEnd, Pool, PoolConfig, ScriptReport, Tenant, WorkerEnd, WorkerFailure,
};
pub use probe::{HostRow, HostState, HostStrength, probe, probe_layers};
pub use sys::leave;

/// `argv[0]` of a worker process.
pub const WORKER_NAME: &str = "toolgate-worker";
