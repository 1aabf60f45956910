//! The part of the view that every command sees: the system's directories, `/etc`, `/dev`, `/proc` and `/tmp`.
//!
//! It may be built long before the command is known. The host's mounts must not change in between, which the
//! supervisor watches. The mounted paths must not change their targets, which is checked here when the command is
//! known.

use std::{
    ffi::CString,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags},
    mount::{FsMountFlags, FsOpenFlags},
};

use super::{
    DEVICE_NODE, DEVICES, INERT, LINKS, Old, PLACE, READ_AND_RUN, READ_ONLY, ROOT_BYTES, ROOT_FILES,
    SETTINGS, SYSTEM, TMP_FILES, attach, bind,
    hidden::{Id, Origin, Shown, id},
    made_up, memory_files, mount_on, open, place,
    place::Tree,
};
use crate::{
    command::{
        groundwork::Groundwork,
        init::{Trouble, at},
    },
    mount_table::MountTable,
};

/// The unfinished tree, and the host's tree for binds to come.
pub(crate) struct Base {
    pub(super) old: Old,
    pub(super) tree: Tree,
    pub(super) shown: Vec<Shown>,
    pub(crate) has_proc: bool,
    fixed: Vec<FixedPath>,
}

/// A path of the host and its target when it was mounted.
struct FixedPath {
    path: PathBuf,
    found: PathTarget,
}

#[derive(Debug, Eq, PartialEq)]
enum PathTarget {
    Nothing,
    Link(CString),
    /// The file or directory, and its real path.
    Opened(Id, PathBuf),
}

impl Base {
    pub(crate) fn build(groundwork: &Groundwork) -> Result<Self, Trouble> {
        // Opened before the new root covers a part of the old one.
        let old_root = open(CWD, Path::new("/")).map_err(at("open the root"))?;
        let proc = open(CWD, Path::new("/proc")).map_err(at("open `/proc`"))?;
        let mounts = MountTable::read().map_err(at("read the list of mounts"))?;
        let shows_twins = mounts.shows_anything_twice();
        let root = memory_files("0755", ROOT_BYTES, ROOT_FILES, INERT).map_err(at("make a root"))?;
        // Any directory that always exists can be the mount point; it is hidden in the end.
        attach(&root, CWD, "/proc").map_err(at("mount the root"))?;
        let root = open(CWD, Path::new("/proc")).map_err(at("open the new root"))?;
        let memory = vec![rustix::fs::fstat(&root).map_err(at("check the root"))?.st_dev];
        let mut base = Self {
            old: Old { root: old_root, proc, mounts, shows_twins },
            tree: Tree { root, memory },
            shown: Vec::new(),
            has_proc: false,
            fixed: Vec::new(),
        };
        for path in SYSTEM {
            base.system_folder(path)?;
        }
        base.settings(groundwork)?;
        base.devices()?;
        base.has_proc = base.own_proc().is_ok();
        base.own_tmp(groundwork.tmp_bytes).map_err(at("make `/tmp`"))?;
        Ok(base)
    }

    /// Fails if a mounted path has another target on the host by now.
    pub(super) fn check_unchanged(&self) -> Result<(), Trouble> {
        for fixed in &self.fixed {
            let is_unchanged = self.old.is_unchanged(fixed);
            if !is_unchanged.map_err(at(format!("look at `{}`", fixed.path.display())))? {
                return Err(Trouble::Stale);
            }
        }
        Ok(())
    }

    /// The root of the tree.
    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.tree.root.as_fd()
    }

    /// The directory, or the symlink in its place.
    fn system_folder(&mut self, path: &str) -> Result<(), Trouble> {
        let name = path.trim_start_matches('/');
        let step = || format!("show `{path}`");
        let LocatedTarget { found, opened } = self.old.find_itself(Path::new(path)).map_err(at(step()))?;
        if let PathTarget::Link(target) = &found {
            rustix::fs::symlinkat(target, &self.tree.root, name).map_err(at(step()))?;
        }
        if let Some(folder) = opened {
            let place = place::folder(&self.tree, Path::new(path)).map_err(at(step()))?;
            bind(&folder, &place, READ_AND_RUN).map_err(at(step()))?;
        }
        self.fixed.push(FixedPath { path: path.into(), found });
        self.shown.push(Shown { source: path.into(), at: path.into(), origin: Origin::System });
        Ok(())
    }

    fn settings(&mut self, groundwork: &Groundwork) -> Result<(), Trouble> {
        for name in SETTINGS {
            let path = Path::new("/etc").join(name);
            let step = || format!("show `{}`", path.display());
            let LocatedTarget { found, opened } = self.old.find(&path).map_err(at(step()))?;
            if let (Some(setting), PathTarget::Opened(_, source)) = (opened, &found) {
                let place = place::like(&self.tree, &path, &setting).map_err(at(step()))?;
                bind(&setting, &place, READ_ONLY).map_err(at(step()))?;
                self.shown.push(Shown { source: source.clone(), at: path.clone(), origin: Origin::System });
            }
            self.fixed.push(FixedPath { path, found });
        }
        let etc = place::folder(&self.tree, Path::new("/etc")).map_err(at("make `/etc`"))?;
        for (name, text) in made_up::files(groundwork.network) {
            place::file_with(&etc, name, text.as_bytes()).map_err(at(format!("write `/etc/{name}`")))?;
        }
        Ok(())
    }

    fn devices(&mut self) -> Result<(), Trouble> {
        let dev = place::folder(&self.tree, Path::new("/dev")).map_err(at("make `/dev`"))?;
        for name in DEVICES {
            let step = || format!("show `/dev/{name}`");
            let path = Path::new("/dev").join(name);
            let device = self.old.open(&path).map_err(at(step()))?;
            let place = place::file(&self.tree, &path).map_err(at(step()))?;
            // Read-only protects owner and mode of the node; writes still go to the device.
            bind(&device, &place, DEVICE_NODE).map_err(at(step()))?;
            let found = self.old.describe(&device).map_err(at(step()))?;
            self.fixed.push(FixedPath { path, found });
        }
        for (name, target) in LINKS {
            rustix::fs::symlinkat(target, &dev, name).map_err(at(format!("make `/dev/{name}`")))?;
        }
        Ok(())
    }

    /// If a container masks parts of `/proc`, the kernel allows no fresh mount; commands then have no `/proc`.
    fn own_proc(&self) -> io::Result<()> {
        let proc = fresh_proc("ptraceable")?;
        let place = place::folder(&self.tree, Path::new("/proc"))?;
        mount_on(&proc, &place)
    }

    fn own_tmp(&mut self, bytes: u64) -> io::Result<()> {
        let tmp = memory_files("1777", bytes, TMP_FILES, INERT)?;
        mount_on(&tmp, &place::folder(&self.tree, Path::new("/tmp"))?)?;
        self.tree.memory.push(rustix::fs::fstat(&tmp)?.st_dev);
        Ok(())
    }
}

/// The target of a path, and a descriptor of it unless it is a symlink or missing.
struct LocatedTarget {
    found: PathTarget,
    opened: Option<OwnedFd>,
}

impl Old {
    fn is_unchanged(&self, fixed: &FixedPath) -> io::Result<bool> {
        if !SYSTEM.iter().any(|path| fixed.path == Path::new(path)) {
            return Ok(self.find(&fixed.path)?.found == fixed.found);
        }
        let name = fixed.path.strip_prefix("/").unwrap_or(&fixed.path);
        let now = || rustix::fs::statat(&self.root, name, AtFlags::SYMLINK_NOFOLLOW);
        Ok(match &fixed.found {
            PathTarget::Link(target) => {
                rustix::fs::readlinkat(&self.root, name, Vec::new()).is_ok_and(|now| now == *target)
            }
            // It is mounted here, so its number cannot belong to another one; and the real path of a name in the root is that name.
            PathTarget::Opened(before, _) => now().is_ok_and(|now| id(&now) == *before),
            PathTarget::Nothing => now().is_err(),
        })
    }

    /// The target of a path, through symlinks.
    fn find(&self, path: &Path) -> io::Result<LocatedTarget> {
        self.locate(self.open(path))
    }

    /// The entry of the root directory itself, even if it is a symlink.
    fn find_itself(&self, path: &Path) -> io::Result<LocatedTarget> {
        let name = path.strip_prefix("/").unwrap_or(path);
        if let Ok(target) = rustix::fs::readlinkat(&self.root, name, Vec::new()) {
            return Ok(LocatedTarget { found: PathTarget::Link(target), opened: None });
        }
        let opened = rustix::fs::openat(&self.root, name, PLACE | OFlags::NOFOLLOW, Mode::empty());
        self.locate(opened.map_err(Into::into))
    }

    /// A path that cannot be opened is not shown.
    fn locate(&self, opened: io::Result<OwnedFd>) -> io::Result<LocatedTarget> {
        let Ok(opened) = opened else {
            return Ok(LocatedTarget { found: PathTarget::Nothing, opened: None });
        };
        Ok(LocatedTarget { found: self.describe(&opened)?, opened: Some(opened) })
    }

    fn describe(&self, opened: &OwnedFd) -> io::Result<PathTarget> {
        Ok(PathTarget::Opened(id(&rustix::fs::fstat(opened)?), self.real_path(opened.as_fd())?))
    }
}

/// A `/proc` of this PID namespace that hides no process. It is not mounted anywhere, and ends with its descriptor.
pub(crate) fn all_processes() -> io::Result<OwnedFd> {
    fresh_proc("off")
}

fn fresh_proc(hidden: &str) -> io::Result<OwnedFd> {
    let context = rustix::mount::fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "hidepid", hidden)?;
    rustix::mount::fsconfig_set_string(context.as_fd(), "subset", "pid")?;
    rustix::mount::fsconfig_create(context.as_fd())?;
    Ok(rustix::mount::fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, READ_ONLY)?)
}
