//! Private files and directories: creates them with modes 0600 and 0700, and rejects wider modes.

use std::{
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Creates the directory if needed and returns its canonical path. Rejects a directory in which other users could create or
/// replace files.
pub(crate) fn directory(path: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let real = fs::canonicalize(path)?;
    let metadata = fs::metadata(&real)?;
    if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(refused(format!(
            "other users can write to the directory; run `chmod 700 {}`",
            real.display()
        )));
    }
    is_ours(&metadata)?;
    Ok(real)
}

/// Checks that this is our own regular file and that other users can neither read nor write it.
pub(crate) fn check_file(path: &Path, metadata: &Metadata) -> io::Result<()> {
    if !metadata.is_file() {
        return Err(refused("not a regular file; move it away".to_owned()));
    }
    if metadata.mode() & OPEN_TO_OTHERS != 0 {
        return Err(refused(format!("other users can read or write it; run `chmod 600 {}`", path.display())));
    }
    is_ours(metadata)
}

/// Creates a private file with this content. Fails with `AlreadyExists` if another process was faster. The file appears
/// with its whole content at once.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new()
        .prefix(crate::write::UNFINISHED)
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(dir)?;
    temporary.write_all(content)?;
    temporary.as_file().sync_all()?;
    // Close it before it gets its final name. Closing a file that SQLite has open would drop SQLite's locks.
    temporary.into_temp_path().persist_noclobber(path).map_err(|failed| failed.error)?;
    File::open(dir)?.sync_all()
}

/// Replaces a file or creates it, with mode 0600. Readers see the old or the new content.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new()
        .prefix(crate::write::UNFINISHED)
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(dir)?;
    temporary.write_all(content)?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|failed| failed.error)?;
    File::open(dir)?.sync_all()
}

fn is_ours(metadata: &Metadata) -> io::Result<()> {
    let user = rustix::process::geteuid();
    if user.is_root() || metadata.uid() == user.as_raw() {
        return Ok(());
    }
    Err(refused("it belongs to another user; choose a directory of yours".to_owned()))
}

fn refused(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

const WRITABLE_BY_OTHERS: u32 = 0o022;
const OPEN_TO_OTHERS: u32 = 0o077;
