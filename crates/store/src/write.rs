//! How does a file change so that nobody ever sees half of it, whatever happens meanwhile?

use std::{
    fs::{self, File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
    path::{Path, PathBuf},
};

use rustix::io::Errno;
use tempfile::Builder;

/// Replaces a file's content, or makes the file: a new file beside it is written, flushed and renamed over it.
/// On an error the file is as it was, but for one, which says so: the new content is in place and its name could not
/// be flushed. Only a process that is killed leaves `.toolgate-….tmp` behind, which `walk` passes over. A symbolic
/// link stays; the file that it leads to is replaced.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(&resolve(path)?, bytes)
}

/// The same, but refuses a symbolic link, because it may lead to any file of the user.
pub fn write_atomic_no_follow(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        let message =
            "this is a symbolic link and is not written through; remove it, or name the file itself";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    // A link that is put here meanwhile is replaced itself, for a rename follows none.
    replace(path, bytes)
}

fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let mode = mode_for(target)?;
    // Opened while nothing has happened yet: a folder that may not be opened is no surprise after the rename.
    let names = File::open(folder)?;
    // Exclusive, under a random name; removed when dropped, so that no error leaves it behind.
    let mut beside = Builder::new()
        .prefix(UNFINISHED)
        .suffix(".tmp")
        .permissions(Permissions::from_mode(mode.created))
        .tempfile_in(folder)?;
    beside.write_all(bytes)?;
    if let Some(existing) = &mode.existing {
        // Root may hand the file back to its owner; for others it can only become their own, as in any editor.
        let _ = fchown(beside.as_file(), Some(existing.uid()), Some(existing.gid()));
        let bits = existing.permissions().mode() & PERMISSION_BITS;
        beside.as_file().set_permissions(Permissions::from_mode(bits))?;
    }
    // The content before the name: after a power cut the name must not lead to an empty file.
    beside.as_file().sync_all()?;
    beside.persist(target).map_err(|failed| failed.error)?;
    names.sync_all().map_err(|error| replaced_but(&error))
}

fn replaced_but(error: &io::Error) -> io::Error {
    let message = format!("the new content is in place, but a power cut may bring the old one back: {error}");
    io::Error::new(error.kind(), message)
}

struct Mode {
    /// Handed to `open`, which takes the umask from it.
    created: u32,
    /// What is replaced; its mode and owner are kept, umask or not.
    existing: Option<Metadata>,
}

fn mode_for(target: &Path) -> io::Result<Mode> {
    match fs::symlink_metadata(target) {
        Ok(metadata) if metadata.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
        Ok(metadata) if !metadata.is_file() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "only a regular file can be replaced"))
        }
        // Closed to others until the content is in: the old file may have been private.
        Ok(metadata) => Ok(Mode { created: PRIVATE, existing: Some(metadata) }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Mode { created: ORDINARY, existing: None })
        }
        Err(error) => Err(error),
    }
}

/// The file that is meant: links are followed, also one that leads to a file that does not exist yet.
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

/// How the name of a file begins that is still being written.
pub(crate) const UNFINISHED: &str = ".toolgate-";

const PRIVATE: u32 = 0o600;
const ORDINARY: u32 = 0o644;

/// Without set-user-id and its kin: new content does not inherit them.
const PERMISSION_BITS: u32 = 0o777;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;
