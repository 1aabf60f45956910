//! Process 1 of a jail: makes what the command will see, starts it, and ends with it.

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
    CommandStrength, Network, child,
    encode::Word,
    groundwork::Groundwork,
    passing,
    seal::Filters,
    view::{self, Base},
    walls::Wall,
};
use crate::{
    ProxySockets, privileges,
    sys::{
        self,
        process::{self, Split},
    },
};

/// Whose ids the command has.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Identity {
    /// No user namespace: the ids are what they were.
    Kept,
    /// These ids of the outside are the only ones inside.
    Mapped { user: u32, group: u32 },
}

impl Identity {
    /// What this process would be in a user namespace of its own.
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

/// Why a jail is not made.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// The host lets us enter namespaces and gives us no rights in them.
    NoNamespaces,
    /// A path that every command sees leads elsewhere since it was mounted.
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

/// Enters everything that the kernel keeps apart for this jail, and builds the part of the view that every command sees.
fn prepare(
    groundwork: &Groundwork,
    identity: Identity,
    inner: &UnixStream,
) -> Result<(CommandStrength, Base), Trouble> {
    // A supervisor that has died before this is noticed by the first word, which nobody takes.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(at("ask to die with it"))?;
    let mut strength = CommandStrength::NONE;
    if let Identity::Mapped { user, group } = identity {
        map_ids(user, group).map_err(|_| Trouble::NoNamespaces)?;
        strength.add(Wall::UserNamespace);
    }
    view::make_private().map_err(|_| Trouble::NoNamespaces)?;
    strength.add_if(Wall::ControlGroup, wait_for_the_group(inner).map_err(at("hear from its supervisor"))?);
    // What can be seen of groups begins at the one we are in. Seen from an earlier one, ours is called by a number of the host.
    sys::unshare(UnshareFlags::NEWCGROUP).map_err(|_| Trouble::NoNamespaces)?;
    for wall in NAMESPACES {
        strength.add(wall);
    }
    strength.add(Wall::DiesTogether);
    offer_to_die_first();
    let is_bounded =
        strength.has(Wall::ControlGroup) || bound_processes(groundwork.limits.processes, identity);
    strength.add_if(Wall::ProcessLimit, is_bounded);
    if !strength.has(Wall::ControlGroup) {
        show_processes(inner);
    }
    rustix::system::sethostname(b"jail").map_err(at("set the host name"))?;
    if let Network::Proxied { http_port } = groundwork.network {
        open_sockets(http_port, inner).map_err(at("open the sockets of its network"))?;
    }
    let base = Base::build(groundwork)?;
    strength.add_if(Wall::PrivateProc, base.has_proc);
    // Not to be looked into by the command, whose user it has.
    privileges::refuse_dumps().map_err(at("refuse dumps"))?;
    Ok((strength, base))
}

/// Whether the supervisor has put us into a control group.
pub(crate) fn wait_for_the_group(mut inner: &UnixStream) -> io::Result<bool> {
    let mut answer = [0];
    inner.read_exact(&mut answer)?;
    Ok(answer == [1])
}

/// Whoever must die for want of memory: this one first, with all it starts. Everybody may offer itself, unless a container
/// masks the file.
pub(crate) fn offer_to_die_first() {
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
}

fn map_ids(user: u32, group: u32) -> io::Result<()> {
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    // Without this the kernel lets nobody map a group: leaving a group can grant what the group was denied.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Root's processes are not counted by the kernel's limit for users. Since Linux 6.14 each process namespace has its own
/// highest number; before, the same file is the whole host's and must not be touched.
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

/// Whether a kernel of this release counts processes for each namespace.
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

/// To the supervisor, which counts their memory: the host's `/proc` may hide them. Where there is no other, it must do.
fn show_processes(inner: &UnixStream) {
    if let Ok(processes) = view::all_processes() {
        tell(inner, &Word::Processes, &[processes.as_fd()]);
    }
}

fn open_sockets(http_port: u16, inner: &UnixStream) -> io::Result<()> {
    let ProxySockets { http, dns } = ProxySockets::make_here(http_port)?;
    passing::send(inner, &Word::Sockets.to_frame()?, &[http.as_fd(), dns.as_fd()])
}

/// Buries orphans until the command itself ends, then ends whoever is left, and tells when nobody is.
fn outlive(command: Pid, inner: &UnixStream) -> ! {
    // It needs no right and no descriptor any more but the one on which it tells the end.
    let _ = privileges::drop_capabilities();
    let kept = inner.as_raw_fd().cast_unsigned();
    let _ = sys::close_range(0, kept.saturating_sub(1));
    let _ = sys::close_range(kept.saturating_add(1), u32::MAX);
    let mut exit = None;
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if ended == command => exit = Some(status.as_raw()),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Everybody in here is our child, or becomes it: nobody is left.
            Err(rustix::io::Errno::CHILD) => break,
            Err(_) => sys::leave(1),
        }
        if exit.is_some() {
            process::kill_the_others();
        }
    }
    if let Some(status) = exit
        && let Ok(ended) = process::account_of_children(status)
    {
        tell(inner, &Word::Exit(ended), &[]);
    }
    sys::leave(0)
}

/// Nobody listens any more only when this jail is about to be killed.
pub(crate) fn tell(inner: &UnixStream, word: &Word, descriptors: &[BorrowedFd<'_>]) {
    if let Ok(frame) = word.to_frame() {
        let _ = passing::send(inner, &frame, descriptors);
    }
}

const NAMESPACES: [Wall; 5] = [
    Wall::PidNamespace,
    Wall::NetworkNamespace,
    Wall::IpcNamespace,
    Wall::UtsNamespace,
    Wall::CgroupNamespace,
];

/// The kernel keeps some numbers for itself.
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
