//! What is a command allowed to see and use, and what came of it? Plain data on both sides of the jail.

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
mod walls;
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
pub use running::Running;
pub(crate) use view::all_processes;
pub use walls::{CommandRequired, CommandStrength, Wall};
pub use zygote::{jailer_main, run_if_jailer};

/// Where programs and libraries lie. Every command sees them, but for what is hidden in them.
pub const SYSTEM_FOLDERS: [&str; 7] = view::SYSTEM;

/// What of `/etc` every command sees, but for what is hidden.
pub fn system_settings() -> impl Iterator<Item = PathBuf> {
    view::SETTINGS.iter().map(|name| Path::new("/etc").join(name))
}

/// One command and everything around it. Nothing is inherited: what is not said here, the command does not have.
#[derive(Debug)]
pub struct CommandJail {
    /// Absolute, and visible in the view. Never searched for, never given to a shell.
    pub program: PathBuf,
    /// With `argv[0]`.
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
    /// A folder of the view.
    pub cwd: PathBuf,
    pub view: View,
    pub network: Network,
    pub limits: CommandLimits,
    pub children: Children,
    pub required: CommandRequired,
    pub trace: Trace,
}

/// Whether the command may start other processes. Threads are allowed either way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Children {
    Allowed,
    /// The filter refuses `fork`. A program that the workspace names, such as a filter of git, cannot run.
    Denied,
}

/// The files of a command, on top of the system's own folders, which every command can read and run.
#[derive(Debug)]
pub struct View {
    pub binds: Vec<Bind>,
    /// Paths of the host, absolute. They win over every bind, under each name that a bind gives them, and over the system's
    /// own folders.
    pub hidden: Vec<PathBuf>,
    /// Those of the hidden paths that may be large folders. They are hidden like the others; only the first files in each are
    /// searched for such as have another name, and a jail is not refused because there are more.
    pub hidden_large: Vec<PathBuf>,
    /// The most that `/tmp`, which starts empty and ends with the command, may hold.
    pub tmp_bytes: u64,
}

#[derive(Debug)]
pub struct Bind {
    pub source: Source,
    /// Where the command sees it: absolute, without `.` and `..`.
    pub at: PathBuf,
    pub access: Access,
}

#[derive(Debug)]
pub enum Source {
    /// Resolved once, by the jailer.
    Path(PathBuf),
    /// Opened with `O_PATH` by whoever checked it.
    Opened(OwnedFd),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Files can be read, not run, nor loaded as a library.
    Read,
    /// Files can be read and run: where programs live that are no part of the system.
    Execute,
    /// Files can be read, changed, made and removed, not run.
    Write,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Network {
    /// A network of its own without any interface, and no socket of the internet families.
    None,
    /// A network of its own with a loopback. There listen, in the gateway's hands, a proxy at this port of `127.0.0.1`
    /// and a resolver at port 53; nothing else can be reached.
    Proxied { http_port: u16 },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CommandLimits {
    /// Data of one process, and of all of them together.
    pub memory_bytes: u64,
    /// Processor time of one process.
    pub cpu_seconds: u64,
    pub processes: u64,
    pub open_files: u64,
    /// The largest file that may be written.
    pub file_bytes: u64,
}

/// Whether paths are watched. Refused system calls are reported in any case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trace {
    /// Every path is looked at once more outside, so that the report names what exists and was not granted.
    Refusals,
    Off,
}

#[derive(Clone, Copy, Debug)]
pub struct OutputCaps {
    /// More than this kills the command.
    pub stdout: usize,
    /// More than this is read and thrown away.
    pub stderr: usize,
}

/// What came of a command.
#[derive(Debug)]
pub struct CommandReport {
    pub ending: Ending,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stderr_cut: bool,
    /// What the jail refused, in order, each once.
    pub refused: Vec<Refused>,
    /// How many refusals are not in the list, because it had no room for more of their kind.
    pub refused_beyond: u64,
    /// Those of them that were paths.
    pub paths_beyond: u64,
    pub strength: CommandStrength,
    pub usage: CommandUsage,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    Exited(u8),
    Signalled(i32),
    /// The deadline passed; killed with all it started.
    TimedOut,
    /// Standard output outgrew its cap; killed with all it started.
    OutputTooLarge,
    /// Its processes together outgrew the memory limit; killed with all it started.
    OutOfMemory,
    /// It never ran, or the jail broke under it.
    JailFailed(String),
}

/// Something a command asked for and did not get.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refused {
    /// It exists on the host and is not granted, or not for this.
    Path { path: PathBuf, access: Attempt },
    /// The call, and what is known of its arguments.
    Syscall { name: String, detail: String },
    /// An address that is not the proxy's.
    Address { address: String },
    /// A socket as C libraries make one to look names up, which most programs do without; or one to a daemon of the host.
    LookUp,
}

/// What was tried on a path.
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
    /// Of the largest process, or of all together at one of the looks at them, whichever is more.
    pub peak_memory: u64,
}

/// Why a command did not start.
#[derive(Debug)]
pub enum SpawnError {
    /// The jail makes no sense as it stands.
    Invalid(String),
    /// This host does not offer what the caller insists on.
    TooWeak { missing: Vec<String> },
    /// A step of making the jail failed.
    Failed(String),
    /// The deadline came while a container was made; what there is of it is removed.
    Late,
    /// The jailer cannot be reached.
    Jailer(io::Error),
}

impl fmt::Display for SpawnError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(why) => write!(formatter, "the jail is not well-formed: {why}"),
            Self::TooWeak { missing } => write!(
                formatter,
                "this host does not enforce {}; `toolgate doctor` shows why and what helps",
                missing.join(", ")
            ),
            Self::Failed(why) => write!(formatter, "the jail cannot be made: {why}"),
            Self::Late => write!(formatter, "the container was not made in time"),
            Self::Jailer(error) => write!(formatter, "the jailer does not answer: {error}"),
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
            Self::LookUp => "system call `socket` (AF_UNIX, as for looking names up)".to_owned(),
        }
    }
}

/// A name may hold anything; a report is read by people and kept line by line.
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
