//! Moves and deletes entries of the workspace.

use std::{ffi::OsStr, fs::File};

use rustix::{
    fs::{AtFlags, renameat, unlinkat},
    io::Errno,
};

use super::{
    Files,
    access::{MissingParents, OpenEntry, WriteTarget},
    error::{FileFault, FileReason, quoted},
    kernel,
    roots::{below, join},
    walk::{TreeWalk, WalkScope, WalkStep},
};

impl Files {
    pub(super) fn move_entry(&self, from: &str, to: &str) -> Result<String, FileFault> {
        let _lock = self.lock_workspace()?;
        let place = self.writable(from)?;
        if place.is_root() {
            return Err(FileFault::new(
                FileReason::MoveWorkspaceRoot,
                "the workspace itself cannot be moved",
            ));
        }
        let missing =
            || FileFault::new(FileReason::MoveSourceMissing, format!("{} does not exist", quoted(from)));
        let source = self.target(&place, MissingParents::MustExist, from)?.ok_or_else(missing)?;
        let moved = self.at(&source, from)?.ok_or_else(missing)?;
        let target = self.new_target(to)?;
        let replaced = self.at(&target, to)?;
        for (found, asked) in [(Some(&moved), from), (replaced.as_ref(), to)] {
            if found.is_some_and(|found| !found.metadata.is_file() && !found.metadata.is_dir()) {
                return Err(kernel::not_a_file(asked));
            }
        }
        if moved.metadata.is_dir() {
            self.may_move_all(&moved, &target, from)?;
        }
        self.check_deadline()?;
        renameat(&source.folder, &source.name, &target.folder, &target.name)
            .map_err(|error| FileFault::io(to, &error.into()))?;
        target.keep_name(to)?;
        source.keep_name(from)?;
        Ok(self.roots.absolute(&target.path))
    }

    pub(super) fn delete_file(&self, asked: &str) -> Result<bool, FileFault> {
        let is_directory = || {
            FileFault::new(
                FileReason::DeleteIsDirectory,
                format!("{} is a folder; use `deleteDir`", quoted(asked)),
            )
        };
        let _lock = self.lock_workspace()?;
        let place = self.writable(asked)?;
        if place.is_root() {
            return Err(is_directory());
        }
        let Some(target) = self.target(&place, MissingParents::MustExist, asked)? else { return Ok(false) };
        let Some(found) = self.at(&target, asked)? else { return Ok(false) };
        if found.metadata.is_dir() {
            return Err(is_directory());
        }
        match unlinkat(&target.folder, &target.name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(FileFault::io(asked, &error.into())),
        }
    }

    pub(super) fn delete_tree(&self, asked: &str) -> Result<u64, FileFault> {
        let _lock = self.lock_workspace()?;
        let place = self.writable(asked)?;
        if place.is_root() {
            let message = "the workspace itself cannot be deleted; delete what is in it";
            return Err(FileFault::new(FileReason::DeleteDirWorkspaceRoot, message));
        }
        let Some(target) = self.target(&place, MissingParents::MustExist, asked)? else { return Ok(0) };
        let Some(found) = self.at(&target, asked)? else { return Ok(0) };
        if !found.metadata.is_dir() {
            let message = format!("{} is not a folder; use `delete`", quoted(asked));
            return Err(FileFault::new(FileReason::DeleteDirNotADirectory, message));
        }
        // Checked completely before anything is deleted: a tree that may not be deleted as a whole stays.
        self.each_below(&found, asked, &mut |_, real, shown| self.judge.check(real, &self.roots, shown))?;
        let io = |error| FileFault::io(asked, &error);
        let folder = kernel::folder(&found.handle, ".").map_err(io)?;
        let mut removal = Removal { files: self, removed: 0 };
        removal.empty(&folder, &found.real, self.caps.depth)?;
        removal.remove(&target.folder, target.name.as_ref(), AtFlags::REMOVEDIR, asked)?;
        Ok(removal.removed)
    }

    /// The contents of a directory move along, so all of it must be granted at the old and the new path.
    fn may_move_all(&self, moved: &OpenEntry, target: &WriteTarget, asked: &str) -> Result<(), FileFault> {
        let new_folder = target.real();
        self.each_below(moved, asked, &mut |rest, real, shown| {
            self.judge.check(real, &self.roots, shown)?;
            self.judge.check(&join(&new_folder, rest), &self.roots, shown)
        })
    }

    /// Calls `check` with the path below the directory, the real path and the path to show.
    fn each_below(
        &self,
        folder: &OpenEntry,
        asked: &str,
        check: &mut dyn FnMut(&str, &str, &str) -> Result<(), FileFault>,
    ) -> Result<(), FileFault> {
        TreeWalk::new(self, WalkScope::Everything, ALL_LEVELS, asked).run(folder, &mut |entry| {
            let rest = below(&entry.real, &folder.real).unwrap_or_default();
            check(rest, &entry.real, &self.roots.shown(&entry.path))?;
            Ok(WalkStep::Continue)
        })
    }
}

struct Removal<'f> {
    files: &'f Files,
    removed: u64,
}

impl Removal<'_> {
    /// Symlinks are removed, not followed.
    fn empty(&mut self, folder: &File, path: &str, levels_left: usize) -> Result<(), FileFault> {
        let files = self.files;
        let shown = files.roots.shown(path);
        let names =
            kernel::names(folder, files.caps.walked).map_err(|error| FileFault::io(&shown, &error))?;
        let changing = || {
            let message = format!("{} grows while it is deleted; try again", quoted(&shown));
            FileFault::new(FileReason::ResultTooLarge, message)
        };
        for name in names.ok_or_else(changing)? {
            files.check_deadline()?;
            let path = join(path, &kernel::lossy(&name));
            let shown = files.roots.shown(&path);
            files.judge.check(&path, &files.roots, &shown)?;
            let Ok(inner) = kernel::child_folder(folder, &name) else {
                self.remove(folder, &name, AtFlags::empty(), &shown)?;
                continue;
            };
            let levels_left = levels_left.checked_sub(1).ok_or_else(changing)?;
            self.empty(&inner, &path, levels_left)?;
            self.remove(folder, &name, AtFlags::REMOVEDIR, &shown)?;
        }
        Ok(())
    }

    fn remove(&mut self, folder: &File, name: &OsStr, how: AtFlags, shown: &str) -> Result<(), FileFault> {
        match unlinkat(folder, name, how) {
            Ok(()) => {
                self.removed += 1;
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(FileFault::io(shown, &error.into())),
        }
    }
}

const ALL_LEVELS: usize = 0;
