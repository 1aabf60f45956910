//! Which parts of the system can the worker not even name?
//!
//! Nothing here fails: a host may forbid any of it, and then the strength does not list it.

use std::io;

use rustix::{
    fs::Mode,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags},
    thread::UnshareFlags,
};

use crate::{
    strength::{Part, Strength},
    sys,
};

/// Tries each namespace not yet entered by itself, so that a host that forbids one does not cost the others.
pub(crate) fn enter_missing(strength: &mut Strength) {
    for (part, namespace) in EACH {
        if !strength.has(part) {
            strength.add_if(part, sys::unshare(namespace).is_ok());
        }
    }
    if strength.has(Part::MountNamespace) && !strength.has(Part::EmptyRoot) {
        strength.add_if(Part::EmptyRoot, empty_the_root().is_ok());
    }
}

/// For those without the right to the others: inside a user namespace of one's own one has it.
pub(crate) fn enter_user_namespace(strength: &mut Strength) {
    strength.add_if(Part::UserNamespace, sys::unshare(UnshareFlags::NEWUSER).is_ok());
}

pub(crate) fn all_entered(strength: Strength) -> bool {
    EACH.iter().all(|(part, _)| strength.has(*part)) && strength.has(Part::EmptyRoot)
}

/// A working folder is a handle on the old root, and files made from here on would be nobody's to read.
pub(crate) fn leave_working_folder() -> io::Result<()> {
    rustix::process::umask(Mode::RWXU | Mode::RWXG | Mode::RWXO);
    rustix::process::chdir("/")?;
    Ok(())
}

/// A mount namespace alone still shows every file. Puts an empty, read-only folder in the place of `/` and lets go of
/// the old one.
fn empty_the_root() -> io::Result<()> {
    let inert = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    // Any folder that is always there serves as the place to mount on; it is out of sight at once.
    rustix::mount::mount("none", "/proc", "tmpfs", inert, c"mode=0555,nr_inodes=1,size=4k")?;
    rustix::process::chdir("/proc")?;
    rustix::process::pivot_root(".", ".")?;
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    rustix::mount::mount_remount("/", inert | MountFlags::RDONLY, c"")?;
    Ok(())
}

const EACH: [(Part, UnshareFlags); 5] = [
    (Part::NetworkNamespace, UnshareFlags::NEWNET),
    (Part::IpcNamespace, UnshareFlags::NEWIPC),
    (Part::UtsNamespace, UnshareFlags::NEWUTS),
    (Part::CgroupNamespace, UnshareFlags::NEWCGROUP),
    (Part::MountNamespace, UnshareFlags::NEWNS),
];
