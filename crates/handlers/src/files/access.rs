//! Checks and opens paths.

use std::{
    fs::{File, Metadata},
    io,
};

use rustix::io::Errno;

use super::{
    Files,
    error::{FileFault, FileReason, quoted},
    kernel,
    roots::{CleanPath, below, escapes, join, outside_workspace},
};

/// An existing entry that the policy grants, with an open handle.
#[derive(Debug)]
pub(super) struct OpenEntry {
    pub handle: File,
    pub metadata: Metadata,
    /// The requested path: absolute, clean, below a root.
    pub path: String,
    /// The real path.
    pub real: String,
}

/// An open directory of the workspace, and the name in it to write.
#[derive(Debug)]
pub(super) struct WriteTarget {
    pub folder: File,
    /// The real path of the directory.
    folder_path: String,
    pub name: String,
    /// The requested path of the file: absolute, clean, below the workspace.
    pub path: String,
}

impl WriteTarget {
    /// The real path that the file has or would have.
    pub fn real(&self) -> String {
        join(&self.folder_path, &self.name)
    }

    /// Called after a rename, because a power cut must not restore the old name.
    pub fn keep_name(&self, asked: &str) -> Result<(), FileFault> {
        self.folder.sync_all().map_err(|_| {
            let message =
                format!("{} has changed, but a power cut may bring the old one back", quoted(asked));
            FileFault::new(FileReason::Io, message)
        })
    }
}

#[derive(Clone, Copy)]
pub(super) enum MissingParents {
    Create,
    MustExist,
}

impl Files {
    /// `None` if nothing exists there.
    pub(super) fn look(&self, asked: &str) -> Result<Option<OpenEntry>, FileFault> {
        let place = self.roots.readable(asked)?;
        self.judge.check(&place.path, &self.roots, asked)?;
        self.admit(&place.path, asked, escapes, &|| kernel::handle(&place.root.dir, place.inside()))
    }

    pub(super) fn must_open(&self, asked: &str) -> Result<OpenEntry, FileFault> {
        self.look(asked)?.ok_or_else(|| FileFault::io(asked, &Errno::NOENT.into()))
    }

    /// Opens a path, and checks the opened file by its current real path.
    pub(super) fn admit(
        &self,
        path: &str,
        asked: &str,
        escape: fn(&str) -> FileFault,
        open: &dyn Fn() -> io::Result<File>,
    ) -> Result<Option<OpenEntry>, FileFault> {
        for _ in 0..MOST_TRIES {
            let handle = match open() {
                Ok(handle) => handle,
                Err(error) if is_absent(&error) => return Ok(None),
                Err(error) => return Err(opening(asked, &error, escape)),
            };
            // The file was replaced after it was opened, as every write does. The name now leads to another file.
            let Some(real) = kernel::real_path(&handle, asked)? else { continue };
            if self.roots.iter().all(|root| below(&real, &root.real).is_none()) {
                return Err(escape(asked));
            }
            self.judge.check(&real, &self.roots, asked)?;
            let metadata = kernel::metadata(&handle, asked)?;
            // Skipped for an open symlink, which leads nowhere. Writing to it is rejected later.
            if !metadata.is_symlink() {
                self.check_judged(path, &real, asked)?;
            }
            self.check_hard_link(&metadata, asked)?;
            return Ok(Some(OpenEntry { handle, metadata, path: path.into(), real }));
        }
        Err(FileFault::new(
            FileReason::Io,
            format!("{} is replaced faster than it can be opened", quoted(asked)),
        ))
    }

    pub(super) fn writable(&self, asked: &str) -> Result<CleanPath<'_>, FileFault> {
        let place = self.roots.writable(asked)?;
        self.judge.check(&place.path, &self.roots, asked)?;
        Ok(place)
    }

    /// `None` if the directory does not exist and must not be created.
    pub(super) fn target(
        &self,
        place: &CleanPath<'_>,
        parents: MissingParents,
        asked: &str,
    ) -> Result<Option<WriteTarget>, FileFault> {
        let (parent, name) = place.inside().rsplit_once('/').unwrap_or((".", place.inside()));
        if matches!(name, "" | "." | "..") {
            return Err(kernel::not_a_file(asked));
        }
        let opened = match (kernel::folder(&place.root.dir, parent), parents) {
            (Err(error), MissingParents::Create) if is_absent(&error) => {
                self.make_folders(place, parent, asked)?
            }
            (Err(error), MissingParents::MustExist) if is_absent(&error) => return Ok(None),
            (opened, _) => opened.map_err(|error| opening(asked, &error, outside_workspace))?,
        };
        let folder_path = self.folder_path(&opened, asked)?;
        let target = WriteTarget { folder: opened, folder_path, name: name.into(), path: place.path.clone() };
        self.judge.check(&target.real(), &self.roots, asked)?;
        Ok(Some(target))
    }

    /// The current entry of a target. A symlink is rejected, because a write would change another file.
    pub(super) fn at(&self, target: &WriteTarget, asked: &str) -> Result<Option<OpenEntry>, FileFault> {
        let open = || kernel::child(&target.folder, target.name.as_ref());
        let found = self.admit(&target.path, asked, outside_workspace, &open)?;
        if found.is_none() {
            self.check_judged(&target.path, &target.real(), asked)?;
        }
        if found.as_ref().is_some_and(|found| found.metadata.is_symlink()) {
            let message = format!("{} is a symbolic link; write to the file itself", quoted(asked));
            return Err(FileFault::new(FileReason::WriteThroughSymlink, message));
        }
        Ok(found)
    }

    /// Creates missing directories one by one, each beneath the workspace and checked first.
    fn make_folders(&self, place: &CleanPath<'_>, inside: &str, asked: &str) -> Result<File, FileFault> {
        let failed = |error: io::Error| opening(asked, &error, outside_workspace);
        let workspace = &self.roots.workspace.dir;
        let mut reached = kernel::folder(workspace, ".").map_err(failed)?;
        let mut length = 0;
        for name in inside.split('/') {
            length += name.len();
            let so_far = inside.get(..length).unwrap_or(inside);
            reached = match kernel::folder(workspace, so_far) {
                Err(error) if is_absent(&error) => {
                    let path = join(&self.folder_path(&reached, asked)?, name);
                    self.judge.check(&path, &self.roots, asked)?;
                    self.check_way(&place.path, &path, asked)?;
                    match rustix::fs::mkdirat(&reached, name, FOLDER_MODE.into()) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(FileFault::io(asked, &error.into())),
                    }
                    kernel::folder(workspace, so_far).map_err(failed)?
                }
                opened => opened.map_err(failed)?,
            };
            length += 1;
        }
        Ok(reached)
    }

    fn folder_path(&self, folder: &File, asked: &str) -> Result<String, FileFault> {
        let path = kernel::real_path(folder, asked)?;
        let path = path.ok_or_else(|| FileFault::io(asked, &Errno::NOENT.into()))?;
        match below(&path, &self.roots.workspace.real) {
            Some(_) => Ok(path),
            None => Err(outside_workspace(asked)),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

fn opening(asked: &str, error: &io::Error, escape: fn(&str) -> FileFault) -> FileFault {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        // EXDEV: the path left the root. ELOOP: a symlink loop, or a magic link of `/proc`.
        Some(Errno::XDEV | Errno::LOOP) => escape(asked),
        Some(Errno::NAMETOOLONG) => kernel::too_long(asked),
        _ => kernel::unsupported(error).unwrap_or_else(|| FileFault::io(asked, error)),
    }
}

const MOST_TRIES: usize = 100;
const FOLDER_MODE: u32 = 0o755;
