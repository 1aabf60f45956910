//! Commit counter shared between processes: a file that grows by one byte per commit.
//!
//! Readers compare its length to decide whether a cached row is still valid. SQLite's `data_version` needs its locks, which
//! cost more than the cached lookup saves. A writer appends the byte before it reports success, so an unchanged length means
//! an unchanged database. If a process dies between commit and append, the polling thread notices within 200 ms.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

#[derive(Debug)]
pub(super) struct Commits {
    path: PathBuf,
}

/// A version of the database: it changes with every commit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct CommitMark {
    file: (u64, u64),
    length: u64,
    /// The change time: a recreated file may have the inode and the length of the old one.
    changed: (i64, i64),
}

impl Commits {
    pub(super) fn beside(database: &Path) -> Self {
        let mut name = OsString::from(database);
        name.push("-commits");
        Self { path: name.into() }
    }

    /// Call it after a commit and before reporting success.
    pub(super) fn announce(&self) {
        if self.add().is_err() {
            // Remove the file: without it no process uses its cache. If that fails too, the polling thread still
            // notices the commit.
            let _ = fs::remove_file(&self.path);
        }
    }

    fn add(&self) -> io::Result<()> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(NO_FOLLOW)
            .open(&self.path)?
            .write_all(b".")
    }

    /// `None`: the version is unknown.
    pub(super) fn now(&self) -> Option<CommitMark> {
        let file = fs::symlink_metadata(&self.path).ok().filter(fs::Metadata::is_file)?;
        Some(CommitMark {
            file: (file.dev(), file.ino()),
            length: file.len(),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }
}

const NO_FOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
