//! How does a new file come to be whole or not at all, and never in place of another?

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::Path,
};

use crate::Failure;

/// What may happen to a file that is there already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Existing {
    Keep,
    Replace,
}

/// Writes a file whole or not at all.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), Failure> {
    let written = match existing {
        Existing::Replace => toolgate_store::write_atomic(path, bytes),
        Existing::Keep => write_new(path, bytes),
    };
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::at(path, "this file exists and is not overwritten"),
        _ => Failure::at(path, error),
    })
}

pub fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::at(path, error))
}

/// A folder that only this user can look into.
pub fn create_private_folder(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    match fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|error| Failure::at(path, error)),
    }
}

/// INVARIANT: fails if anything of that name exists, a dangling link included.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // Readable as any new file of this user; the process' mask still applies.
    let readable = Permissions::from_mode(0o666);
    let mut beside =
        tempfile::Builder::new().prefix(".toolgate-").permissions(readable).tempfile_in(folder)?;
    beside.write_all(bytes)?;
    beside.as_file().sync_all()?;
    beside.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}
