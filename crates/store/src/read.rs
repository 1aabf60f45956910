//! Reads a file without blocking and up to a size limit.

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
    // Check the open handle, not the path: another file could take its place before it is opened.
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
    // The size is only a hint: the file may grow while it is read, and files in /proc report 0.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default().min(MOST_AHEAD));
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if size > limit {
        return Err(ReadError::TooLarge { path: path.to_owned(), size, limit });
    }
    Ok(bytes)
}

/// Why a file could not be read, with its path.
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
    /// `size` is the number of bytes read so far; the file may be larger.
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
            // Opening a socket, or a device without a driver, fails.
            Some(Errno::NXIO | Errno::NODEV) => Self::NotAFile { path, kind: "socket or device" },
            _ => Self::Failed { path, error },
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(path) => write!(f, "`{}` does not exist", path.display()),
            Self::PermissionDenied(path) => write!(f, "no permission to read `{}`", path.display()),
            Self::IsADirectory(path) => write!(f, "`{}` is a directory", path.display()),
            Self::NotAFile { path, kind } => {
                write!(f, "`{}` is a {kind}, not a regular file", path.display())
            }
            Self::TooLarge { path, size, limit } => {
                write!(f, "`{}` has at least {size} bytes, the limit is {limit}", path.display())
            }
            Self::SymlinkLoop(path) => write!(f, "`{}` is a symlink loop", path.display()),
            Self::Failed { path, error } => write!(f, "cannot read `{}`: {error}", path.display()),
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

/// Non-blocking, because opening a pipe without a writer would block. NOCTTY, because a terminal must not become ours.
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

/// The largest buffer that is allocated before reading.
const MOST_AHEAD: usize = 1024 * 1024;
