//! Which files does a command see? A tree of its own, put together from mounts.
//!
//! Everything works on descriptors: what was opened and looked at is what is mounted, and no name is resolved twice.

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

/// Adds what this command sees to the tree, hides what is hidden, and makes the tree the root.
pub(crate) fn finish(base: Base, order: &Order) -> Result<(), Trouble> {
    base.check_unchanged()?;
    let Base { old, tree, mut shown, .. } = base;
    let mut binds: Vec<&Bind> = order.binds.iter().collect();
    // What lies above must be there before what lies in it.
    binds.sort_by_key(|bind| bind.at.components().count());
    for bind in binds {
        shown.push(mount_bind(&old, &tree, bind)?);
    }
    pin_nested(&tree, &shown).map_err(at("hold the folders above a bind"))?;
    hidden::cover_all(&old, &tree, &shown, order).map_err(at("hide what is hidden"))?;
    restrict_mount(tree.root.as_fd(), MountAttrFlags::MOUNT_ATTR_RDONLY, Reach::This)
        .map_err(at("make the root read-only"))?;
    change_root(&tree.root).map_err(at("change the root"))
}

/// Nothing that is mounted from here on is seen outside, nor the other way round.
pub(crate) fn make_private() -> io::Result<()> {
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", private)?;
    Ok(())
}

/// The files of `/etc` that are the jail's own.
pub(crate) fn made_up_names() -> impl Iterator<Item = &'static str> {
    made_up::files(Network::None).into_iter().map(|(name, _)| name)
}

/// The host's tree, by its root. Names in it are looked up from there, also when the new root covers them.
pub(crate) struct Old {
    root: OwnedFd,
    proc: OwnedFd,
    /// What was mounted where, before the new root was.
    mounts: MountTable,
    /// Whether anything is mounted in two places.
    shows_twins: bool,
}

impl Old {
    /// What a path of the host leads to.
    fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        let resolve = ResolveFlags::NO_MAGICLINKS | ResolveFlags::IN_ROOT;
        let opened = rustix::fs::openat2(&self.root, below, PLACE, Mode::empty(), resolve)?;
        Ok(opened)
    }

    /// Where the kernel says that something open lies.
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
        let error =
            io::Error::other(format!("`{}` would show `{}` of the host", real.display(), door.display()));
        return Err(at(step())(error));
    }
    bind(&source, &place, attributes).map_err(at(step()))?;
    Ok(Shown { source: real, at: bound.at.clone(), origin: Origin::Bind })
}

/// Where a bind lies in another one, the folders between them stay where they are.
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

/// The same file or folder in this mount namespace. A descriptor of another one cannot be mounted, so that its name is
/// looked up again, and what is found must be the very same thing.
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

/// Shows `source`, with what is mounted in it, at `place`.
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
    // The old root now lies on top of the new one.
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

/// Where programs and libraries live.
pub(crate) const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// What programs read in `/etc`, and tells nothing about the host.
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

/// The device that is only read. Whoever has it open for writing can map memory of it that all of its processes share, that
/// no limit of a process counts, and that stays taken when it is dropped from the process.
pub(crate) const ONLY_READ: &str = "zero";

pub(crate) const LINKS: [(&str, &str); 4] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
];
