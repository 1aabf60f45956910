//! Why can the state not be used? Always with its path, and never taken for an answer.

use std::{
    error::Error,
    fmt, io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

/// Nothing was changed, or nobody can tell; either way nothing was allowed.
#[derive(Debug)]
#[non_exhaustive]
pub enum StateError {
    /// The file or its folder cannot be made, is not private, or is no file.
    File { path: PathBuf, error: io::Error },
    /// Written by a later version of this program.
    Newer { path: PathBuf, found: i64, known: i64 },
    /// A database, but not one of ours.
    Foreign(PathBuf),
    /// Parts of the file are not what SQLite has written.
    Damaged { path: PathBuf, problem: String },
    /// The file was deleted or another one has its name.
    Replaced(PathBuf),
    /// Locked, full, damaged or unreadable.
    Database { path: PathBuf, error: rusqlite::Error },
    /// The system gave no random bytes.
    NoRandomness(getrandom::Error),
    /// What was handed in cannot be kept.
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
            Self::File { path, error } => write!(f, "the state `{}` cannot be used: {error}", path.display()),
            Self::Newer { path, found, known } => write!(
                f,
                "the state `{}` was written by a newer toolgate (format {found}; this one knows {known}); upgrade, or \
                 choose another file",
                path.display()
            ),
            Self::Foreign(path) => {
                write!(f, "`{}` is a database of another program; choose another file", path.display())
            }
            Self::Damaged { path, problem } => {
                write!(
                    f,
                    "the state `{}` is damaged ({problem}); restore it from a backup, or move it away",
                    path.display()
                )
            }
            Self::Replaced(path) => {
                write!(
                    f,
                    "the state `{}` was deleted or replaced; restart to use what is there now",
                    path.display()
                )
            }
            Self::Database { path, error } if is_full(path, error) => {
                write!(
                    f,
                    "the state `{}` cannot be written: the disk is full; make room on it",
                    path.display()
                )
            }
            Self::Database { path, error } => {
                write!(f, "the state `{}` cannot be used: {error}", path.display())
            }
            Self::NoRandomness(error) => write!(f, "the system has no random bytes: {error}"),
            Self::Invalid(problem) => f.write_str(problem),
        }
    }
}

/// SQLite reports a full disk as such, or as an I/O error if its shared memory cannot grow.
fn is_full(path: &Path, error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => true,
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => {
            let folder = path.parent().unwrap_or(path);
            rustix::fs::statvfs(folder)
                .is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < LEAST_ROOM)
        }
        _ => false,
    }
}

/// Bytes; SQLite's shared memory grows by 32 KiB.
const LEAST_ROOM: u64 = 64 << 10;

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
