//! Replaces files atomically: readers see the old or the new content, never a mixture.

use std::{
    fs::{self, File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use tempfile::Builder;

/// Replaces a file's content or creates the file: writes a temporary file, flushes it and renames it.
/// After an error the file is unchanged, except if only the flush of the directory failed; the error then says so. A killed
/// process may leave `.toolgate-….tmp`, which `walk` skips. A symlink is kept and its target is replaced.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(&resolve(path)?, bytes)
}

/// The same, but rejects a symlink, because it may point to any file of the user.
pub fn write_atomic_no_follow(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        let message = "not written: the path is a symlink; remove it, or name the file itself";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // A symlink created meanwhile is replaced itself: rename does not follow it.
    replace(path, bytes)
}

fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mode = mode_for(target)?;
    // Open the directory first: a failure must not happen after the rename.
    let names = File::open(folder)?;
    // Created exclusively under a random name; removed on drop, so no error leaves it behind.
    let mut beside = Builder::new()
        .prefix(UNFINISHED)
        .suffix(".tmp")
        .permissions(Permissions::from_mode(mode.created))
        .tempfile_in(folder)?;
    beside.write_all(bytes)?;
    if let Some(existing) = &mode.existing {
        // Root keeps the owner. For other users chown fails and the file becomes theirs, as in any editor.
        let _ = fchown(beside.as_file(), Some(existing.uid()), Some(existing.gid()));
        let bits = existing.permissions().mode() & PERMISSION_BITS;
        beside.as_file().set_permissions(Permissions::from_mode(bits))?;
    }
    // Flush the content before the rename: after a power cut the name must not refer to an empty file.
    beside.as_file().sync_all()?;
    beside.persist(target).map_err(|failed| failed.error)?;
    names.sync_all().map_err(|error| replaced_but(&error))
}

fn replaced_but(error: &io::Error) -> io::Error {
    let message = format!("the new content is written, but a power cut may restore the old one: {error}");
    io::Error::new(error.kind(), message)
}

struct TargetMode {
    /// Passed to `open`, which applies the umask.
    created: u32,
    /// The replaced file; its mode and owner are kept regardless of the umask.
    existing: Option<Metadata>,
}

fn mode_for(target: &Path) -> io::Result<TargetMode> {
    match fs::symlink_metadata(target) {
        Ok(metadata) if metadata.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(metadata) if !metadata.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be replaced"))
        }
        // Keep it private until the content is written: the old file may have been private.
        Ok(metadata) => Ok(TargetMode { created: PRIVATE, existing: Some(metadata) }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(TargetMode { created: ORDINARY, existing: None })
        }
        Err(error) => Err(error),
    }
}

/// The file to replace. Follows symlinks, including one to a file that does not exist yet.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    let mut target = path.to_owned();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&target) {
            Ok(metadata) if metadata.is_symlink() => {
                let leads_to = fs::read_link(&target)?;
                target = target.parent().unwrap_or(Path::new("")).join(leads_to);
            }
            Ok(_) => return Ok(target),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(target),
            Err(error) => return Err(error),
        }
    }
    Err(Errno::LOOP.into())
}

/// The prefix of temporary files.
pub(crate) const UNFINISHED: &str = ".toolgate-";

const PRIVATE: u32 = 0o600;
const ORDINARY: u32 = 0o644;

/// Without setuid, setgid and sticky bits: new content must not inherit them.
const PERMISSION_BITS: u32 = 0o777;

/// The same limit as the kernel's.
const MOST_LINKS: usize = 40;
