//! Landlock grants for a command without its own view, whose paths lead into the host's file tree.
//!
//! A Landlock rule applies to everything below a directory. So if a directory contains something hidden or granted
//! with fewer rights, its other entries are granted one by one. The directory itself gets no grant: it can be
//! traversed, but neither listed nor changed.

use std::{
    collections::BTreeSet,
    fs, io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use rustix::fs::{CWD, FileType, Mode, OFlags};

use super::{
    Access, Bind, Source,
    encode::Order,
    seal::Grant,
    view::{
        self,
        hidden::{Budget, Id, each, exists, first_other_names, id, other_names},
    },
};
use crate::mount_table::MountTable;

/// Every bind and the system directories, split where they contain something hidden.
pub(crate) fn grants(order: &Order) -> io::Result<Vec<(OwnedFd, Grant)>> {
    let mut budget = Budget::new();
    let mut hidden = Hidden { paths: Vec::new(), aliased: BTreeSet::new() };
    let mounts = MountTable::read()?;
    for path in &order.hidden {
        let real = real_path(path);
        if let Some(found) = exists(open(&real))? {
            let about = rustix::fs::fstat(&found)?;
            hidden.aliased.extend(if order.hidden_large.contains(path) {
                first_other_names(&found, &about)?
            } else {
                other_names(&found, &about, &mut budget)?
            });
        }
        hidden.paths.extend(mounts.seen_outside(&real));
        hidden.paths.push(real);
    }
    let mut grants = Vec::new();
    let mut sources = Vec::new();
    for bind in &order.binds {
        let (opened, real) = source(bind)?;
        sources.push((opened, real, bind.access));
    }
    let places: Vec<(PathBuf, Access)> =
        sources.iter().map(|(_, real, access)| (real.clone(), *access)).collect();
    for (opened, real, access) in sources {
        if !hidden.aliased.is_empty() {
            hidden.refuse_aliases(&opened, &real, &mut budget)?;
        }
        let apart: Vec<&Path> = places
            .iter()
            .filter(|(place, other)| place.starts_with(&real) && *place != real && takes_away(access, *other))
            .map(|(place, _)| place.as_path())
            .collect();
        hidden.carve(opened, &real, access.into(), &apart, &mut grants)?;
        refuse_too_many(&grants)?;
    }
    // Nothing can be created there, so missing hidden paths need no split.
    hidden.paths.retain(|path| fs::symlink_metadata(path).is_ok());
    hidden.carve_system(&mut grants)?;
    Ok(grants)
}

fn refuse_too_many(grants: &[(OwnedFd, Grant)]) -> io::Result<()> {
    if grants.len() <= MOST_RULES {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "more than {MOST_RULES} entries next to hidden paths would have to be granted; bind less, or hide whole directories"
    )))
}

struct Hidden {
    paths: Vec<PathBuf>,
    /// Hidden files that have hard links.
    aliased: BTreeSet<Id>,
}

impl Hidden {
    /// Grants everything that is neither hidden nor in `apart`: other binds, which have their own rules.
    fn carve(
        &self,
        opened: OwnedFd,
        path: &Path,
        grant: Grant,
        apart: &[&Path],
        into: &mut Vec<(OwnedFd, Grant)>,
    ) -> io::Result<()> {
        let mut exceptions = self.paths.iter().map(PathBuf::as_path).chain(apart.iter().copied());
        if exceptions.clone().any(|exception| path.starts_with(exception)) {
            return Ok(());
        }
        if !exceptions.any(|exception| exception.starts_with(path)) {
            // A rule applies to a file under all of its hard links. In a bind, hard links of hidden files are
            // already refused.
            if !self.aliased.contains(&id(&rustix::fs::fstat(&opened)?)) {
                into.push((opened, grant));
            }
            return Ok(());
        }
        let folder = rustix::fs::openat(&opened, ".", LISTED, Mode::empty())?;
        let mut budget = Budget::new();
        let mut neighbours = Vec::new();
        each(&folder, &mut budget, |name, about| {
            if !FileType::from_raw_mode(about.st_mode).is_symlink() {
                neighbours.push(name.to_owned());
            }
            Ok(())
        })?;
        for name in neighbours {
            let neighbour = rustix::fs::openat(&folder, &name, PLACE | OFlags::NOFOLLOW, Mode::empty());
            if let Some(neighbour) = exists(neighbour.map_err(Into::into))? {
                self.carve(neighbour, &path.join(name), grant, apart, into)?;
            }
            if into.len() > MOST_RULES {
                break;
            }
        }
        Ok(())
    }

    /// The system directories and settings. Directories granted as a whole are not searched for hard links of
    /// hidden files: they are too large, and only root creates files there.
    fn carve_system(&self, into: &mut Vec<(OwnedFd, Grant)>) -> io::Result<()> {
        let system = view::SYSTEM.iter().map(|path| (PathBuf::from(path), Grant::Run));
        let settings = view::SETTINGS.iter().map(|name| (Path::new("/etc").join(name), Grant::Read));
        let mut carved: Vec<PathBuf> = Vec::new();
        for (path, grant) in system.chain(settings) {
            let Some(opened) = exists(open(&path))? else { continue };
            let real = opened_path(&opened)?;
            // Mostly symlinks into `/usr`. Directories granted for execution are readable, too.
            if carved.iter().any(|around| real.starts_with(around)) {
                continue;
            }
            self.carve(opened, &real, grant, &[], into)?;
            refuse_too_many(into)?;
            carved.push(real);
        }
        Ok(())
    }

    /// Landlock knows files, not paths: it cannot hide a file under one path and grant it under another.
    fn refuse_aliases(&self, top: &OwnedFd, path: &Path, budget: &mut Budget) -> io::Result<()> {
        let mut folders = vec![(top.try_clone()?, path.to_owned())];
        let refuse = |path: &Path| {
            let why =
                format!("`{}` is a hard link of a hidden file; remove it, or do not bind it", path.display());
            Err(io::Error::other(why))
        };
        if self.aliased.contains(&id(&rustix::fs::fstat(top)?)) {
            return refuse(path);
        }
        while let Some((place, path)) = folders.pop() {
            if self.paths.contains(&path) {
                continue;
            }
            // A single file was checked above. Directories that we cannot list, the command cannot list either,
            // because it has our user.
            let Ok(folder) = rustix::fs::openat(&place, ".", LISTED, Mode::empty()) else { continue };
            each(&folder, budget, |name, about| {
                let below = path.join(name);
                if self.paths.contains(&below) {
                    return Ok(());
                }
                if self.aliased.contains(&id(about)) {
                    return refuse(&below);
                }
                if FileType::from_raw_mode(about.st_mode).is_dir() {
                    let opened = rustix::fs::openat(&folder, name, PLACE | OFlags::NOFOLLOW, Mode::empty());
                    folders.extend(opened.ok().map(|opened| (opened, below)));
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// Whether an inner bind grants less than the outer one. Landlock adds grants up.
fn takes_away(outer: Access, inner: Access) -> bool {
    match (outer, inner) {
        (Access::Read, _) | (Access::Execute, Access::Execute) | (Access::Write, Access::Write) => false,
        (Access::Execute | Access::Write, _) => true,
    }
}

/// The source of a bind, which must be bound at its own path here.
fn source(bind: &Bind) -> io::Result<(OwnedFd, PathBuf)> {
    let opened = match &bind.source {
        Source::Path(path) => open(path)?,
        Source::Opened(opened) => opened.try_clone()?,
    };
    let real = opened_path(&opened)?;
    if real_path(&bind.at) == real {
        return Ok((opened, real));
    }
    Err(io::Error::other(format!(
        "`{}` can be bound at `{}` only with mount namespaces, which this host does not allow",
        real.display(),
        bind.at.display()
    )))
}

/// The path of an open file, according to the kernel.
fn opened_path(opened: &OwnedFd) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", opened.as_fd().as_raw_fd()))
}

/// Resolves symlinks as far as the path exists, and keeps the rest.
fn real_path(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut here = path;
    loop {
        if let Ok(real) = fs::canonicalize(here) {
            return rest.iter().rev().fold(real, |path: PathBuf, part| path.join(part));
        }
        match (here.parent(), here.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                here = parent;
            }
            _ => return path.to_owned(),
        }
    }
}

fn open(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, path, PLACE, Mode::empty())?)
}

impl From<Access> for Grant {
    fn from(access: Access) -> Self {
        match access {
            Access::Read => Self::Read,
            Access::Execute => Self::Run,
            Access::Write => Self::Write,
        }
    }
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const LISTED: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
const MOST_RULES: usize = 4096;
