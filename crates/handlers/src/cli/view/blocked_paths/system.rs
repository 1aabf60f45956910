//! What is blocked in the folders that every command sees? They are no grant of the tool's, and a block in them counts all
//! the same. The folders of programs themselves stay, since nothing runs without them.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use toolgate_sandbox::{SYSTEM_FOLDERS, system_settings};

use super::{Blocked, Budget, Found, MOST_LOOKED_AT, Stop};

impl Blocked {
    /// What to hide there, or why that cannot be told. Patterns count that begin there: one that begins above, such as
    /// `/**/.env`, counts in what is granted, since nobody could search a whole system before every call.
    pub fn in_system(&self, stop: &Stop) -> Result<BTreeSet<PathBuf>, String> {
        let kept = kept_folders();
        let seen = seen_folders(&kept);
        let mut found = Found::default();
        let mut budget = Budget::new(MOST_LOOKED_AT, stop);
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
        // A folder that is closed to us stays closed: where it is seen, nobody changes it.
        let holds_none = |path: &PathBuf| !kept.iter().any(|folder| folder.starts_with(path));
        Ok(found.blocked.into_iter().filter(holds_none).collect())
    }

    /// Does a pattern with a wildcard begin there? Then [`Self::in_system`] has to list directories.
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

/// As they are called, and where links lead.
fn under_all_names(paths: impl Iterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    paths.flat_map(|path| [fs::canonicalize(&path).unwrap_or_else(|_| path.clone()), path]).collect()
}
