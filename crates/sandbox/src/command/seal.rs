//! Landlock rules, resource limits and choice of the filter of a command.

use std::{
    fs, io,
    os::fd::{BorrowedFd, OwnedFd},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::{
    fs::{CWD, FileType, Mode, OFlags, ResolveFlags},
    process::{Resource, Rlimit, getrlimit, setrlimit},
};

use super::{
    Children, CommandLimits, Network, Trace,
    encode::Order,
    groundwork::Groundwork,
    host_tree,
    init::{Trouble, at},
    notices,
    view::{self, hidden::exists},
};
use crate::{
    filter::{Calls, CommandFilter, CommandProfile, FilterVariant, Paths, Processes, ProfileError, Sockets},
    sys::process,
};

/// The file tree of the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ground {
    /// Its own, in a mount namespace.
    View,
    /// The host's.
    Host,
}

/// All filters, compiled once by the jailer.
#[derive(Debug)]
pub(crate) struct Filters {
    calls: Calls,
    each: Vec<(FilterVariant, CommandFilter)>,
}

impl Filters {
    pub(crate) fn compile() -> Result<Self, ProfileError> {
        let profile = CommandProfile::shipped()?;
        let calls = Calls::of_this_machine()?;
        let mut each = Vec::new();
        for sockets in [Sockets::None, Sockets::Internet] {
            let looks = notices::looks(sockets);
            for processes in [Processes::Namespace, Processes::Group] {
                for paths in [Paths::Watched, Paths::Unwatched] {
                    for children in [Children::Allowed, Children::Denied] {
                        let variant = FilterVariant { sockets, processes, paths, children };
                        each.push((variant, profile.compile(&calls, variant, &looks)?));
                    }
                }
            }
        }
        Ok(Self { calls, each })
    }

    pub(crate) fn for_order(&self, order: &Order, ground: Ground) -> io::Result<&CommandFilter> {
        let wanted = FilterVariant {
            sockets: match order.groundwork.network {
                Network::None => Sockets::None,
                Network::Proxied { .. } => Sockets::Internet,
            },
            processes: match ground {
                Ground::View => Processes::Namespace,
                Ground::Host => Processes::Group,
            },
            paths: match order.trace {
                Trace::Refusals => Paths::Watched,
                Trace::Off => Paths::Unwatched,
            },
            children: order.children,
        };
        let found = self.each.iter().find(|(variant, _)| *variant == wanted);
        found
            .map(|(_, filter)| filter)
            .ok_or_else(|| io::Error::other("no filter exists for this kind of jail"))
    }

    pub(crate) fn name(&self, number: u32) -> &'static str {
        self.calls.name(number).unwrap_or("unknown")
    }
}

/// Sets the limits of each process, except descriptors. Keeps a lower limit that is already in force: it cannot be
/// raised, and need not be.
pub(crate) fn limit(limits: &CommandLimits, ground: Ground) -> io::Result<()> {
    set(Resource::Data, limits.memory_bytes, limits.memory_bytes)?;
    // The kernel does not count the stack as data, and lets it grow up to this limit.
    let most_stack = limits.memory_bytes.min(MOST_STACK);
    set(Resource::Stack, most_stack.min(USUAL_STACK), most_stack)?;
    // The soft limit sends SIGXCPU, which names the reason; the hard limit, a second later, sends SIGKILL. This
    // process built the view, perhaps with a long search, and that time is not the command's.
    let seconds = limits.cpu_seconds.saturating_add(process::own_cpu_time()?.as_secs());
    set(Resource::Cpu, seconds, seconds.saturating_add(1))?;
    set(Resource::Fsize, limits.file_bytes, limits.file_bytes)?;
    set(Resource::Memlock, MOST_LOCKED, MOST_LOCKED)?;
    for none in [Resource::Core, Resource::Msgqueue] {
        set(none, 0, 0)?;
    }
    let others = match ground {
        // Counted in this user namespace only, including the first process.
        Ground::View => 1,
        // The supervisor starts one more thread before the command runs.
        Ground::Host => tasks_of_this_user()?.saturating_add(1),
    };
    let processes = limits.processes.saturating_add(others);
    set(Resource::Nproc, processes, processes)
}

/// Runs last, because creating the jail needs descriptors itself.
pub(crate) fn limit_descriptors(limits: &CommandLimits) -> io::Result<()> {
    set(Resource::Nofile, limits.open_files, limits.open_files)
}

/// The kernel counts all threads of a user together.
fn tasks_of_this_user() -> io::Result<u64> {
    let own = rustix::process::geteuid().as_raw();
    let mut tasks = 0;
    for process in fs::read_dir("/proc")? {
        let folder = process?.path();
        // A process that ends meanwhile no longer counts.
        let Ok(about) = fs::metadata(folder.join("task")) else { continue };
        if about.uid() == own {
            tasks += about.nlink().saturating_sub(2);
        }
    }
    Ok(tasks)
}

/// Raises the limit of open files. Every rule is an open file until it is in force, and hidden paths need many
/// rules. If the hard limit is too low, opening a file fails and the command does not run.
fn make_room_for_rules() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn set(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let (current, maximum) = (Some(soft.min(ceiling)), Some(hard.min(ceiling)));
    setrlimit(resource, Rlimit { current, maximum })?;
    Ok(())
}

/// Landlock rules in the making. Nothing is confined before one of the `enter` functions returns.
#[derive(Debug)]
pub(crate) struct Confinement(RulesetCreated);

impl Confinement {
    /// With the rules that every command in a view has. The root of the tree may not be the root of this process yet: a rule is
    /// about a file or directory, not about its path.
    pub(crate) fn of_view(groundwork: &Groundwork, root: BorrowedFd<'_>) -> Result<Self, Trouble> {
        let mut rules = Self::new(groundwork.network)?;
        let own = [("/", Grant::List), ("/etc", Grant::Read), ("/proc", Grant::Read), ("/tmp", Grant::Write)];
        let own = own.into_iter().chain(view::SYSTEM.iter().map(|path| (*path, Grant::Run)));
        let own = own.map(|(path, grant)| (PathBuf::from(path), grant));
        for (path, grant) in devices().chain(own) {
            let below = path.strip_prefix("/").unwrap_or(&path);
            let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
            let place = rustix::fs::openat2(root, below, PLACE, Mode::empty(), ResolveFlags::IN_ROOT);
            rules.grant_if_there(place, grant)?;
        }
        Ok(rules)
    }

    /// Adds the rules of a command's binds, and confines this process.
    pub(crate) fn enter_view(mut self, order: &Order) -> Result<Option<u8>, Trouble> {
        for bind in &order.binds {
            let place = rustix::fs::openat(CWD, &bind.at, PLACE, Mode::empty());
            self.grant_if_there(place, bind.access.into())?;
        }
        self.enter()
    }

    /// Confines this process in the host's own file tree.
    pub(crate) fn enter_host(order: &Order) -> Result<Option<u8>, Trouble> {
        let mut rules = Self::new(order.groundwork.network)?;
        make_room_for_rules();
        for (place, grant) in host_tree::grants(order).map_err(at("find what is granted"))? {
            rules.grant(place, grant)?;
        }
        // Only its own entry: Landlock has no rule for "self", and the numbers of children are not known yet.
        let own = (PathBuf::from(format!("/proc/{}", std::process::id())), Grant::Read);
        for (path, grant) in devices().chain([own]) {
            rules.grant_if_there(rustix::fs::openat(CWD, &path, PLACE, Mode::empty()), grant)?;
        }
        rules.enter()
    }

    fn new(network: Network) -> Result<Self, Trouble> {
        let rules = Ruleset::default()
            .handle_access(AccessFs::from_all(NEWEST))
            .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
            .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
            .and_then(Ruleset::create);
        let mut rules = Self(rules.map_err(io::Error::other).map_err(at("prepare landlock"))?);
        if let Network::Proxied { http_port } = network {
            let rule = NetPort::new(http_port, AccessNet::ConnectTcp);
            let added = (&mut rules.0).add_rule(rule).map(drop);
            added.map_err(io::Error::other).map_err(at("grant the proxy's port"))?;
        }
        Ok(rules)
    }

    /// A path that does not exist needs no rule.
    fn grant_if_there(&mut self, place: rustix::io::Result<OwnedFd>, grant: Grant) -> Result<(), Trouble> {
        match exists(place.map_err(Into::into)).map_err(at("find what is granted"))? {
            Some(place) => self.grant(place, grant),
            None => Ok(()),
        }
    }

    fn grant(&mut self, place: OwnedFd, grant: Grant) -> Result<(), Trouble> {
        let about = rustix::fs::fstat(&place).map_err(at("look at what is granted"))?;
        let is_folder = FileType::from_raw_mode(about.st_mode).is_dir();
        let rights = if is_folder { grant.rights() } else { grant.rights() & AccessFs::from_file(NEWEST) };
        let added = (&mut self.0).add_rule(PathBeneath::new(place, rights)).map(drop);
        added.map_err(io::Error::other).map_err(at("grant something"))
    }

    /// Returns the version in force; `None` if this kernel has no Landlock.
    fn enter(self) -> Result<Option<u8>, Trouble> {
        let status = self.0.restrict_self().map_err(io::Error::other).map_err(at("enter landlock"))?;
        Ok(match (status.ruleset, status.landlock) {
            (RulesetStatus::NotEnforced, _)
            | (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => None,
            (_, LandlockStatus::Available { effective_abi, .. }) => u8::try_from(effective_abi as i32).ok(),
        })
    }
}

/// Access that a rule grants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Grant {
    /// Directory listing only.
    List,
    Read,
    Run,
    Write,
    /// Read and write what exists, create nothing.
    Device,
}

impl Grant {
    fn rights(self) -> BitFlags<AccessFs> {
        let read = AccessFs::ReadFile | AccessFs::ReadDir;
        match self {
            Self::List => AccessFs::ReadDir.into(),
            Self::Read => read,
            Self::Run => read | AccessFs::Execute,
            Self::Device => read | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev,
            Self::Write => {
                read | AccessFs::WriteFile
                    | AccessFs::Truncate
                    | AccessFs::RemoveDir
                    | AccessFs::RemoveFile
                    | AccessFs::MakeDir
                    | AccessFs::MakeReg
                    | AccessFs::MakeFifo
                    | AccessFs::MakeSym
                    | AccessFs::Refer
            }
        }
    }
}

fn devices() -> impl Iterator<Item = (PathBuf, Grant)> {
    view::DEVICES.iter().map(|name| {
        let grant = if *name == view::ONLY_READ { Grant::Read } else { Grant::Device };
        (Path::new("/dev").join(name), grant)
    })
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const NEWEST: ABI = ABI::V9;
const MOST_LOCKED: u64 = 64 << 10;

/// The usual stack size of programs and threads; and the maximum, which compilers request.
const USUAL_STACK: u64 = 8 << 20;
const MOST_STACK: u64 = 64 << 20;
