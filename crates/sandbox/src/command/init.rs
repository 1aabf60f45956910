//! Process 1 of a jail: prepares the view, starts the command, and ends with it.

use std::{
    fs,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    os::unix::net::UnixStream,
};

use rustix::{
    process::{Pid, Signal, WaitOptions},
    thread::UnshareFlags,
};

use super::{
    Network, child,
    encode::Word,
    groundwork::Groundwork,
    passing,
    seal::Filters,
    view::{self, Base},
};
use crate::{
    Layer, LayerSet, ProxySockets, privileges,
    sys::{
        self,
        process::{self, Split},
    },
};

/// User and group ids of the command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Identity {
    /// No user namespace: the ids are unchanged.
    Kept,
    /// Only these ids exist inside, mapped to themselves.
    Mapped { user: u32, group: u32 },
}

impl Identity {
    /// The mapping for this process in a new user namespace.
    pub(crate) fn now() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Self::Mapped { user, group }
    }
}

pub(crate) fn run(groundwork: &Groundwork, identity: Identity, inner: &UnixStream, filters: &Filters) -> ! {
    match prepare(groundwork, identity, inner) {
        Ok((strength, base)) => match process::fork() {
            Ok(Split::Child) => child::run(base, groundwork, strength, inner, filters),
            Ok(Split::Parent(command)) => {
                drop(base);
                outlive(command, inner)
            }
            Err(error) => tell(inner, &Word::Failed(format!("cannot start a process: {error}")), &[]),
        },
        Err(trouble) => tell(inner, &trouble.into(), &[]),
    }
    sys::leave(1)
}

/// Why a jail cannot be created.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The host allows us to enter namespaces but grants no capabilities in them.
    NoNamespaces,
    /// A system path changed its target since it was mounted.
    Stale,
    Step(String, io::Error),
}

impl From<Trouble> for Word {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::NoNamespaces => Self::TooWeak(Vec::new()),
            Trouble::Stale => Self::Stale,
            Trouble::Step(step, error) => Self::Failed(format!("cannot {step}: {error}")),
        }
    }
}

/// Names the step that failed.
pub(crate) fn at<E: Into<io::Error>>(step: impl Into<String>) -> impl FnOnce(E) -> Trouble {
    |error| Trouble::Step(step.into(), error.into())
}

/// Enters all namespaces of the jail, and builds the part of the view that every command sees.
fn prepare(
    groundwork: &Groundwork,
    identity: Identity,
    inner: &UnixStream,
) -> Result<(LayerSet, Base), Trouble> {
    // A supervisor that died earlier is noticed at the first message, which then fails.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(at("request the death signal"))?;
    let mut strength = LayerSet::NONE;
    if let Identity::Mapped { user, group } = identity {
        map_ids(user, group).map_err(|_| Trouble::NoNamespaces)?;
        strength.add(Layer::UserNamespace);
    }
    view::make_private().map_err(|_| Trouble::NoNamespaces)?;
    strength
        .add_if(Layer::ControlGroup, wait_for_the_group(inner).map_err(at("receive from the supervisor"))?);
    // Visible control groups start at the one we are in, so this namespace comes after joining ours. From an
    // earlier one, the path of our group would reveal a process id of the host.
    sys::unshare(UnshareFlags::NEWCGROUP).map_err(|_| Trouble::NoNamespaces)?;
    strength = strength.union(NAMESPACES);
    strength.add(Layer::DiesTogether);
    offer_to_die_first();
    let is_bounded =
        strength.has(Layer::ControlGroup) || bound_processes(groundwork.limits.processes, identity);
    strength.add_if(Layer::ProcessLimit, is_bounded);
    if !strength.has(Layer::ControlGroup) {
        show_processes(inner);
    }
    rustix::system::sethostname(b"jail").map_err(at("set the host name"))?;
    if let Network::Proxied { http_port } = groundwork.network {
        open_sockets(http_port, inner).map_err(at("open the sockets of its network"))?;
    }
    let base = Base::build(groundwork)?;
    strength.add_if(Layer::PrivateProc, base.has_proc);
    // Protects this process from the command, which has the same user.
    privileges::refuse_dumps().map_err(at("refuse dumps"))?;
    Ok((strength, base))
}

/// Whether the supervisor put us into a control group.
pub(crate) fn wait_for_the_group(mut inner: &UnixStream) -> io::Result<bool> {
    let mut answer = [0];
    inner.read_exact(&mut answer)?;
    Ok(answer == [1])
}

/// Makes this process and its descendants the first victims of the kernel's OOM killer. Any process may raise its
/// own score, unless a container masks the file.
pub(crate) fn offer_to_die_first() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

fn map_ids(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    // The kernel requires this before it allows a group mapping: leaving a group can grant rights that the group
    // was denied.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// The kernel's per-user limit does not count root's processes. Since Linux 6.14 each PID namespace has its own
/// highest process id. Before that, the file belongs to the whole host and must not be changed.
fn bound_processes(most: u64, identity: Identity) -> bool {
    if let Identity::Mapped { user: 1.., .. } = identity {
        return true;
    }
    let system = rustix::system::uname();
    if !system.release().to_str().is_ok_and(has_own_process_numbers) {
        return false;
    }
    let most = most.max(LOWEST_HIGHEST_PID).to_string();
    fs::write("/proc/sys/kernel/pid_max", &most).is_ok()
        && fs::read_to_string("/proc/sys/kernel/pid_max").is_ok_and(|now| now.trim() == most)
}

/// Whether a kernel of this release limits process ids per namespace.
pub(crate) fn has_own_process_numbers(release: &str) -> bool {
    at_least(release, (6, 14))
}

fn at_least(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= wanted,
        _ => false,
    }
}

/// Sends a `/proc` to the supervisor, which measures memory: the host's `/proc` may hide these processes. If none
/// can be mounted, the supervisor uses the host's.
fn show_processes(inner: &UnixStream) {
    if let Ok(processes) = view::all_processes() {
        tell(inner, &Word::Processes, &[processes.as_fd()]);
    }
}

fn open_sockets(http_port: u16, inner: &UnixStream) -> io::Result<()> {
    let ProxySockets { http, dns } = ProxySockets::create_here(http_port)?;
    passing::send(inner, &Word::Sockets.to_frame()?, &[http.as_fd(), dns.as_fd()])
}

/// Reaps orphans until the command ends, kills the remaining processes, and reports when none is left.
fn outlive(command: Pid, inner: &UnixStream) -> ! {
    // It no longer needs capabilities, nor descriptors except the one for its report.
    let _ = privileges::drop_capabilities();
    let kept = inner.as_raw_fd().cast_unsigned();
    let _ = sys::close_range(0, kept.saturating_sub(1));
    let _ = sys::close_range(kept.saturating_add(1), u32::MAX);
    let mut exit = None;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == command => exit = Some(status.as_raw()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // All processes here are our children or become so: none is left.
            Err(rustix::io::Errno::CHILD) => break,
            Err(_) => sys::leave(1),
        }
        if exit.is_some() {
            process::kill_other_processes();
        }
    }
    if let Some(status) = exit
        && let Ok(ended) = process::usage_of_children(status)
    {
        tell(inner, &Word::Exit(ended), &[]);
    }
    sys::leave(0)
}

/// Sends a message. Errors are ignored: the receiver is gone only if this jail is about to be killed.
pub(crate) fn tell(inner: &UnixStream, word: &Word, descriptors: &[BorrowedFd<'_>]) {
    if let Ok(frame) = word.to_frame() {
        let _ = passing::send(inner, &frame, descriptors);
    }
}

const NAMESPACES: LayerSet = LayerSet::of(&[
    Layer::PidNamespace,
    Layer::NetworkNamespace,
    Layer::IpcNamespace,
    Layer::UtsNamespace,
    Layer::CgroupNamespace,
]);

/// The kernel reserves some process ids.
const LOWEST_HIGHEST_PID: u64 = 301;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        for newer in ["6.14", "6.14.0-rc1", "6.18.44-fc-v445", "7.0.1", "10.2"] {
            assert!(at_least(newer, (6, 14)), "{newer}");
        }
        for older in ["6.9.3", "6.13.12", "5.15.0-91-generic", "", "six", "6"] {
            assert!(!at_least(older, (6, 14)), "{older}");
        }
    }
}
