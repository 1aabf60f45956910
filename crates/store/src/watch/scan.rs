//! What is there now? A number that differs, for all that matters, when anything below these paths does.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    os::unix::fs::MetadataExt as _,
    path::PathBuf,
};

use walkdir::WalkDir;

use crate::walk;

/// Of names, sizes, times and identities; contents are not read. What cannot be looked at counts as it is.
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
            // A link counts as what it leads to.
            if let Ok(metadata) = fs::metadata(entry.path()) {
                let times =
                    (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec());
                (metadata.dev(), metadata.ino(), metadata.len(), times).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
