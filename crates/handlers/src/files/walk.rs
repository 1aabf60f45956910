//! Walks a tree in name order, without following symlinks, up to a limit.

use std::{
    ffi::OsStr,
    fs::{File, FileType},
    io,
};

use rustix::io::Errno;

use super::{
    Files,
    access::OpenEntry,
    error::{FileFault, FileReason, quoted},
    kernel,
    roots::join,
};

/// An entry below the starting directory.
pub(super) struct WalkEntry<'w> {
    pub folder: &'w File,
    pub name: &'w OsStr,
    pub kind: FileType,
    /// Below the requested path.
    pub path: String,
    /// Below the directory's real path.
    pub real: String,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum WalkStep {
    Continue,
    Stop,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum WalkScope {
    /// Entries that the policy grants, without unfinished files.
    Granted,
    Everything,
}

pub(super) struct TreeWalk<'f> {
    files: &'f Files,
    seen: WalkScope,
    /// Levels to visit; deeper ones are skipped.
    levels: usize,
    left: usize,
    asked: &'f str,
}

impl<'f> TreeWalk<'f> {
    /// `levels` of 0 means all; a tree deeper than the cap is then an error.
    pub fn new(files: &'f Files, seen: WalkScope, levels: usize, asked: &'f str) -> Self {
        let levels = if levels == 0 { usize::MAX } else { levels };
        Self { files, seen, levels, left: files.caps.walked, asked }
    }

    /// Visits every entry once, a directory before its contents.
    pub fn run(
        mut self,
        start: &OpenEntry,
        visit: &mut dyn FnMut(&WalkEntry<'_>) -> Result<WalkStep, FileFault>,
    ) -> Result<(), FileFault> {
        let folder = kernel::folder(&start.handle, ".").map_err(|error| FileFault::io(self.asked, &error))?;
        self.below(&folder, &start.path, &start.real, 1, visit).map(|_| ())
    }

    fn below(
        &mut self,
        folder: &File,
        path: &str,
        real: &str,
        level: usize,
        visit: &mut dyn FnMut(&WalkEntry<'_>) -> Result<WalkStep, FileFault>,
    ) -> Result<WalkStep, FileFault> {
        let names = kernel::names(folder, self.left).map_err(|error| FileFault::io(self.asked, &error))?;
        let names = names.ok_or_else(|| self.too_many())?;
        self.left -= names.len();
        for name in &names {
            self.files.check_deadline()?;
            let shown = kernel::lossy(name);
            let (path, real) = (join(path, &shown), join(real, &shown));
            if self.seen == WalkScope::Granted
                && (kernel::is_unfinished(name) || !self.files.shows(&path, &real))
            {
                continue;
            }
            let Some(kind) = self.kind(folder, name)? else { continue };
            let entry = WalkEntry { folder, name, kind, path, real };
            if visit(&entry)? == WalkStep::Stop || self.enter(&entry, level, visit)? == WalkStep::Stop {
                return Ok(WalkStep::Stop);
            }
        }
        Ok(WalkStep::Continue)
    }

    fn enter(
        &mut self,
        entry: &WalkEntry<'_>,
        level: usize,
        visit: &mut dyn FnMut(&WalkEntry<'_>) -> Result<WalkStep, FileFault>,
    ) -> Result<WalkStep, FileFault> {
        if !entry.kind.is_dir() || level >= self.levels {
            return Ok(WalkStep::Continue);
        }
        if level >= self.files.caps.depth {
            let (asked, most) = (quoted(self.asked), self.files.caps.depth);
            let message = format!("{asked} holds folders nested deeper than {most}; start further down");
            return Err(FileFault::new(FileReason::TreeTooDeep, message));
        }
        match unless_gone(kernel::child_folder(entry.folder, entry.name)) {
            Ok(Some(folder)) => self.below(&folder, &entry.path, &entry.real, level + 1, visit),
            Ok(None) => Ok(WalkStep::Continue),
            Err(error) => Err(FileFault::io(&self.files.roots.shown(&entry.path), &error)),
        }
    }

    fn kind(&self, folder: &File, name: &OsStr) -> Result<Option<FileType>, FileFault> {
        let metadata = kernel::child(folder, name).and_then(|handle| handle.metadata());
        let metadata = unless_gone(metadata).map_err(|error| FileFault::io(self.asked, &error))?;
        Ok(metadata.map(|metadata| metadata.file_type()))
    }

    fn too_many(&self) -> FileFault {
        let (asked, most) = (quoted(self.asked), self.files.caps.walked);
        let message = format!("{asked} holds more than {most} entries; start further down");
        FileFault::new(FileReason::ResultTooLarge, message)
    }
}

/// `None` if the entry was deleted or replaced since its name was read.
fn unless_gone<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            _ => Err(error),
        },
    }
}
