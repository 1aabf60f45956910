//! Commands in Docker or Podman containers: the request and the report, as plain data.
//!
//! A container is created, inspected and only then started. If the runtime did not create exactly what was
//! requested, nothing runs.

mod client;
mod creation;
mod image;
mod inspect;
mod latch;
mod layers;
mod leash;
mod masks;
mod network;
mod observation;
mod options;
mod owner;
mod plan;
mod running;
mod runtime;
mod socket_files;

use std::{ffi::OsString, path::PathBuf, time::Duration};

pub use image::ImageName;
pub use layers::ContainerStrength;
pub use network::container_egress;
pub use running::RunningContainer;
pub use runtime::{NoRuntime, Runtime, RuntimeKind, RuntimeProgram, container_row, probe_runtime};

use crate::{Ending, LayerSet, Network, View};

/// One command and its container. Everything must be text, because the runtimes' own files hold only text.
#[derive(Debug)]
pub struct ContainerJail {
    /// Must exist locally; images are never pulled.
    pub image: ImageName,
    /// Includes the program, which is looked up in the image. The image's entry point is not used.
    pub argv: Vec<OsString>,
    /// Added to the image's variables. Values must not contain line breaks.
    pub env: Vec<(OsString, OsString)>,
    /// A directory of the image or of a bind.
    pub cwd: PathBuf,
    pub user: ContainerUser,
    /// Binds, hidden paths in them, and the size of `/tmp`. The rest comes from the image and is read-only.
    pub view: View,
    /// [`Network::Proxied`] works only if root runs the runtime. The caller sets the variables that name the proxy.
    pub network: Network,
    pub limits: ContainerLimits,
    /// Isolation layers without which it must not run, in addition to the mandatory ones.
    pub required: LayerSet,
    /// Time limit, including the creation of the container; afterwards it is killed.
    pub deadline: Duration,
}

/// The user of the command, never root. Writable binds must be writable for this user. If an ordinary user runs the
/// runtime, this user is mapped to that one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ContainerUser {
    pub uid: u32,
    pub gid: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct ContainerLimits {
    /// For all processes together, including swap.
    pub memory_bytes: u64,
    /// In thousandths of a CPU.
    pub millicpus: u32,
    pub processes: u32,
    /// Per process.
    pub open_files: u32,
    /// Size of the largest file that may be written.
    pub file_bytes: u64,
}

/// The outcome of a command in a container.
#[derive(Debug)]
pub struct ContainerReport {
    /// As in a shell, exit code `128 + n` means that signal `n` killed the program.
    pub ending: Ending,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stderr_cut: bool,
    /// Limits that the command hit, as far as kernel and runtime report them.
    pub shortages: Vec<Shortage>,
    pub strength: ContainerStrength,
    /// From the start of the program to its end.
    pub elapsed: Duration,
}

/// A limit that the command hit. It need not be the cause of its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shortage {
    /// One of its processes was killed because memory ran out.
    Memory,
    /// A process could not be started.
    Processes,
}
