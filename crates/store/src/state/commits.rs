//! Has anybody committed anything since? A file beside the database that grows by a byte with every commit.
//!
//! SQLite can tell too, but only by taking its locks, which costs more than the row that is looked up behind them. Whoever commits
//! adds the byte before telling anybody that it is done, so that an unchanged file means an unchanged database. A process that is
//! killed between its commit and the byte leaves it to the thread that asks SQLite itself, five times a second.

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

/// A moment between two commits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Moment {
    file: (u64, u64),
    length: u64,
    /// A file that was made anew may have the number of the old one, and may have grown as long.
    changed: (i64, i64),
}

impl Commits {
    pub(super) fn beside(database: &Path) -> Self {
        let mut name = OsString::from(database);
        name.push("-commits");
        Self { path: name.into() }
    }

    /// To be called after a commit, and before anybody is told of it.
    pub(super) fn announce(&self) {
        if self.add().is_err() {
            // Without the file nobody believes what they remember. Where it cannot even be removed, the thread that asks SQLite
            // is left.
            let _ = fs::remove_file(&self.path);
        }
    }

    fn add(&self) -> io::Result<()> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .custom_flags(NO_LINK)
            .open(&self.path)?
            .write_all(b".")
    }

    /// `None`: nobody can tell.
    pub(super) fn now(&self) -> Option<Moment> {
        let file = fs::symlink_metadata(&self.path).ok().filter(fs::Metadata::is_file)?;
        Some(Moment {
            file: (file.dev(), file.ino()),
            length: file.len(),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }
}

const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
