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
    layers::{Layer, LayerSet},
    sys,
};

/// Tries each missing namespace separately, because a host may forbid only some of them.
pub(crate) fn enter_missing(strength: &mut LayerSet) {
    for (layer, namespace) in EACH {
        if !strength.has(layer) {
            strength.add_if(layer, sys::unshare(namespace).is_ok());
        }
    }
    if strength.has(Layer::MountNamespace) && !strength.has(Layer::EmptyRoot) {
        strength.add_if(Layer::EmptyRoot, mount_empty_root().is_ok());
    }
}

/// For processes without the right to create the others: a new user namespace grants it.
pub(crate) fn enter_user_namespace(strength: &mut LayerSet) {
    strength.add_if(Layer::UserNamespace, sys::unshare(UnshareFlags::NEWUSER).is_ok());
}

pub(crate) fn all_entered(strength: LayerSet) -> bool {
    EACH.iter().all(|(layer, _)| strength.has(*layer)) && strength.has(Layer::EmptyRoot)
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

const EACH: [(Layer, UnshareFlags); 5] = [
    (Layer::NetworkNamespace, UnshareFlags::NEWNET),
    (Layer::IpcNamespace, UnshareFlags::NEWIPC),
    (Layer::UtsNamespace, UnshareFlags::NEWUTS),
    (Layer::CgroupNamespace, UnshareFlags::NEWCGROUP),
    (Layer::MountNamespace, UnshareFlags::NEWNS),
];
