//! What is a command given, and what came of it? Plain data between the tool and whoever makes the jail.

use std::{
    ffi::OsString,
    fmt,
    fs::File,
    future::Future,
    io::ErrorKind,
    mem,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::io::{AsyncRead, AsyncWrite};
use toolgate_egress::{BodyGuard, EgressReason, EgressRules};
use toolgate_gate::EffectEntry;
use toolgate_sandbox::Children;
use toolgate_spec::model::SandboxKind;

/// Makes a jail and runs one command in it. Dropping the future ends the command and everything it started.
pub trait Launch: Send + Sync {
    fn launch(&self, order: Order) -> Pin<Box<dyn Future<Output = Ended> + Send>>;

    /// Starts a command that runs until its [`ServiceProcess`] is dropped. The order's standard input and deadline are not used.
    fn start(&self, _order: Order) -> ServiceStart {
        let why = "this sandbox runs no long-lived commands; set `execution.sandbox` to `process`";
        Box::pin(std::future::ready(Err(why.to_owned())))
    }
}

pub type ServiceStart = Pin<Box<dyn Future<Output = Result<ServiceProcess, String>> + Send>>;

/// A long-lived command in its jail. Dropping it kills the command and all of its descendants.
pub struct ServiceProcess {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The isolation layers in force.
    pub layers: Vec<String>,
    /// Connections and denials so far.
    pub so_far: Arc<SoFar>,
    /// Ends the command when it is dropped.
    pub handle: Box<dyn Send + Sync>,
}

impl fmt::Debug for ServiceProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ServiceProcess").field("layers", &self.layers).finish_non_exhaustive()
    }
}

/// One command and everything around it. What is not said here, the command does not have.
#[derive(Debug)]
pub struct Order {
    /// Absolute and without links; for a container, the name that the image is asked for.
    pub program: PathBuf,
    /// With `argv[0]`, the name that the program is called by.
    pub argv: Vec<String>,
    pub env: Vec<(String, OsString)>,
    pub stdin: Vec<u8>,
    pub cwd: PathBuf,
    pub binds: Vec<Bind>,
    /// Absolute paths that stay out of sight, whatever is bound.
    pub hidden: Vec<PathBuf>,
    /// Those of them that may be large folders: only the first files in each are searched for such as have another name.
    pub hidden_large: Vec<PathBuf>,
    /// `None`: no network at all.
    pub network: Option<WayOut>,
    pub sandbox: SandboxKind,
    pub children: Children,
    pub limits: OrderLimits,
    pub deadline: Duration,
    pub trace: Trace,
    pub so_far: Arc<SoFar>,
}

/// What a command was seen to do while it ran, for a call that is dropped before the command ends. Whoever carries the order out
/// says whom to ask.
#[derive(Default)]
pub struct SoFar(Mutex<Option<Box<Witness>>>);

type Witness = dyn Fn() -> (Reached, Refusals) + Send;

impl SoFar {
    pub fn told_by(&self, witness: impl Fn() -> (Reached, Refusals) + Send + 'static) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(witness));
    }

    pub fn tell(&self) -> (Reached, Refusals) {
        let witness = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        witness.as_ref().map(|witness| witness()).unwrap_or_default()
    }
}

impl fmt::Debug for SoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SoFar").finish_non_exhaustive()
    }
}

/// What a command may reach, through the gateway's proxy, and who looks through what it sends.
#[derive(Clone)]
pub struct WayOut {
    pub rules: EgressRules,
    pub guard: Arc<dyn BodyGuard>,
    /// Methods that a person has to be asked for, and nobody was.
    pub refused_methods: Vec<String>,
}

impl fmt::Debug for WayOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WayOut")
            .field("rules", &self.rules)
            .field("refused_methods", &self.refused_methods)
            .finish_non_exhaustive()
    }
}

/// Something of the host that the command sees, under its own name. Ordered from the outside in.
#[derive(Debug)]
pub struct Bind {
    pub path: PathBuf,
    pub access: Access,
    /// What was judged, held open; the jail binds this and resolves no name again.
    pub held: File,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Access {
    Read,
    /// Read and run.
    Execute,
    Write,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OrderLimits {
    pub memory_bytes: u64,
    pub cpu_seconds: u64,
    pub processes: u64,
    pub open_files: u64,
    pub file_bytes: u64,
    pub tmp_bytes: u64,
    /// More than this ends the command.
    pub stdout_bytes: usize,
    /// More than this is thrown away.
    pub stderr_bytes: usize,
}

/// Are refused paths looked for? It costs a little for each file that is opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trace {
    Refusals,
    Off,
}

/// What came of a command.
#[derive(Clone, Debug)]
pub struct Ended {
    pub ending: Ending,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// What the jail refused.
    pub refused: Refusals,
    /// The walls that were really in force.
    pub walls: Vec<String>,
    pub effects: Reached,
    pub usage: Usage,
}

/// What passed through a command's way out.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    pub told: Vec<EffectEntry>,
    /// More than are told one by one, and what went through them.
    pub dropped: u32,
    pub dropped_bytes: u64,
}

/// What was refused to a command.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    pub told: Vec<Refused>,
    /// More than are told one by one, and those of them that are paths.
    pub dropped: u64,
    pub dropped_paths: u64,
}

impl Refusals {
    /// A record shows the first of them: what was made, and then so many of each kind by turns. A flood of one hides no other.
    pub fn put_in_order(&mut self) {
        let mut ranked: Vec<((usize, Rank), Refused)> = Vec::with_capacity(self.told.len());
        for refused in mem::take(&mut self.told) {
            let rank = refused.rank();
            let before = ranked.iter().filter(|((_, other), _)| *other == rank).count();
            let turn = if rank == Rank::Made { 0 } else { before / AT_ONE_TURN };
            ranked.push(((turn, rank), refused));
        }
        ranked.sort_by_key(|(place, _)| *place);
        self.told = ranked.into_iter().map(|(_, refused)| refused).collect();
    }
}

impl From<Vec<Refused>> for Refusals {
    fn from(told: Vec<Refused>) -> Self {
        Self { told, ..Self::default() }
    }
}

impl Ended {
    /// Nothing ran, or nothing is known of it.
    pub fn at_once(ending: Ending) -> Self {
        Self {
            ending,
            stdout: Vec::new(),
            stderr: Vec::new(),
            refused: Refusals::default(),
            walls: Vec::new(),
            effects: Reached::default(),
            usage: Usage::default(),
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Ending {
    Exited(u8),
    Signalled(i32),
    TimedOut,
    OutputTooLarge,
    OutOfMemory,
    /// No jail as strong as required, or it broke.
    NoJail(String),
}

impl From<toolgate_sandbox::Ending> for Ending {
    fn from(ending: toolgate_sandbox::Ending) -> Self {
        use toolgate_sandbox::Ending as Jail;
        match ending {
            Jail::Exited(code) => Self::Exited(code),
            Jail::Signalled(signal) => Self::Signalled(signal),
            Jail::TimedOut => Self::TimedOut,
            Jail::OutputTooLarge => Self::OutputTooLarge,
            Jail::OutOfMemory => Self::OutOfMemory,
            Jail::JailFailed(why) => Self::NoJail(why),
        }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Refused {
    Path {
        path: PathBuf,
        access: Access,
    },
    Host {
        target: String,
        why: NotReached,
    },
    /// Blocked, and made all the same where the command may write; then set aside under this name, unless that failed.
    Made {
        path: PathBuf,
        aside: Result<PathBuf, ErrorKind>,
    },
    /// Of a network that the command does not have; in words.
    Socket(String),
    /// Such as a system call; in words.
    Other(String),
    /// What most programs try and do without; in words, and for the journal only: in a failure it would hide what matters.
    InPassing(String),
    /// What its surroundings do not have, where nobody sees what was refused; in words. Told of a failure only.
    Lack(String),
}

/// What a record shows first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Rank {
    Made,
    Host,
    Path,
    Other,
}

/// What kept a command from a host, as far as an author can do something about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NotReached {
    NotListed,
    Blocked,
    BlockedPort,
    Metadata,
    Private,
    /// A listener of the gateway itself.
    Gateway,
    /// It went round the proxy, which alone leads out.
    NotByProxy,
    /// Something else than a setting.
    Otherwise,
}

impl From<EgressReason> for NotReached {
    fn from(reason: EgressReason) -> Self {
        match reason {
            EgressReason::NetworkBlocked | EgressReason::HostNotInAllowlist => Self::NotListed,
            EgressReason::HostBlocked => Self::Blocked,
            EgressReason::PortBlocked => Self::BlockedPort,
            EgressReason::MetadataEndpoint => Self::Metadata,
            EgressReason::GatewayListener => Self::Gateway,
            EgressReason::LiteralPrivateIp | EgressReason::ResolvedPrivateIp => Self::Private,
            _ => Self::Otherwise,
        }
    }
}

impl NotReached {
    const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::NotListed => Some("add the host to `network.allowedHosts`"),
            Self::Blocked => Some(
                "a pattern in `network.blockedHosts` covers the host, and blocked hosts win over allowed ones; remove the pattern to reach it",
            ),
            Self::BlockedPort => Some(
                "the port is closed to this tool, whatever the host: `network.blockedPorts` has it, or it is none for tunnels; use another one",
            ),
            Self::Metadata => Some(
                "it is a metadata endpoint, which no list opens; only `network.blockMetadata: false` does",
            ),
            Self::Private => Some(
                "its address is private; list the address itself in `network.allowedHosts`, or say `network.blockPrivateIPs: false`",
            ),
            Self::Gateway => Some("the gateway listens there, and no tool may call the gateway"),
            Self::NotByProxy => Some(
                "only the proxy leads out: have the program use it, as `HTTPS_PROXY` and its kin say, and not go round it",
            ),
            Self::Otherwise => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    pub elapsed: Duration,
    pub memory_bytes: u64,
}

impl Refused {
    /// One line, for people and the journal.
    pub fn describe(&self) -> String {
        self.describe_with(str::to_owned)
    }

    /// The same, with names as `shown` has them.
    pub fn describe_with(&self, shown: impl Fn(&str) -> String) -> String {
        let shown = |name: &str| shown(&name.escape_debug().to_string());
        let shown_path = |path: &Path| shown(&path.display().to_string());
        match self {
            Self::Path { path, access } => {
                let what = match access {
                    Access::Read => "reading",
                    Access::Execute => "running",
                    Access::Write => "writing",
                };
                format!("{what} `{}`", shown_path(path))
            }
            Self::Host { target, .. } => format!("reaching `{}`", shown(target)),
            Self::Made { path, aside } => {
                let since = match aside {
                    Ok(aside) => format!("set aside as `{}`", shown_path(aside)),
                    Err(why) => format!("and is still there: {why}"),
                };
                format!("making `{}`, which is blocked ({since})", shown_path(path))
            }
            Self::Socket(what) | Self::Other(what) | Self::InPassing(what) => shown(what),
            Self::Lack(what) => format!("what nobody saw; the container has {}", shown(what)),
        }
    }

    const fn rank(&self) -> Rank {
        match self {
            Self::Made { .. } => Rank::Made,
            Self::Host { .. } => Rank::Host,
            Self::Path { .. } => Rank::Path,
            Self::Socket(_) | Self::Other(_) | Self::InPassing(_) | Self::Lack(_) => Rank::Other,
        }
    }

    /// Could a manifest grant it? The kernel's own folders are the jail's.
    pub fn can_be_granted(&self) -> bool {
        match self {
            Self::Path { path, .. } => !["/proc", "/sys", "/dev"].iter().any(|own| path.starts_with(own)),
            Self::Made { .. } | Self::Lack(_) | Self::InPassing(_) => false,
            Self::Host { .. } | Self::Socket(_) | Self::Other(_) => true,
        }
    }

    /// Whatever was wanted with it.
    pub fn is_about_the_path_of(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Path { path, .. }, Self::Path { path: others, .. }) if path == others)
    }

    pub fn is_named_in(&self, text: &str) -> bool {
        match self {
            Self::Path { path, .. } | Self::Made { path, .. } => {
                path.to_str().is_some_and(|path| text.contains(path))
            }
            Self::Host { target, .. } => text.contains(target.as_str()),
            Self::Socket(_) | Self::Other(_) | Self::InPassing(_) | Self::Lack(_) => false,
        }
    }

    /// What an author changes so that it is not refused, where that is a thing to change.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Path { access: Access::Write, .. } => Some(
                "a tool that writes says `classification: write`, lists the path in `execution.allowedPaths`, and has it below `sandboxOverrides.fsBasePath`, which is the workspace where nothing else is said",
            ),
            Self::Path { access: Access::Execute, .. } => Some(
                "nothing in granted folders can be run; install the program in one of the system's folders, such as `/usr/local/bin`",
            ),
            Self::Path { access: Access::Read, .. } => Some("add the path to `execution.allowedPaths`"),
            Self::Host { why, .. } => why.remedy(),
            Self::Socket(_) => Some(
                "a tool that reaches out says `network.access: limited` and lists its hosts in `network.allowedHosts`; then TCP to the proxy is what it has",
            ),
            Self::Made { .. } | Self::Other(_) | Self::InPassing(_) | Self::Lack(_) => None,
        }
    }
}

/// Of one kind, before others come.
const AT_ONE_TURN: usize = 25;
