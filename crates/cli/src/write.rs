//! Writes files atomically, without replacing existing ones by accident.

use std::{
    fs::{self, Permissions},
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use crate::Failure;

/// How to treat an existing file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Existing {
    Keep,
    /// Replaces the file, but never writes through a symlink.
    Replace,
    /// Changes a document that was read from this path. Follows a symlink, as reading did.
    Edit,
}

/// Writes a file atomically.
pub fn write(path: &Path, bytes: &[u8], existing: Existing) -> Result<(), Failure> {
    let written = match existing {
        Existing::Replace => toolgate_store::write_atomic_no_follow(path, bytes),
        Existing::Edit => toolgate_store::write_atomic(path, bytes),
        Existing::Keep => write_new(path, bytes),
    };
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::at(path, "this file exists and was not overwritten"),
        _ => Failure::at(path, error),
    })
}

pub fn create_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::at(path, error))
}

/// Creates a directory with mode 0700.
pub fn create_private_folder(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::DirBuilderExt;
    match fs::DirBuilder::new().recursive(true).mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(|error| Failure::at(path, error)),
    }
}

/// A file with mode 0600 that is written in two steps. `begin` fails if the directory is not writable, before the caller
/// creates the secret that the file will hold.
#[derive(Debug)]
pub struct PrivateFile {
    beside: tempfile::NamedTempFile,
    path: PathBuf,
}

impl PrivateFile {
    pub fn begin(path: &Path) -> Result<Self, Failure> {
        let beside = empty_beside(path).map_err(|error| Failure::at(path, error))?;
        Ok(Self { beside, path: path.to_owned() })
    }

    /// Writes the content and moves the file to its path atomically.
    pub fn finish(self, bytes: &[u8]) -> Result<(), Failure> {
        let Self { beside, path } = self;
        let written = filled(beside, bytes).and_then(|file| file.persist(&path).map_err(|error| error.error));
        written.map(drop).map_err(|error| Failure::at(&path, error))
    }
}

/// Copies a file with mode 0600 into a private directory, under a new name.
pub fn write_private_copy(path: &Path, folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    create_private_folder(folder)?;
    let bytes = fs::read(path).map_err(|error| Failure::at(path, error))?;
    let mut number = 1;
    loop {
        let backup = folder.join(format!("{name}-{number}"));
        let copied = empty_beside(&backup)
            .and_then(|file| filled(file, &bytes))
            .and_then(|file| file.persist_noclobber(&backup).map_err(|error| error.error));
        match copied {
            Ok(_) => return Ok(backup),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1_000 => number += 1,
            Err(error) => return Err(Failure::at(&backup, error)),
        }
    }
}

fn empty_beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".toolgate-").tempfile_in(folder)
}

fn filled(mut beside: tempfile::NamedTempFile, bytes: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    beside.write_all(bytes)?;
    beside.as_file().sync_all()?;
    Ok(beside)
}

/// INVARIANT: fails if the path exists, also as a dangling symlink.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    // The same permissions as other new files; the umask applies.
    let readable = Permissions::from_mode(0o666);
    let mut beside =
        tempfile::Builder::new().prefix(".toolgate-").permissions(readable).tempfile_in(folder)?;
    beside.write_all(bytes)?;
    beside.as_file().sync_all()?;
    beside.persist_noclobber(path).map_err(|error| error.error)?;
    Ok(())
}
