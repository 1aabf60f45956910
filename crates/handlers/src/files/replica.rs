//! Copies a workspace for a test run that writes, without files that the tool may not see.
//!
//! Blocked files are left out here, because an operator's absolute pattern does not match in the copy.

use std::{
    ffi::OsStr,
    fs::{DirBuilder, File, Permissions},
    io::{self, Read as _},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{DirBuilderExt as _, PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use toolgate_policy::EffectivePolicy;
use toolgate_spec::PathPattern;

use super::{
    Files,
    access::OpenEntry,
    error::{FileFault, FileReason},
    kernel,
    roots::{below, escapes},
    walk::{TreeWalk, WalkEntry, WalkScope, WalkStep},
};
use crate::{grants, places::Places};

/// Limits of a copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CopyLimits {
    pub bytes: u64,
    pub entries: usize,
}

impl Default for CopyLimits {
    fn default() -> Self {
        Self { bytes: 64 * 1024 * 1024, entries: 20_000 }
    }
}

/// Copies what a tool with this policy may see of the workspace into the empty directory `to`. Blocks the thread. The
/// error says why the copy failed.
pub fn copy_workspace(
    policy: &EffectivePolicy,
    places: &Places,
    to: &Path,
    limits: CopyLimits,
) -> Result<(), String> {
    let unusable = || "the workspace or a file of the gateway has a name that is not UTF-8".to_owned();
    let mut granted = grants::blocked_files(policy, places).ok_or_else(unusable)?;
    granted.allowed = vec![PathPattern::parse("$WORKSPACE")?];
    granted.read_roots = Vec::new();
    granted.caps.walked = limits.entries;
    let files = Files::open(&granted, || false).map_err(|error| error.message)?;
    files.replicate(to, limits.bytes).map_err(|fault| match fault.reason {
        FileReason::ResultTooLarge | FileReason::FileTooLarge => format!(
            "the workspace has more than {} MiB or {} entries",
            limits.bytes / (1024 * 1024),
            limits.entries
        ),
        _ => fault.by("safety.fs").message,
    })
}

impl Files {
    /// Copies at most `bytes` of what these grants show of the workspace.
    pub(super) fn replicate(&self, to: &Path, bytes: u64) -> Result<(), FileFault> {
        let start = self.must_open(".")?;
        let mut copy = WorkspaceCopy { files: self, to, left: bytes };
        TreeWalk::new(self, WalkScope::Granted, 0, ".").run(&start, &mut |entry| {
            copy.entry(entry)?;
            Ok(WalkStep::Continue)
        })
    }
}

struct WorkspaceCopy<'f> {
    files: &'f Files,
    to: &'f Path,
    left: u64,
}

impl WorkspaceCopy<'_> {
    /// Sockets, pipes and devices are left out.
    fn entry(&mut self, entry: &WalkEntry<'_>) -> Result<(), FileFault> {
        let shown = self.files.roots.shown(&entry.path);
        let failed = |error: io::Error| FileFault::io(&shown, &error);
        let to = self.target(entry);
        if entry.kind.is_dir() {
            // Other users get no access, whatever the mode of the original and the umask are.
            DirBuilder::new().mode(0o700).create(to).map_err(failed)
        } else if entry.kind.is_symlink() {
            // Copied as is: an absolute one leads out of the copy, and no tool follows it.
            let target = rustix::fs::readlinkat(entry.folder, entry.name, Vec::new());
            let target = target.map_err(|error| failed(error.into()))?;
            symlink(OsStr::from_bytes(target.to_bytes()), to).map_err(failed)
        } else if entry.kind.is_file() {
            let open = || kernel::child(entry.folder, entry.name);
            match self.files.admit(&entry.path, &shown, escapes, &open) {
                Ok(Some(found)) => self.file(&found, &shown, &to),
                Ok(None) => Ok(()),
                // A hard link to a blocked file.
                Err(fault) if fault.is_refusal() => Ok(()),
                Err(fault) => Err(fault),
            }
        } else {
            Ok(())
        }
    }

    fn file(&mut self, found: &OpenEntry, shown: &str, to: &Path) -> Result<(), FileFault> {
        let failed = |error: io::Error| FileFault::io(shown, &error);
        let from = kernel::readable(&found.handle, shown)?;
        let mut copy = File::create_new(to).map_err(failed)?;
        let copied = io::copy(&mut from.take(self.left.saturating_add(1)), &mut copy).map_err(failed)?;
        self.left = self.left.checked_sub(copied).ok_or_else(|| {
            FileFault::new(FileReason::FileTooLarge, "the workspace is too large to be copied")
        })?;
        // The owner can read and write the copy, whatever the original's mode.
        let mode = found.metadata.permissions().mode() & 0o777 | 0o600;
        copy.set_permissions(Permissions::from_mode(mode)).map_err(failed)
    }

    fn target(&self, entry: &WalkEntry<'_>) -> PathBuf {
        let folder = Path::new(&entry.path).parent().and_then(Path::to_str).unwrap_or_default();
        let inside = below(folder, &self.files.roots.workspace.real).unwrap_or_default();
        self.to.join(inside).join(entry.name)
    }
}
