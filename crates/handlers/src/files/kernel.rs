//! Opens files without TOCTOU races.
//!
//! `openat2` opens a path beneath an open directory, first as a handle with `O_PATH`, which neither reads nor blocks.
//! The handle is checked by its type and real path, and then opened for reading through `/proc/self/fd`, which leads
//! to exactly that file. There is no fallback for hosts without `openat2`.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::{self, Read as _},
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{
            ffi::{OsStrExt as _, OsStringExt as _},
            fs::MetadataExt as _,
        },
    },
    path::Path,
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags},
    io::Errno,
};

use super::{
    error::{FileFault, FileReason, quoted},
    roots::escapes,
};

pub(super) fn open_root(path: &Path) -> Result<File, FileFault> {
    // `path` comes from the operator and is already resolved; RESOLVE_NO_SYMLINKS detects a symlink placed there
    // since.
    open(rustix::fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS,
    ))
    .map_err(|error| {
        unsupported(&error).unwrap_or_else(|| {
            FileFault::new(
                FileReason::GrantUnusable,
                "a granted folder cannot be opened; check its owner and mode",
            )
        })
    })
}

/// A handle on the target of `path`. Symlinks are followed as long as they stay beneath `dir`.
pub(super) fn handle(dir: &File, path: &str) -> io::Result<File> {
    beneath(dir, path, OFlags::PATH)
}

/// An open directory, for listing its names.
pub(super) fn folder(dir: &File, path: &str) -> io::Result<File> {
    beneath(dir, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)
}

/// A handle on the entry itself, even if it is a symlink. `name` contains no slash.
pub(super) fn child(dir: &File, name: &OsStr) -> io::Result<File> {
    open_child(dir, name, OFlags::PATH | OFlags::NOFOLLOW)
}

/// The open directory of this name, for listing; fails for a symlink.
pub(super) fn child_folder(dir: &File, name: &OsStr) -> io::Result<File> {
    open_child(dir, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::NONBLOCK)
}

/// The current absolute path of a handle; `None` if it was deleted. Parts that are not UTF-8 contain replacement
/// characters.
pub(super) fn real_path(handle: &File, asked: &str) -> Result<Option<String>, FileFault> {
    let link = match rustix::fs::readlinkat(CWD, own_path(handle), Vec::new()) {
        Ok(link) => link,
        Err(Errno::NAMETOOLONG) => return Err(too_long(asked)),
        Err(_) => return Err(no_proc()),
    };
    let path = String::from_utf8_lossy(link.to_bytes()).into_owned();
    if !path.starts_with('/') {
        return Err(escapes(asked));
    }
    // The kernel marks deleted names this way. A marked path must not be compared.
    let is_gone = path.ends_with(" (deleted)") && !is_at(handle, &path).unwrap_or(false);
    Ok((!is_gone).then_some(path))
}

/// Whether this path, taken literally, leads to the file of the handle.
fn is_at(handle: &File, path: &str) -> io::Result<bool> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let there =
        open(rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS))?.metadata()?;
    let here = handle.metadata()?;
    Ok((there.dev(), there.ino()) == (here.dev(), here.ino()))
}

/// Opens a handle for reading, if it is a regular file.
pub(super) fn readable(handle: &File, asked: &str) -> Result<File, FileFault> {
    if !metadata(handle, asked)?.is_file() {
        return Err(not_a_file(asked));
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    open(rustix::fs::open(own_path(handle), flags, Mode::empty()))
        .map_err(|error| FileFault::io(asked, &error))
}

pub(super) fn metadata(handle: &File, asked: &str) -> Result<Metadata, FileFault> {
    handle.metadata().map_err(|error| FileFault::io(asked, &error))
}

/// The whole content. Fails if it exceeds `most` bytes, whatever size the file reports.
pub(super) fn read_all(handle: &File, asked: &str, most: usize) -> Result<Vec<u8>, FileFault> {
    let file = readable(handle, asked)?;
    let too_large = || {
        let message =
            format!("{} is larger than {most} bytes; read it with `slice` or `grep`", quoted(asked));
        FileFault::new(FileReason::FileTooLarge, message)
    };
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let claimed = metadata(&file, asked)?.len();
    if claimed > most {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(claimed).unwrap_or(0));
    file.take(most.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| FileFault::io(asked, &error))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= most) { Ok(bytes) } else { Err(too_large()) }
}

pub(super) fn text(bytes: Vec<u8>, asked: &str) -> Result<String, FileFault> {
    String::from_utf8(bytes).map_err(|error| not_utf8(asked, error.utf8_error().valid_up_to()))
}

pub(super) fn not_utf8(asked: &str, at: usize) -> FileFault {
    FileFault::new(FileReason::Io, format!("{} is not UTF-8 text: byte {at} is wrong", quoted(asked)))
}

pub(super) fn not_a_file(asked: &str) -> FileFault {
    FileFault::new(FileReason::NotAFile, format!("{} is not a regular file", quoted(asked)))
}

/// The names in a directory, sorted by bytes. `None` if there are more than `most`.
pub(super) fn names(folder: &File, most: usize) -> io::Result<Option<Vec<OsString>>> {
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        if names.len() == most {
            return Ok(None);
        }
        names.push(OsString::from_vec(name.to_vec()));
    }
    names.sort_unstable();
    Ok(Some(names))
}

/// A file that is being written, or was when the gateway was killed.
pub(super) fn is_unfinished(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name.starts_with(UNFINISHED.as_bytes()) && name.ends_with(UNFINISHED_END.as_bytes())
}

pub(super) fn lossy(name: &OsStr) -> String {
    String::from_utf8_lossy(name.as_bytes()).into_owned()
}

/// Returns an error if the host lacks a feature, as opposed to a problem with the path.
pub(super) fn unsupported(error: &io::Error) -> Option<FileFault> {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error)?;
    // Old seccomp filters answer EPERM to unknown system calls; opening with `O_PATH` never does.
    matches!(errno, Errno::NOSYS | Errno::PERM | Errno::TOOBIG).then(|| {
        FileFault::new(
            FileReason::HostUnsupported,
            "the gateway's host has no `openat2` (Linux 5.6 or newer, and a container filter that allows it)",
        )
    })
}

fn beneath(dir: &File, path: &str, flags: OFlags) -> io::Result<File> {
    resolve(dir, OsStr::new(path), flags, ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS)
}

fn open_child(dir: &File, name: &OsStr, flags: OFlags) -> io::Result<File> {
    let resolve_flags = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
    resolve(dir, name, flags, resolve_flags)
}

fn resolve(dir: &File, path: &OsStr, flags: OFlags, how: ResolveFlags) -> io::Result<File> {
    let mut attempts = 0;
    loop {
        match rustix::fs::openat2(dir, path, flags | OFlags::CLOEXEC, Mode::empty(), how) {
            // A rename interfered while the kernel resolved `..`, so it cannot guarantee the result.
            Err(Errno::AGAIN) if attempts < MOST_ATTEMPTS => attempts += 1,
            answer => return open(answer),
        }
    }
}

fn open(answer: rustix::io::Result<OwnedFd>) -> io::Result<File> {
    Ok(File::from(answer?))
}

fn own_path(handle: &File) -> String {
    format!("/proc/self/fd/{}", handle.as_raw_fd())
}

pub(super) fn too_long(asked: &str) -> FileFault {
    FileFault::new(FileReason::InvalidPath, format!("{} is too long for the file system", quoted(asked)))
}

fn no_proc() -> FileFault {
    FileFault::new(FileReason::HostUnsupported, "the gateway's host has no `/proc`; mount it")
}

pub(super) const UNFINISHED: &str = ".toolgate-";
pub(super) const UNFINISHED_END: &str = ".tmp";

const MOST_ATTEMPTS: usize = 100;
