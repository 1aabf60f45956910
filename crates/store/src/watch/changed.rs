//! The paths that changed since they were last taken.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Changes below the watched paths. The paths are real ones, without symlinks.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Changes {
    /// Anything may have changed. Events were lost, or a watched directory was replaced.
    Everything,
    Paths(BTreeSet<PathBuf>),
}

impl Default for Changes {
    fn default() -> Self {
        Self::Paths(BTreeSet::new())
    }
}

/// Collects changes until a reader takes them.
#[derive(Debug, Default)]
pub(super) struct ChangeLog(Mutex<Changes>);

impl ChangeLog {
    pub fn add(&self, paths: impl IntoIterator<Item = PathBuf>) {
        let mut changes = self.lock();
        if let Changes::Paths(known) = &mut *changes {
            known.extend(paths);
            if known.len() > MOST_PATHS {
                *changes = Changes::Everything;
            }
        }
    }

    pub fn add_everything(&self) {
        *self.lock() = Changes::Everything;
    }

    pub fn take(&self) -> Changes {
        std::mem::take(&mut *self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Changes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reading everything is faster from here on.
const MOST_PATHS: usize = 1_000;
