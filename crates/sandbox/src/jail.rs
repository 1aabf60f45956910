//! The two phases in which a worker jails itself.
//!
//! The engine is loaded between the phases. Loading needs executable memory and threads, which the second phase
//! forbids; most of the first phase works only while one thread exists.

use std::{fmt, io};

use crate::{
    confine,
    filter::{ProfileError, SeccompProfile},
    layers::{JailKind, Layer, LayerSet},
    limits,
    limits::Limits,
    namespaces, privileges,
    status::StatusFile,
    sys::{self, SocketOption},
};

/// The jail of a worker process, as plain data. Descriptor 0 is its only socket, one end of a unix stream pair
/// created by its parent.
#[derive(Clone, Copy, Debug)]
pub struct WorkerJail {
    /// Bytes that may be mapped in addition to what the loaded engine occupies when the jail is sealed.
    pub address_space_headroom: u64,
    /// CPU time for the whole life of the worker, including loading.
    pub cpu_seconds: u64,
    pub namespaces: Namespaces,
}

/// Whether to try namespaces. The [`LayerSet`] lists those that were entered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Namespaces {
    Enter,
    /// For hosts where the attempt alone raises an alarm, and for tests.
    DangerouslySkip,
}

/// The first phase is complete. Only [`WorkerJail::enter`] creates this, and only [`Entered::seal`] consumes it.
#[derive(Debug)]
#[must_use = "a jail that is entered and not sealed has no seccomp filter and no limits"]
pub struct Entered {
    jail: WorkerJail,
    strength: LayerSet,
    status: StatusFile,
}

impl WorkerJail {
    /// First phase. Call it before any thread exists and while the process owns only the three standard
    /// descriptors: it closes every other descriptor, even if it has an owner. Afterwards no file can be opened and no
    /// socket connected. Memory, threads and memory files are still available.
    pub fn enter(self) -> Result<Entered, JailError> {
        let gateway = socket_peer()?;
        sys::close_range(FIRST_UNKNOWN, u32::MAX).map_err(at("close_range"))?;
        let mut status = StatusFile::open().map_err(at("open `/proc/self/status`"))?;
        let threads = status.read().and_then(|status| status.threads()).map_err(at("count the threads"))?;
        if threads != 1 {
            return Err(JailError::Threads(threads));
        }
        sys::reset_signals().map_err(at("reset the signals"))?;
        limits::bound_descriptors().map_err(at("limit the descriptors"))?;

        let mut strength = LayerSet::NONE;
        self.change_identity(&mut strength)?;
        privileges::forbid_new().map_err(at("no_new_privs"))?;
        die_with(gateway)?;
        strength.add(Layer::DiesWithParent);
        // Not in the second phase: Landlock restricts the calling thread and threads it starts later, but not
        // threads that already run.
        let landlock = confine::refuse_every_path_and_port().map_err(at("landlock"))?;
        strength.set_landlock_abi(landlock.unwrap_or(0));
        Ok(Entered { jail: self, strength, status })
    }

    /// Namespaces, ids and capabilities. The order matters: each step removes rights that earlier steps need.
    fn change_identity(self, strength: &mut LayerSet) -> Result<(), JailError> {
        let wants_namespaces = self.namespaces == Namespaces::Enter;
        if wants_namespaces {
            // Root with CAP_SYS_ADMIN needs no user namespace for this.
            namespaces::enter_missing(strength);
        }
        privileges::empty_bounding_set();
        privileges::drop_root();
        if wants_namespaces && !namespaces::all_entered(*strength) {
            namespaces::enter_user_namespace(strength);
            namespaces::enter_missing(strength);
            // The new user namespace came with a full bounding set.
            privileges::empty_bounding_set();
        }
        namespaces::leave_working_dir().map_err(at("chdir to `/`"))?;
        privileges::drop_capabilities().map_err(at("drop the capabilities"))
    }
}

impl Entered {
    /// Second phase. Call it when the engine is loaded and every worker thread runs and has allocated once. A
    /// thread that is still starting would be killed for a system call that only starting threads make.
    ///
    /// Afterwards descriptors 1 and 2 are closed, and any system call that is not in `profile` kills the process.
    pub fn seal(mut self, profile: &SeccompProfile) -> Result<LayerSet, JailError> {
        let mut strength = self.strength;
        let status = self.status.read().map_err(at("read the status"))?;
        let address_space = status.address_space().map_err(at("measure the address space"))?;
        strength.add_if(Layer::NoNewPrivileges, status.no_new_privileges());
        strength.add_if(Layer::NoCapabilities, status.holds_no_capability());
        strength.add_if(Layer::EmptyBoundingSet, status.bounding_set_is_empty());
        strength.add_if(Layer::UnprivilegedIds, status.is_unprivileged());
        strength.add_if(Layer::NoGroups, status.has_no_groups());
        drop(self.status);

        sys::close_range(STDOUT, STDERR).map_err(at("close the standard descriptors"))?;
        let images = sealed_memory()?;
        strength.add(Layer::Descriptors);
        let filter = profile.compile(&images).map_err(JailError::Profile)?;

        strength.add_if(Layer::NoNewExecutableMemory, sys::refuse_new_executable_memory().is_ok());
        privileges::refuse_dumps().map_err(at("refuse dumps"))?;
        strength.add(Layer::NotDumpable);
        let limits = Limits {
            address_space: address_space.saturating_add(self.jail.address_space_headroom),
            cpu_seconds: self.jail.cpu_seconds,
        };
        limits.apply().map_err(at("set the limits"))?;
        strength.add(Layer::Limits);

        // Checked before the filter, because afterwards the process could not report the error.
        strength.add(Layer::Seccomp);
        let missing = strength.missing(JailKind::Worker, LayerSet::NONE);
        if !missing.is_empty() {
            return Err(JailError::NotInForce(missing));
        }
        // INVARIANT: only the return follows; the process may do nothing else any more.
        sys::filter::install_on_all_threads(&filter).map_err(at("install the seccomp filter"))?;
        Ok(strength)
    }
}

/// Why a worker refuses to run.
#[derive(Debug)]
pub enum JailError {
    /// Descriptor 0 is not one end of a unix stream pair.
    Socket,
    /// The first phase was called with this many threads.
    Threads(u64),
    /// The parent is not, or no longer, the process that created the socket.
    Orphaned,
    /// A descriptor other than the socket and sealed memory files was open at the second phase.
    StrayDescriptor(i32),
    Step {
        step: &'static str,
        source: io::Error,
    },
    Profile(ProfileError),
    /// The kernel accepted every step and then reported these mandatory layers as not in force.
    NotInForce(LayerSet),
}

impl fmt::Display for JailError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket => write!(
                formatter,
                "descriptor 0 is not a unix stream socket; only the gateway can start workers"
            ),
            Self::Threads(count) => {
                write!(formatter, "{count} threads exist; enter the jail before starting threads")
            }
            Self::Orphaned => write!(
                formatter,
                "the parent is not the process that created the socket; only the gateway can start workers"
            ),
            Self::StrayDescriptor(number) => write!(
                formatter,
                "descriptor {number} is open and not a sealed memory file; close it before sealing the jail"
            ),
            Self::Step { step, source } => {
                write!(formatter, "cannot {step}: {source}; `toolgate doctor` shows what this host supports")
            }
            Self::Profile(error) => error.fmt(formatter),
            Self::NotInForce(missing) => write!(
                formatter,
                "the kernel reports `{}` as not in force; `toolgate doctor` shows what this host supports",
                missing.names().join("`, `")
            ),
        }
    }
}

impl std::error::Error for JailError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Step { source, .. } => Some(source),
            Self::Profile(error) => Some(error),
            _ => None,
        }
    }
}

fn at(step: &'static str) -> impl FnOnce(io::Error) -> JailError {
    move |source| JailError::Step { step, source }
}

/// The process id of the other end of descriptor 0, which must be a unix stream socket.
fn socket_peer() -> Result<i32, JailError> {
    let domain = sys::stdin_socket_option(SocketOption::Domain).map_err(|_| JailError::Socket)?;
    let kind = sys::stdin_socket_option(SocketOption::Kind).map_err(|_| JailError::Socket)?;
    if domain != libc::AF_UNIX || kind != libc::SOCK_STREAM {
        return Err(JailError::Socket);
    }
    sys::stdin_peer_process().map_err(|_| JailError::Socket)
}

/// Runs after the last id change, which would clear the signal. The parent is checked after the signal is
/// requested, because a parent that died earlier sends none.
fn die_with(gateway: i32) -> Result<(), JailError> {
    let signal = Some(rustix::process::Signal::KILL);
    rustix::process::set_parent_process_death_signal(signal)
        .map_err(|error| at("set the death signal")(error.into()))?;
    let parent = rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get());
    if parent == Some(gateway) { Ok(()) } else { Err(JailError::Orphaned) }
}

/// The open descriptors except the socket. All of them must be memory files sealed against changes.
fn sealed_memory() -> Result<Vec<i32>, JailError> {
    const NEEDED: i32 = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK;
    let mut images = Vec::new();
    for number in 1..limits::DESCRIPTORS {
        match sys::seals(number).map_err(at("check the descriptors"))? {
            Some(seals) if seals & NEEDED == NEEDED => images.push(number),
            Some(_) => return Err(JailError::StrayDescriptor(number)),
            None => {}
        }
    }
    Ok(images)
}

const STDOUT: u32 = 1;
const STDERR: u32 = 2;
const FIRST_UNKNOWN: u32 = 3;
