//! How does a command run in a container of Docker or Podman, and what came of it? Plain data on both sides.
//!
//! A container is created, looked at, and only then started: what the runtime made must be what was asked, or nothing runs.

mod client;
mod doors;
mod image;
mod inspect;
mod latch;
mod leash;
mod look;
mod making;
mod masks;
mod network;
mod options;
mod owner;
mod plan;
mod running;
mod runtime;
mod walls;

use std::{ffi::OsString, path::PathBuf, time::Duration};

pub use image::ImageName;
pub use network::way_out_of_containers;
pub use running::RunningContainer;
pub use runtime::{NoRuntime, Runtime, RuntimeKind, RuntimeProgram, container_row, probe_runtime};
pub use walls::{ContainerStrength, ContainerWall};

use crate::{Ending, Network, View};

/// One command and everything around it. Text only: a runtime's own files cannot hold other bytes.
#[derive(Debug)]
pub struct ContainerJail {
    /// Must be there already; nothing is ever fetched.
    pub image: ImageName,
    /// With the program, which is looked up in the image. An entry point of the image is not used.
    pub argv: Vec<OsString>,
    /// On top of the image's own. Values without line breaks.
    pub env: Vec<(OsString, OsString)>,
    /// A folder of the image or of a bind.
    pub cwd: PathBuf,
    pub user: ContainerUser,
    /// Binds, what is hidden in them, and the size of `/tmp`. All else comes from the image, which cannot be changed.
    pub view: View,
    /// [`Network::Proxied`] only with a runtime of root. The variables that name the proxy are the caller's to give.
    pub network: Network,
    pub limits: ContainerLimits,
    /// Walls without which it must not run, on top of [`ContainerWall::MANDATORY`].
    pub required: &'static [ContainerWall],
    /// After this the container is killed. Making it counts.
    pub deadline: Duration,
}

/// Who the command is. Never root. Writable binds must be writable for this user, unless the runtime itself is an ordinary
/// user's: then this user is that one, under another number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ContainerUser {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct ContainerLimits {
    /// Of all processes together, swap included.
    pub memory_bytes: u64,
    /// Processor time per time, in thousandths of a processor.
    pub millicpus: u32,
    pub processes: u32,
    /// Of one process.
    pub open_files: u32,
    /// The largest file that may be written.
    pub file_bytes: u64,
}

/// What came of a command in a container.
#[derive(Debug)]
pub struct ContainerReport {
    /// A container tells a program that was killed by signal `n` by the code `128 + n`, as a shell does.
    pub ending: Ending,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stderr_cut: bool,
    /// What it wanted more of than it may have, as far as kernel and runtime say so.
    pub shortages: Vec<Shortage>,
    pub strength: ContainerStrength,
    /// From the start of the program to its end.
    pub elapsed: Duration,
}

/// What a command wanted more of than its container has. It need not have ended by this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shortage {
    /// One of its processes was killed for it.
    Memory,
    /// One could not be started.
    Processes,
}
