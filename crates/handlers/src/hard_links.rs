//! Hard links. A file has no path back to its other names, so hard-linked files are compared by device and inode.

use std::{fs::Metadata, os::unix::fs::MetadataExt as _};

/// Device and inode of a file, the same under all of its names.
pub type FileNumber = (u64, u64);

/// Whether a search saw everything it had to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SearchCoverage {
    Complete,
    Partial,
}

pub fn is_hard_linked(about: &Metadata) -> bool {
    about.is_file() && about.nlink() > 1
}

pub fn file_number(about: &Metadata) -> FileNumber {
    (about.dev(), about.ino())
}
