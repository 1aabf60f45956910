//! Fingerprints the metadata of files, to detect changes without inotify.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
};

use walkdir::WalkDir;

use crate::walk;

/// Hashes names, sizes, times and identities; does not read contents. An unreadable entry is hashed as such.
pub(super) fn fingerprint(paths: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in paths {
        path.hash(&mut hasher);
        for entry in WalkDir::new(path).sort_by_file_name().into_iter().filter_entry(walk::is_walked) {
            let Ok(entry) = entry else {
                "unreadable".hash(&mut hasher);
                continue;
            };
            entry.path().hash(&mut hasher);
            // Follow symlinks: the target counts.
            if let Ok(metadata) = fs::metadata(entry.path()) {
                let times =
                    (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
                (metadata.dev(), metadata.ino(), metadata.len(), times).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
