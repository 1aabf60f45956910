//! Creates mount points in the new tree. Missing directories are created; symlinks are never followed.

use std::{
    ffi::OsStr,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Component, Path},
};

use rustix::fs::{FileType, Mode, OFlags};

/// The unfinished tree.
pub(crate) struct Tree {
    pub(crate) root: OwnedFd,
    /// Devices of the jail's own tmpfs mounts; files created there end with the jail.
    pub(crate) memory: Vec<u64>,
}

/// A directory at this path.
pub(crate) fn folder(tree: &Tree, path: &Path) -> io::Result<OwnedFd> {
    walk(tree, path, Last::Folder)
}

/// An empty file at this path.
pub(crate) fn file(tree: &Tree, path: &Path) -> io::Result<OwnedFd> {
    walk(tree, path, Last::File)
}

/// A directory if `source` is one, otherwise an empty file.
pub(crate) fn like(tree: &Tree, path: &Path, source: &OwnedFd) -> io::Result<OwnedFd> {
    let mode = rustix::fs::fstat(source)?.st_mode;
    walk(tree, path, if FileType::from_raw_mode(mode).is_dir() { Last::Folder } else { Last::File })
}

/// Writes a small file.
pub(crate) fn file_with(folder: &OwnedFd, name: &str, text: &[u8]) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o444))?;
    std::fs::File::from(file).write_all(text)
}

#[derive(Clone, Copy)]
enum Last {
    Folder,
    File,
}

fn walk(tree: &Tree, path: &Path, last: Last) -> io::Result<OwnedFd> {
    let mut here = tree.root.try_clone()?;
    let mut parts = path.components().filter_map(name).peekable();
    while let Some(part) = parts.next() {
        let wanted = if parts.peek().is_some() { Last::Folder } else { last };
        here = tree.step(&here, part, wanted)?;
    }
    Ok(here)
}

impl Tree {
    fn step(&self, here: &OwnedFd, name: &OsStr, wanted: Last) -> io::Result<OwnedFd> {
        let look = || rustix::fs::openat(here, name, PLACE, Mode::empty());
        let found = match look() {
            Err(rustix::io::Errno::NOENT) => {
                // Nothing is created in a bound directory, because it would remain on the host.
                if !self.memory.contains(&rustix::fs::fstat(here)?.st_dev) {
                    return Err(io::Error::other(format!(
                        "`{}` does not exist in the directory bound above it; create it first",
                        name.display()
                    )));
                }
                make(here, name, wanted)?;
                look()?
            }
            outcome => outcome?,
        };
        let kind = FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode);
        match wanted {
            _ if kind.is_symlink() => Err(io::Error::other(format!("`{}` is a symlink", name.display()))),
            Last::Folder if !kind.is_dir() => {
                Err(io::Error::other(format!("`{}` is not a directory", name.display())))
            }
            Last::File if kind.is_dir() => {
                Err(io::Error::other(format!("`{}` is a directory", name.display())))
            }
            Last::Folder | Last::File => Ok(found),
        }
    }
}

fn make(here: &OwnedFd, name: &OsStr, wanted: Last) -> io::Result<()> {
    match wanted {
        Last::Folder => rustix::fs::mkdirat(here, name, Mode::from_raw_mode(0o755))?,
        Last::File => {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            drop(rustix::fs::openat(here, name, flags, Mode::from_raw_mode(0o444))?);
        }
    }
    Ok(())
}

fn name(part: Component<'_>) -> Option<&OsStr> {
    match part {
        Component::Normal(name) => Some(name),
        _ => None,
    }
}

const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
