//! Namespaces of a worker.
//!
//! Nothing here fails: a host may forbid any namespace, and the strength then does not list it.

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

/// Tries each missing namespace separately, because a host may forbid only some of them.
pub(crate) fn enter_missing(strength: &mut Strength) {
    for (part, namespace) in EACH {
        if !strength.has(part) {
            strength.add_if(part, sys::unshare(namespace).is_ok());
        }
    }
    if strength.has(Part::MountNamespace) && !strength.has(Part::EmptyRoot) {
        strength.add_if(Part::EmptyRoot, mount_empty_root().is_ok());
    }
}

/// For processes without the right to create the others: a new user namespace grants it.
pub(crate) fn enter_user_namespace(strength: &mut Strength) {
    strength.add_if(Part::UserNamespace, sys::unshare(UnshareFlags::NEWUSER).is_ok());
}

pub(crate) fn all_entered(strength: Strength) -> bool {
    EACH.iter().all(|(part, _)| strength.has(*part)) && strength.has(Part::EmptyRoot)
}

/// A working directory is a handle to the old root. The umask denies all access to files created from here on.
pub(crate) fn leave_working_dir() -> io::Result<()> {
    rustix::process::umask(Mode::RWXU | Mode::RWXG | Mode::RWXO);
    rustix::process::chdir("/")?;
    Ok(())
}

/// Replaces `/` by an empty read-only directory and detaches the old root, because a mount namespace alone still
/// shows every file.
fn mount_empty_root() -> io::Result<()> {
    let inert = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
    // Any directory that always exists can be the mount point; the new root hides it at once.
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
