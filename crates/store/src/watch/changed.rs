//! The paths that changed since a reader last took them.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Changes below the watched paths. Paths are canonical.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FileChanges {
    /// Anything may have changed. Events were lost, or a watched directory was replaced.
    Everything,
    Paths(BTreeSet<PathBuf>),
}

impl Default for FileChanges {
    fn default() -> Self {
        Self::Paths(BTreeSet::new())
    }
}

/// Collects changes until a reader takes them.
#[derive(Debug, Default)]
pub(super) struct ChangeLog(Mutex<FileChanges>);

impl ChangeLog {
    pub fn add(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let mut changes = self.lock();
        if let FileChanges::Paths(known) = &mut *changes {
            known.extend(paths);
            if known.len() > MOST_PATHS {
                *changes = FileChanges::Everything;
            }
        }
    }

    pub fn add_everything(&self) {
        *self.lock() = FileChanges::Everything;
    }

    pub fn take(&self) -> FileChanges {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, FileChanges> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// With more changes, reading everything is faster.
const MOST_PATHS: usize = 1_000;
