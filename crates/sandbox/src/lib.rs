//! Jails: what the kernel is told before untrusted code runs, and the socket that remains. Knows no tool and no caller.

mod confine;
mod death;
mod jail;
mod limits;
mod namespaces;
mod pool;
mod privileges;
mod probe;
mod profile;
mod status;
mod strength;
mod sys;
pub mod wire;

pub use death::{Death, describe_exit};
pub use jail::{Entered, JailError, Namespaces, WorkerJail};
pub use pool::{Effects, Isolation, Lease, Pool, PoolConfig, Report, RunFailure, Tenant};
pub use probe::{HostRow, HostState, HostStrength, probe};
pub use profile::{ProfileError, SeccompProfile};
pub use strength::{Part, Required, Strength};
pub use sys::leave;

/// A process whose name (`argv[0]`) is this one is a worker.
pub const WORKER_NAME: &str = "toolgate-worker";
