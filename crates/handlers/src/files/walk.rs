//! What is below this folder? In the order of the names, without following links, and never without end.

use std::{
    ffi::OsStr,
    fs::{File, FileType},
    io,
};

use rustix::io::Errno;

use super::{
    Files,
    access::Found,
    error::{Fault, Reason, quoted},
    kernel,
    place::join,
};

/// Something below the folder that is walked.
pub(super) struct Entry<'w> {
    pub folder: &'w File,
    pub name: &'w OsStr,
    pub kind: FileType,
    /// Below the path that was asked for.
    pub path: String,
    /// Below the path of the folder itself.
    pub real: String,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Flow {
    GoOn,
    Enough,
}

#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Seen {
    /// What the policy grants, without unfinished files.
    Granted,
    Everything,
}

pub(super) struct Walk<'f> {
    files: &'f Files,
    seen: Seen,
    /// Levels that are wanted; deeper ones are left out.
    levels: usize,
    left: usize,
    asked: &'f str,
}

impl<'f> Walk<'f> {
    /// `levels` of 0 means all; a tree deeper than the cap is then an error.
    pub fn new(files: &'f Files, seen: Seen, levels: usize, asked: &'f str) -> Self {
        let levels = if levels == 0 { usize::MAX } else { levels };
        Self { files, seen, levels, left: files.caps.walked, asked }
    }

    /// Visits every entry once, a folder before what is in it.
    pub fn run(
        mut self,
        start: &Found,
        visit: &mut dyn FnMut(&Entry<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let folder = kernel::folder(&start.handle, ".").map_err(|error| Fault::io(self.asked, &error))?;
        self.below(&folder, &start.path, &start.real, 1, visit).map(|_| ())
    }

    fn below(
        &mut self,
        folder: &File,
        path: &str,
        real: &str,
        level: usize,
        visit: &mut dyn FnMut(&Entry<'_>) -> Result<Flow, Fault>,
    ) -> Result<Flow, Fault> {
        let names = kernel::names(folder, self.left).map_err(|error| Fault::io(self.asked, &error))?;
        let names = names.ok_or_else(|| self.too_many())?;
        self.left -= names.len();
        for name in &names {
            self.files.go_on()?;
            let shown = kernel::lossy(name);
            let (path, real) = (join(path, &shown), join(real, &shown));
            if self.seen == Seen::Granted && (kernel::is_unfinished(name) || !self.files.shows(&path, &real))
            {
                continue;
            }
            let Some(kind) = self.kind(folder, name)? else { continue };
            let entry = Entry { folder, name, kind, path, real };
            if visit(&entry)? == Flow::Enough || self.enter(&entry, level, visit)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
        Ok(Flow::GoOn)
    }

    fn enter(
        &mut self,
        entry: &Entry<'_>,
        level: usize,
        visit: &mut dyn FnMut(&Entry<'_>) -> Result<Flow, Fault>,
    ) -> Result<Flow, Fault> {
        if !entry.kind.is_dir() || level >= self.levels {
            return Ok(Flow::GoOn);
        }
        if level >= self.files.caps.depth {
            let (asked, most) = (quoted(self.asked), self.files.caps.depth);
            let message = format!("{asked} holds folders nested deeper than {most}; start further down");
            return Err(Fault::new(Reason::TreeTooDeep, message));
        }
        match unless_gone(kernel::child_folder(entry.folder, entry.name)) {
            Ok(Some(folder)) => self.below(&folder, &entry.path, &entry.real, level + 1, visit),
            Ok(None) => Ok(Flow::GoOn),
            Err(error) => Err(Fault::io(&self.files.roots.shown(&entry.path), &error)),
        }
    }

    fn kind(&self, folder: &File, name: &OsStr) -> Result<Option<FileType>, Fault> {
        let metadata = kernel::child(folder, name).and_then(|handle| handle.metadata());
        let metadata = unless_gone(metadata).map_err(|error| Fault::io(self.asked, &error))?;
        Ok(metadata.map(|metadata| metadata.file_type()))
    }

    fn too_many(&self) -> Fault {
        let (asked, most) = (quoted(self.asked), self.files.caps.walked);
        let message = format!("{asked} holds more than {most} entries; start further down");
        Fault::new(Reason::ResultTooLarge, message)
    }
}

/// Somebody deleted it, or put something else in its place, since its name was read.
fn unless_gone<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) => match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => Ok(None),
            _ => Err(error),
        },
    }
}
