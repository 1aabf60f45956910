//! Denials of a command: paths, hosts, sockets and system calls, each with its remedy.

use std::{
    io::ErrorKind,
    mem,
    path::{Path, PathBuf},
};

use toolgate_egress::EgressReason;
use toolgate_sandbox::Attempt;

/// The denials of one command.
#[derive(Clone, Debug, Default)]
pub struct Denials {
    pub listed: Vec<Denial>,
    /// Number of denials that are not listed, and how many of those are paths.
    pub dropped: u64,
    pub dropped_paths: u64,
}

impl Denials {
    /// Sorts them for the journal, which shows the first: created paths, then some of each kind in turn. Many denials of
    /// one kind cannot hide the other kinds.
    pub fn put_in_order(&mut self) {
        let mut ranked: Vec<((usize, DenialRank), Denial)> = Vec::with_capacity(self.listed.len());
        for denial in mem::take(&mut self.listed) {
            let rank = denial.rank();
            let before = ranked.iter().filter(|((_, other), _)| *other == rank).count();
            let turn = if rank == DenialRank::Created { 0 } else { before / PER_TURN };
            ranked.push(((turn, rank), denial));
        }
        ranked.sort_by_key(|(place, _)| *place);
        self.listed = ranked.into_iter().map(|(_, denial)| denial).collect();
    }
}

impl From<Vec<Denial>> for Denials {
    fn from(listed: Vec<Denial>) -> Self {
        Self { listed, ..Self::default() }
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Denial {
    Path {
        path: PathBuf,
        access: Attempt,
    },
    Host {
        target: String,
        why: HostDenial,
    },
    /// A blocked path that the command created where it may write. It was renamed to `aside`, unless that failed.
    Created {
        path: PathBuf,
        aside: Result<PathBuf, ErrorKind>,
    },
    /// A description of a socket for a network that the command does not have.
    Socket(String),
    /// A description of anything else, such as a system call.
    Other(String),
    /// A description of something that most programs try and can do without. It is only in the journal: in an error
    /// message it would hide the cause.
    Incidental(String),
    /// A description of the limits of a container, whose denials cannot be observed. Only used if the command failed.
    Bounds(String),
}

/// The order in which a record lists denials.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum DenialRank {
    Created,
    Host,
    Path,
    Other,
}

/// Why a command could not reach a host, as far as an author can change it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HostDenial {
    NotListed,
    Blocked,
    BlockedPort,
    Metadata,
    Private,
    /// A listener of the gateway itself.
    Gateway,
    /// The command did not use the proxy, which is the only egress.
    ProxyBypassed,
    /// No setting is involved.
    Other,
}

impl From<EgressReason> for HostDenial {
    fn from(reason: EgressReason) -> Self {
        match reason {
            EgressReason::NetworkBlocked | EgressReason::HostNotInAllowlist => Self::NotListed,
            EgressReason::HostBlocked => Self::Blocked,
            EgressReason::PortBlocked => Self::BlockedPort,
            EgressReason::MetadataEndpoint => Self::Metadata,
            EgressReason::GatewayListener => Self::Gateway,
            EgressReason::LiteralPrivateIp | EgressReason::ResolvedPrivateIp => Self::Private,
            _ => Self::Other,
        }
    }
}

impl HostDenial {
    const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::NotListed => Some("add the host to `network.allowedHosts`"),
            Self::Blocked => Some(
                "a pattern in `network.blockedHosts` covers the host, and blocked hosts win over allowed ones; remove the pattern to reach it",
            ),
            Self::BlockedPort => Some(
                "the port is closed to this tool for every host: `network.blockedPorts` lists it, or the proxy allows no tunnel to it; use another port",
            ),
            Self::Metadata => Some(
                "it is a metadata endpoint, which no list opens; only `network.blockMetadata: false` does",
            ),
            Self::Private => Some(
                "its address is private; list the address itself in `network.allowedHosts`, or set `network.blockPrivateIPs: false`",
            ),
            Self::Gateway => Some("the gateway listens there, and no tool may call the gateway"),
            Self::ProxyBypassed => Some(
                "only the proxy can reach hosts; configure the program to use it, for example through `HTTPS_PROXY`",
            ),
            Self::Other => None,
        }
    }
}

impl Denial {
    /// One line, for people and the journal.
    pub fn describe(&self) -> String {
        self.describe_with(str::to_owned)
    }

    /// The same line, with every name passed through `shown`.
    pub fn describe_with(&self, shown: impl Fn(&str) -> String) -> String {
        let shown = |name: &str| shown(&name.escape_debug().to_string());
        let shown_path = |path: &Path| shown(&path.display().to_string());
        match self {
            Self::Path { path, access } => {
                let what = match access {
                    Attempt::Read => "reading",
                    Attempt::Execute => "running",
                    Attempt::Write => "writing",
                };
                format!("{what} `{}`", shown_path(path))
            }
            Self::Host { target, .. } => format!("reaching `{}`", shown(target)),
            Self::Created { path, aside } => {
                let result = match aside {
                    Ok(aside) => format!("renamed to `{}`", shown_path(aside)),
                    Err(why) => format!("still there: {why}"),
                };
                format!("creating `{}`, which is blocked ({result})", shown_path(path))
            }
            Self::Socket(what) | Self::Other(what) | Self::Incidental(what) => shown(what),
            Self::Bounds(what) => {
                format!("denials in a container cannot be observed; it has {}", shown(what))
            }
        }
    }

    const fn rank(&self) -> DenialRank {
        match self {
            Self::Created { .. } => DenialRank::Created,
            Self::Host { .. } => DenialRank::Host,
            Self::Path { .. } => DenialRank::Path,
            Self::Socket(_) | Self::Other(_) | Self::Incidental(_) | Self::Bounds(_) => DenialRank::Other,
        }
    }

    /// Whether a manifest could grant it. The kernel's directories belong to the jail.
    pub fn can_be_granted(&self) -> bool {
        match self {
            Self::Path { path, .. } => !["/proc", "/sys", "/dev"].iter().any(|own| path.starts_with(own)),
            Self::Created { .. } | Self::Bounds(_) | Self::Incidental(_) => false,
            Self::Host { .. } | Self::Socket(_) | Self::Other(_) => true,
        }
    }

    /// Whether both are about the same path, for any access.
    pub fn has_path_of(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Path { path, .. }, Self::Path { path: others, .. }) if path == others)
    }

    pub fn is_named_in(&self, text: &str) -> bool {
        match self {
            Self::Path { path, .. } | Self::Created { path, .. } => {
                path.to_str().is_some_and(|path| text.contains(path))
            }
            Self::Host { target, .. } => text.contains(target.as_str()),
            Self::Socket(_) | Self::Other(_) | Self::Incidental(_) | Self::Bounds(_) => false,
        }
    }

    /// The change by the author that would avoid it, if any.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Path { access: Attempt::Write, .. } => Some(
                "to write, set `classification: write`, list the path in `execution.allowedPaths`, and keep it below `sandboxOverrides.fsBasePath` (by default the workspace)",
            ),
            Self::Path { access: Attempt::Execute, .. } => Some(
                "programs in granted directories cannot be run; install the program in a system directory such as `/usr/local/bin`",
            ),
            Self::Path { access: Attempt::Read, .. } => Some("add the path to `execution.allowedPaths`"),
            Self::Host { why, .. } => why.remedy(),
            Self::Socket(_) => Some(
                "to use the network, set `network.access: limited` and list the hosts in `network.allowedHosts`; the tool then reaches them over TCP through the proxy",
            ),
            Self::Created { .. } | Self::Other(_) | Self::Incidental(_) | Self::Bounds(_) => None,
        }
    }
}

/// Denials of one kind that are listed before the next kind.
const PER_TURN: usize = 25;
