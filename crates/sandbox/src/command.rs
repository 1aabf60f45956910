//! Commands in a jail: the request and the report, as plain data.

mod child;
pub(crate) mod control_group;
mod encode;
mod groundwork;
mod host_tree;
mod init;
mod jailer;
mod memory;
mod notices;
mod passing;
mod prepared;
mod rules;
mod running;
mod seal;
mod supervisor;
mod view;
mod zygote;

use std::{
    ffi::OsString,
    fmt, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::Duration,
};

pub(crate) use init::has_own_process_numbers;
pub use jailer::{JAILER_NAME, Jailer};
pub use running::{Running, ServiceHandle, ServiceStreams};
pub(crate) use view::all_processes;
pub use zygote::{jailer_main, run_if_jailer};

use crate::{LayerSet, Namespaces};

/// Directories of programs and libraries. Every command sees them, except hidden paths in them.
pub const SYSTEM_FOLDERS: [&str; 7] = view::SYSTEM;

/// Files of `/etc` that every command sees, except hidden ones.
pub fn system_settings() -> impl Iterator<Item = PathBuf> {
    view::SETTINGS.iter().map(|name| Path::new("/etc").join(name))
}

/// One command and its jail. Nothing is inherited: a command has only what is listed here.
#[derive(Debug)]
pub struct CommandJail {
    /// Absolute, and visible in the view. Never searched in `PATH`, never passed to a shell.
    pub program: PathBuf,
    /// Includes `argv[0]`.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// A directory of the view.
    pub cwd: PathBuf,
    pub view: View,
    pub network: Network,
    pub limits: CommandLimits,
    pub children: Children,
    /// Layers without which it must not run, in addition to the mandatory ones.
    pub required: LayerSet,
    /// Namespaces are used where possible. Without them, Landlock must be recent enough to restrict signals.
    pub namespaces: Namespaces,
    pub trace: Trace,
}

/// Whether the command may start other processes. Threads are allowed either way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Children {
    Allowed,
    /// The filter denies `fork`. Programs that the workspace names, such as filters of git, cannot run.
    Denied,
}

/// The files of a command, in addition to the system directories, which every command can read and execute.
#[derive(Debug)]
pub struct View {
    pub binds: Vec<Bind>,
    /// Absolute paths on the host. They take precedence over every bind, under each path that a bind gives them,
    /// and over the system directories.
    pub hidden: Vec<PathBuf>,
    /// Hidden paths that may be large directories. They are hidden like the others, but only the first files in
    /// each are checked for hard links, and the jail is not refused if there are more.
    pub hidden_large: Vec<PathBuf>,
    /// Size limit of `/tmp`, which starts empty and ends with the command.
    pub tmp_bytes: u64,
}

#[derive(Debug)]
pub struct Bind {
    pub source: Source,
    /// Its path in the jail: absolute, without `.` and `..`.
    pub at: PathBuf,
    pub access: Access,
}

#[derive(Debug)]
pub enum Source {
    /// Resolved once, by the jailer.
    Path(PathBuf),
    /// Opened with `O_PATH` by the code that checked it.
    Opened(OwnedFd),
}

/// Ordered by how much it allows.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Access {
    /// Files can be read, but not executed or loaded as a library.
    Read,
    /// Files can be read and executed: for programs outside the system directories.
    Execute,
    /// Files can be read, changed, created and removed, but not executed.
    Write,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Network {
    /// A network namespace without any interface, and no sockets of the internet families.
    None,
    /// A network namespace with loopback only. The gateway listens there: a proxy at this port of `127.0.0.1` and a
    /// DNS resolver at port 53. Nothing else can be reached.
    Proxied { http_port: u16 },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CommandLimits {
    /// Data segment of one process, and total memory of all processes.
    pub memory_bytes: u64,
    /// CPU time of one process.
    pub cpu_seconds: u64,
    pub processes: u64,
    pub open_files: u64,
    /// Size of the largest file that may be written.
    pub file_bytes: u64,
}

/// Whether the supervisor watches paths. Denied system calls are reported in any case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trace {
    /// The supervisor checks every path, and the report lists paths that exist but are not granted.
    Refusals,
    Off,
}

#[derive(Clone, Copy, Debug)]
pub struct OutputCaps {
    /// A command that writes more is killed.
    pub stdout: usize,
    /// Further output is read and discarded.
    pub stderr: usize,
}

/// The outcome of a command.
#[derive(Debug)]
pub struct CommandReport {
    pub ending: Ending,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stderr_cut: bool,
    /// The denials, in order, each once.
    pub refused: Vec<Refused>,
    /// Number of denials that are not listed, because the list of their kind was full.
    pub refused_beyond: u64,
    /// How many of those were paths.
    pub paths_beyond: u64,
    pub strength: LayerSet,
    pub usage: CommandUsage,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    Exited(u8),
    Signalled(i32),
    /// The deadline passed; killed with all its descendants.
    TimedOut,
    /// Standard output exceeded its limit; killed with all its descendants.
    OutputTooLarge,
    /// Its processes together exceeded the memory limit; killed with all its descendants.
    OutOfMemory,
    /// It never ran, or the jail failed while it ran.
    JailFailed(String),
}

/// Something a command requested and was denied.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refused {
    /// It exists on the host and is not granted, or not for this access.
    Path { path: PathBuf, access: Attempt },
    /// The system call and known details of its arguments.
    Syscall { name: String, detail: String },
    /// An address other than the proxy's.
    Address { address: String },
    /// A socket like C libraries open for name lookups, which most programs can do without; or one to a daemon on
    /// the host.
    LookUp,
}

/// The attempted access to a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Attempt {
    Read,
    Write,
    Execute,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CommandUsage {
    /// From the start of the jail to the end of the last process.
    pub elapsed: Duration,
    /// Of all processes together.
    pub cpu: Duration,
    /// Maximum of two values: the peak of the largest process, and the highest measured total of all processes.
    pub peak_memory: u64,
}

/// Why a command did not start.
#[derive(Debug)]
pub enum SpawnError {
    /// The description of the jail is invalid.
    Invalid(String),
    /// This host does not support what the caller requires.
    TooWeak { missing: Vec<String> },
    /// A step of creating the jail failed.
    Failed(String),
    /// The deadline passed while a container was created; its remains are removed.
    Late,
    /// The jailer cannot be reached.
    Jailer(io::Error),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(formatter, "the jail is invalid: {why}"),
            Self::TooWeak { missing } => write!(
                formatter,
                "this host does not enforce {}; `toolgate doctor` shows why, and what to do",
                missing.join(", ")
            ),
            Self::Failed(why) => write!(formatter, "cannot create the jail: {why}"),
            Self::Late => write!(formatter, "the container was not created in time"),
            Self::Jailer(error) => write!(formatter, "the jailer does not respond: {error}"),
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Jailer(error) => Some(error),
            _ => None,
        }
    }
}

impl Refused {
    /// One line, for people and the journal.
    pub fn describe(&self) -> String {
        match self {
            Self::Path { path, access } => format!("{} of `{}`", access.noun(), in_one_line(path)),
            Self::Syscall { name, detail } if detail.is_empty() => format!("system call `{name}`"),
            Self::Syscall { name, detail } => format!("system call `{name}` ({detail})"),
            Self::Address { address } => format!("connection to `{address}`"),
            Self::LookUp => "system call `socket` (AF_UNIX, as for name lookups)".to_owned(),
        }
    }
}

/// Escapes a path, which may contain any byte, because reports are read by people and stored line by line.
fn in_one_line(path: &Path) -> String {
    let mut line = String::new();
    for letter in path.to_string_lossy().chars() {
        match letter {
            '\'' | '"' | '\\' => line.push(letter),
            letter => line.extend(letter.escape_debug()),
        }
    }
    line
}

impl Attempt {
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Read => "reading",
            Self::Write => "writing",
            Self::Execute => "execution",
        }
    }
}
