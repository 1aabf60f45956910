//! The file tree of a command, assembled from mounts.
//!
//! Everything works on descriptors: the file that was opened and checked is the file that is mounted, and no path
//! is resolved twice.

mod base;
pub(crate) mod hidden;
mod kernels;
mod made_up;
mod place;

use std::{
    ffi::OsString,
    io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, Stat},
    mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
        UnmountFlags,
    },
};

pub(crate) use base::{Base, all_processes};
use hidden::{Origin, Shown};
use place::Tree;

use super::{
    Access, Bind, Network, Source,
    encode::Order,
    init::{Trouble, at},
};
use crate::{
    mount_table::MountTable,
    sys::mounts::{Reach, restrict_mount},
};

/// Adds the binds of this command to the tree, hides hidden paths, and makes the tree the root.
pub(crate) fn finish(base: Base, order: &Order) -> Result<(), Trouble> {
    base.check_unchanged()?;
    let Base { old, tree, mut shown, .. } = base;
    let mut binds: Vec<&Bind> = order.binds.iter().collect();
    // Outer binds must exist before inner ones.
    binds.sort_by_key(|bind| bind.at.components().count());
    for bind in binds {
        shown.push(mount_bind(&old, &tree, bind)?);
    }
    pin_nested(&tree, &shown).map_err(at("pin the directories above a bind"))?;
    hidden::cover_all(&old, &tree, &shown, order).map_err(at("mask the hidden paths"))?;
    restrict_mount(tree.root.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, Reach::This)
        .map_err(at("make the root read-only"))?;
    change_root(&tree.root).map_err(at("change the root"))
}

/// Mounts made from here on do not propagate to the host, nor the host's to us.
pub(crate) fn make_private() -> io::Result<()> {
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", private)?;
    Ok(())
}

/// Files of `/etc` that the jail provides itself.
pub(crate) fn made_up_names() -> impl Iterator<Item = &'static str> {
    made_up::files(Network::None).into_iter().map(|(name, _)| name)
}

/// The host's file tree. Paths are resolved from its root, even when the new root covers them.
pub(crate) struct Old {
    root: OwnedFd,
    proc: OwnedFd,
    /// The mounts before the new root.
    mounts: MountTable,
    /// Whether anything is mounted in two places.
    shows_twins: bool,
}

impl Old {
    /// Opens a path of the host.
    fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT;
        let opened = rustix::fs::openat2(&self.root, below, PLACE, Mode::empty(), resolve)?;
        Ok(opened)
    }

    /// The path of an open file, according to the kernel.
    fn real_path(&self, opened: BorrowedFd<'_>) -> io::Result<PathBuf> {
        let link = format!("self/fd/{}", opened.as_raw_fd());
        let path = rustix::fs::readlinkat(&self.proc, link, Vec::new())?;
        Ok(OsString::from_vec(path.into_bytes()).into())
    }
}

fn mount_bind(old: &Old, tree: &Tree, bound: &Bind) -> Result<Shown, Trouble> {
    let step = || format!("bind at `{}`", bound.at.display());
    let source = match &bound.source {
        Source::Path(path) => old.open(path).map_err(at(format!("open `{}`", path.display())))?,
        Source::Opened(opened) => reopen(old, opened).map_err(at(step()))?,
    };
    let place = place::like(tree, &bound.at, &source).map_err(at(step()))?;
    let attributes = match bound.access {
        Access::Read => READ_ONLY,
        Access::Execute => READ_AND_RUN,
        Access::Write => INERT,
    };
    let real = old.real_path(source.as_fd()).map_err(at(step()))?;
    if let Some(door) = kernels::door_in(&old.mounts, &real) {
        let error = io::Error::other(format!(
            "`{}` contains the kernel file system `{}` of the host",
            real.display(),
            door.display()
        ));
        return Err(at(step())(error));
    }
    bind(&source, &place, attributes).map_err(at(step()))?;
    Ok(Shown { source: real, at: bound.at.clone(), origin: Origin::Bind })
}

/// Pins the directories between an outer and an inner bind.
fn pin_nested(tree: &Tree, shown: &[Shown]) -> io::Result<()> {
    let binds = || shown.iter().filter(|one| one.origin == Origin::Bind);
    for inner in binds() {
        let around = binds().filter(|outer| inner.at.starts_with(&outer.at) && inner.at != outer.at);
        if let Some(outer) = around.max_by_key(|outer| outer.at.components().count()) {
            hidden::pin_above(tree, &inner.at, &outer.at)?;
        }
    }
    Ok(())
}

/// Opens the same file in this mount namespace. A descriptor from another one cannot be mounted, so the path is
/// resolved again, and the result must be the same file.
fn reopen(old: &Old, opened: &OwnedFd) -> io::Result<OwnedFd> {
    let path = old.real_path(opened.as_fd())?;
    let again = old.open(&path)?;
    if same(&rustix::fs::fstat(opened)?, &rustix::fs::fstat(&again)?) {
        Ok(again)
    } else {
        Err(io::Error::other(format!("`{}` was replaced since it was checked", path.display())))
    }
}

fn same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

fn open(folder: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(folder, path, PLACE, Mode::empty())?)
}

/// Mounts `source`, with the mounts below it, at `place`.
fn bind(source: &OwnedFd, place: &OwnedFd, attributes: MountAttrFlags) -> io::Result<()> {
    let tree = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = rustix::mount::open_tree(source, "", tree)?;
    restrict_mount(tree.as_fd(), attributes, Reach::AllBelow)?;
    mount_on(&tree, place)
}

fn mount_on(mount: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", place, "", both)?)
}

fn attach(mount: &OwnedFd, folder: BorrowedFd<'_>, path: &str) -> io::Result<()> {
    let from = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount, "", folder, path, from)?)
}

fn memory_files(mode: &str, bytes: u64, files: u64, attributes: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "mode", mode)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "size", bytes.max(1).to_string())?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "nr_inodes", files.to_string())?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

fn change_root(root: &OwnedFd) -> io::Result<()> {
    rustix::process::fchdir(root)?;
    rustix::process::pivot_root(".", ".")?;
    // The old root is now mounted on top of the new one.
    rustix::mount::unmount(".", UnmountFlags::DETACH)?;
    rustix::process::chdir("/")?;
    Ok(())
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

const INERT: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);
const READ_ONLY: MountAttrFlags = INERT.union(MountAttrFlags::MOUNT_ATTR_RDONLY);
const READ_AND_RUN: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_RDONLY);
const DEVICE_NODE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC)
    .union(MountAttrFlags::MOUNT_ATTR_RDONLY);

const ROOT_BYTES: u64 = 1 << 20;
const ROOT_FILES: u64 = 4096;
const TMP_FILES: u64 = 1 << 16;

/// Directories of programs and libraries.
pub(crate) const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Files in `/etc` that programs need and that reveal nothing about the host.
pub(crate) const SETTINGS: [&str; 9] = [
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "ssl/certs",
    "ssl/openssl.cnf",
    "ca-certificates",
    "pki/tls/certs",
];

pub(crate) const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// This device is read-only: a writable descriptor allows shared mappings that no per-process limit counts, and
/// that stay allocated after the process unmaps them.
pub(crate) const ONLY_READ: &str = "zero";

pub(crate) const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
