//! Blocked paths in the system directories, which every command sees without a grant. The program directories
//! themselves stay visible, because nothing runs without them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use toolgate_sandbox::{SYSTEM_FOLDERS, system_settings};

use toolgate_gate::StopFlag;

use super::{BlockedFindings, BlockedPaths, EntryBudget, MOST_SEARCHED};

impl BlockedPaths {
    /// The paths to hide there, or why they cannot be found. Only patterns that begin there are searched for. A
    /// pattern such as `/**/.env` begins above and applies to granted directories; searching the whole system before
    /// every call would take too long.
    pub fn in_system(&self, stop: &StopFlag) -> Result<BTreeSet<PathBuf>, String> {
        let kept = kept_folders();
        let seen = seen_folders(&kept);
        let mut found = BlockedFindings::default();
        let mut budget = EntryBudget::new(MOST_SEARCHED, stop);
        for pattern in &self.patterns {
            for start in pattern.starts.iter().filter(|start| lies_in(start, &seen)) {
                if pattern.has_wildcard {
                    self.search(start, &[pattern], None, &mut budget, &mut found);
                } else if !kept.contains(start) {
                    found.blocked.push(start.clone());
                }
            }
        }
        if let Some(why) = found.trouble {
            return Err(why);
        }
        // A directory that the gateway cannot read stays closed, because commands cannot change it.
        let holds_none = |path: &PathBuf| !kept.iter().any(|folder| folder.starts_with(path));
        Ok(found.blocked.into_iter().filter(holds_none).collect())
    }

    /// Whether a pattern with a wildcard begins there. Then [`Self::in_system`] has to list directories.
    pub fn searches_system(&self) -> bool {
        let seen = seen_folders(&kept_folders());
        let wild = self.patterns.iter().filter(|pattern| pattern.has_wildcard);
        wild.flat_map(|pattern| &pattern.starts).any(|start| lies_in(start, &seen))
    }
}

fn kept_folders() -> BTreeSet<PathBuf> {
    under_all_names(SYSTEM_FOLDERS.iter().map(PathBuf::from))
}

fn seen_folders(kept: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    under_all_names(system_settings()).union(kept).cloned().collect()
}

fn lies_in(path: &Path, folders: &BTreeSet<PathBuf>) -> bool {
    folders.iter().any(|folder| path.starts_with(folder))
}

/// Both as written and with symlinks resolved.
fn under_all_names(paths: impl Iterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    paths.flat_map(|path| [fs::canonicalize(&path).unwrap_or_else(|_| path.clone()), path]).collect()
}
