//! Replaces files atomically.

use std::{
    fs::{File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown},
};

use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

use super::{access::WriteTarget, kernel};

/// New content on disk, next to the file that it will replace. It is removed on drop. Only a killed process leaves it
/// behind, under a name that listings skip.
pub(super) struct StagedFile<'t> {
    target: &'t WriteTarget,
    name: Option<String>,
}

impl<'t> StagedFile<'t> {
    pub fn write(target: &'t WriteTarget, replaced: Option<&Metadata>, bytes: &[u8]) -> io::Result<Self> {
        let name = random_name()?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // Private until the content is complete, because the old file may have been private.
        let mode = if replaced.is_some() { PRIVATE } else { ORDINARY };
        let mut file = File::from(openat(&target.folder, &name, flags, Mode::from_raw_mode(mode))?);
        let staged = Self { target, name: Some(name) };
        file.write_all(bytes)?;
        if let Some(replaced) = replaced {
            // Root can give the file back to its owner; other users become its owner, as in any editor.
            let _ = fchown(&file, Some(replaced.uid()), Some(replaced.gid()));
            file.set_permissions(Permissions::from_mode(replaced.mode() & PERMISSION_BITS))?;
        }
        // Sync the content before the rename: after a power cut the name must not lead to an empty file.
        file.sync_all()?;
        Ok(staged)
    }

    /// A symlink placed there meanwhile is replaced, not followed.
    pub fn commit(mut self) -> io::Result<()> {
        let Some(name) = self.name.as_deref() else { return Ok(()) };
        renameat(&self.target.folder, name, &self.target.folder, &self.target.name)?;
        self.name = None;
        Ok(())
    }
}

impl Drop for StagedFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = self.name.take() {
            let _ = unlinkat(&self.target.folder, name, AtFlags::empty());
        }
    }
}

fn random_name() -> io::Result<String> {
    let number = getrandom::u64().map_err(io::Error::other)?;
    Ok(format!("{}{number:016x}{}", kernel::UNFINISHED, kernel::UNFINISHED_END))
}

const PRIVATE: u32 = 0o600;
const ORDINARY: u32 = 0o644;

/// Without set-user-id and similar bits, which new content does not inherit.
const PERMISSION_BITS: u32 = 0o777;
