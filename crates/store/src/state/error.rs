//! Errors of the state, with the path of its file.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

/// Why the state could not be used. The caller must treat the operation as denied.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The file or its directory cannot be created, is not private, or is not a file.
    File { path: PathBuf, error: io::Error },
    /// Written by a later version of this program.
    Newer { path: PathBuf, found: i64, known: i64 },
    /// A database of another program.
    Foreign(PathBuf),
    /// The file is corrupt.
    Damaged { path: PathBuf, problem: String },
    /// The file was deleted or replaced.
    Replaced(PathBuf),
    /// Locked, full, damaged or unreadable.
    Database { path: PathBuf, error: rusqlite::Error },
    /// The system returned no random bytes.
    NoRandomness(getrandom::Error),
    /// The caller passed an invalid value.
    Invalid(String),
}

impl StateError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(rusqlite::Error) -> Self + '_ {
        move |error| Self::Database { path: path.to_owned(), error }
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => write!(f, "cannot use the state `{}`: {error}", path.display()),
            Self::Newer { path, found, known } => write!(
                f,
                "the state `{}` was written by a newer toolgate (format {found}, this one supports {known}); upgrade, or \
                 choose another file",
                path.display()
            ),
            Self::Foreign(path) => {
                write!(f, "`{}` is the database of another program; choose another file", path.display())
            }
            Self::Damaged { path, problem } => {
                write!(
                    f,
                    "the state `{}` is corrupt ({problem}); restore it from a backup, or move it away",
                    path.display()
                )
            }
            Self::Replaced(path) => {
                write!(
                    f,
                    "the state `{}` was deleted or replaced; restart to use the current file",
                    path.display()
                )
            }
            Self::Database { path, error } if is_full(path, error) => {
                write!(f, "cannot write the state `{}`: the disk is full; free some space", path.display())
            }
            Self::Database { path, error } => {
                write!(f, "cannot use the state `{}`: {error}", path.display())
            }
            Self::NoRandomness(error) => write!(f, "the system returned no random bytes: {error}"),
            Self::Invalid(problem) => f.write_str(problem),
        }
    }
}

/// SQLite reports a full disk as such, or as an I/O error if its shared memory cannot grow.
fn is_full(path: &Path, error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => true,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            let dir = path.parent().unwrap_or(path);
            rustix::fs::statvfs(dir)
                .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < MIN_FREE_BYTES)
        }
        _ => false,
    }
}

/// SQLite's shared memory grows by 32 KiB.
const MIN_FREE_BYTES: u64 = 64 << 10;

impl Error for StateError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::File { error, .. } => Some(error),
            Self::Database { error, .. } => Some(error),
            Self::NoRandomness(error) => Some(error),
            Self::Newer { .. }
            | Self::Foreign(_)
            | Self::Damaged { .. }
            | Self::Replaced(_)
            | Self::Invalid(_) => None,
        }
    }
}
