//! What is in this file? Read without waiting for anybody, and without taking in more than was agreed.

use std::{
    error::Error,
    fmt,
    fs::{File, OpenOptions},
    io::{self, Read as _},
    os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, io::Errno};

/// Reads a regular file of at most `limit` bytes.
pub fn read_bounded(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let failed = |error: io::Error| ReadError::of(path, error);
    let file = open_without_waiting(path).map_err(failed)?;
    // Asked of the open handle: between a look at the path and its opening another file could take its place.
    let metadata = file.metadata().map_err(failed)?;
    if metadata.is_dir() {
        return Err(ReadError::IsADirectory(path.to_owned()));
    }
    if !metadata.is_file() {
        return Err(ReadError::NotAFile { path: path.to_owned(), kind: kind_of(metadata.file_type()) });
    }
    if metadata.len() > limit {
        return Err(ReadError::TooLarge { path: path.to_owned(), size: metadata.len(), limit });
    }
    // The size is a hint: the file may grow while it is read, and files in /proc say 0.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default().min(MOST_AHEAD));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if size > limit {
        return Err(ReadError::TooLarge { path: path.to_owned(), size, limit });
    }
    Ok(bytes)
}

/// Why a file could not be read; always with its path.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    NotFound(PathBuf),
    PermissionDenied(PathBuf),
    IsADirectory(PathBuf),
    /// A pipe, socket or device.
    NotAFile {
        path: PathBuf,
        kind: &'static str,
    },
    /// `size` is what was found so far; the file may be larger.
    TooLarge {
        path: PathBuf,
        size: u64,
        limit: u64,
    },
    SymlinkLoop(PathBuf),
    Failed {
        path: PathBuf,
        error: io::Error,
    },
}

impl ReadError {
    fn of(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match Errno::from_io_error(&error) {
            Some(Errno::NOENT | Errno::NOTDIR) => Self::NotFound(path),
            Some(Errno::ACCESS | Errno::PERM) => Self::PermissionDenied(path),
            Some(Errno::ISDIR) => Self::IsADirectory(path),
            Some(Errno::LOOP) => Self::SymlinkLoop(path),
            // A socket, or a device without a driver, cannot even be opened.
            Some(Errno::NXIO | Errno::NODEV) => Self::NotAFile { path, kind: "socket or device" },
            _ => Self::Failed { path, error },
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(path) => write!(f, "`{}` does not exist", path.display()),
            Self::PermissionDenied(path) => write!(f, "`{}` may not be read by this user", path.display()),
            Self::IsADirectory(path) => write!(f, "`{}` is a folder", path.display()),
            Self::NotAFile { path, kind } => {
                write!(f, "`{}` is a {kind}, not a regular file", path.display())
            }
            Self::TooLarge { path, size, limit } => {
                write!(f, "`{}` has at least {size} bytes; at most {limit} are read", path.display())
            }
            Self::SymlinkLoop(path) => write!(f, "`{}` is a symbolic link in a circle", path.display()),
            Self::Failed { path, error } => write!(f, "`{}` cannot be read: {error}", path.display()),
        }
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Failed { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// A pipe without a writer would block the opening; a terminal must not become ours.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

fn kind_of(kind: std::fs::FileType) -> &'static str {
    if kind.is_fifo() {
        "pipe"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "device"
    } else {
        "special file"
    }
}

/// Memory is set aside for this much at once; the rest as it comes.
const MOST_AHEAD: usize = 1024 * 1024;
