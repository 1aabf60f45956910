//! Has a file other names? A hard link has no path back to them: such files are compared by number.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

/// A file, whatever its name.
pub type Id = (u64, u64);

pub fn has_several_names(about: &Metadata) -> bool {
    about.is_file() && about.nlink() > 1
}

pub fn id(about: &Metadata) -> Id {
    (about.dev(), about.ino())
}
