//! How is something kept from other users of this machine? Folders 0700, files 0600, and a refusal of anything wider.

use std::{
    fs::{self, DirBuilder, File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

/// Makes the folder where it is missing, and answers with its real path. One in which other users could plant or
/// replace files is refused.
pub(crate) fn folder(path: &Path) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let real = fs::canonicalize(path)?;
    let metadata = fs::metadata(&real)?;
    if metadata.mode() & WRITABLE_BY_OTHERS != 0 {
        return Err(refused(format!(
            "other users may write into the folder; run `chmod 700 {}`",
            real.display()
        )));
    }
    is_ours(&metadata)?;
    Ok(real)
}

/// Is this a regular file of ours that nobody else can read or write?
pub(crate) fn check_file(path: &Path, metadata: &Metadata) -> io::Result<()> {
    if !metadata.is_file() {
        return Err(refused("it is not a regular file; move it away".to_owned()));
    }
    if metadata.mode() & OPEN_TO_OTHERS != 0 {
        return Err(refused(format!("other users may read or write it; run `chmod 600 {}`", path.display())));
    }
    is_ours(metadata)
}

/// Makes a private file with this content under a name that nothing has yet; `AlreadyExists` where another process
/// was faster. Whoever sees the name sees the whole content.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut beside = tempfile::Builder::new()
        .prefix(crate::write::UNFINISHED)
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    beside.write_all(content)?;
    beside.as_file().sync_all()?;
    // Closed before it gets its name: to close a file that SQLite has open as well would drop SQLite's locks.
    beside.into_temp_path().persist_noclobber(path).map_err(|failed| failed.error)?;
    File::open(folder)?.sync_all()
}

fn is_ours(metadata: &Metadata) -> io::Result<()> {
    let user = rustix::process::geteuid();
    if user.is_root() || metadata.uid() == user.as_raw() {
        return Ok(());
    }
    Err(refused("it belongs to another user; choose a folder of your own".to_owned()))
}

fn refused(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, problem)
}

const WRITABLE_BY_OTHERS: u32 = 0o022;
const OPEN_TO_OTHERS: u32 = 0o077;
