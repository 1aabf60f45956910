//! What may a JavaScript tool do with files, and how is it done without a gap between looking and using?
//!
//! The gateway's side of `safety.fs`: the sandboxed tool asks, this answers with the grants of the call, by the names,
//! defaults and reasons that tools already know. Every path is judged twice, as it was asked for and as what was opened
//! is really called, and what was judged is what is used: by handle, never by path again. Reads stay beneath the read
//! roots and writes beneath the workspace, whatever links lead away from there; a symbolic link whose target is absolute is
//! never followed, also where it leads back inside. A hard link made by somebody else to a file outside is a file of its
//! folder, unless the file is blocked by another name. Everything blocks, so callers keep it off their event loops.

mod access;
mod error;
mod find;
mod grants;
mod grep;
mod judge;
mod judged;
mod kernel;
mod lines;
mod locate;
mod pattern;
mod place;
mod read;
mod remove;
mod replica;
mod stage;
#[cfg(test)]
mod tests;
mod traffic;
mod turn;
mod twins;
mod veil;
mod walk;
mod write;

use std::{fmt, path::PathBuf, sync::OnceLock};

use self::{
    error::{Fault, Reason},
    judge::Judge,
    judged::Judged,
    place::Roots,
    traffic::Traffic,
    twins::Twins,
};

pub use self::{
    error::{FileError, FileErrorClass},
    find::{EntryKind, FindOptions, SearchHit, SearchOptions},
    grants::{FileCaps, FileGrants, FileRights},
    grep::{CutOptions, GrepOptions, SortOptions},
    judged::JudgedPath,
    locate::{Held, Wanted},
    read::FileStat,
    replica::{CopyLimits, copy_workspace},
    veil::{Veil, VeiledReads},
    write::{Edited, Occurrences},
};

/// The files of one call.
pub struct Files {
    roots: Roots,
    judge: Judge,
    /// What was judged before this call began.
    judged: Vec<Judged>,
    own: Vec<PathBuf>,
    turns: PathBuf,
    /// Looked for when a file with several names is opened.
    twins: OnceLock<Twins>,
    rights: FileRights,
    caps: FileCaps,
    veil: Option<Veil>,
    is_over: Box<dyn Fn() -> bool + Send + Sync>,
    traffic: Traffic,
}

impl Files {
    /// Opens the granted folders. Long work asks `is_over` now and then and ends as `interrupted` once it says so.
    pub fn open(
        grants: &FileGrants,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Self, FileError> {
        let opened = Roots::open(grants).and_then(|roots| Ok((Judge::new(grants)?, roots)));
        let (judge, roots) = opened.map_err(|fault| fault.by("safety.fs"))?;
        Ok(Self {
            roots,
            judge,
            judged: Vec::new(),
            own: grants.own.clone(),
            turns: grants.turns.clone(),
            twins: OnceLock::new(),
            rights: grants.rights,
            caps: grants.caps,
            veil: None,
            is_over: Box::new(is_over),
            traffic: Traffic::default(),
        })
    }

    /// The same files, read without their secrets. What is written, copied or edited stays exact.
    #[must_use]
    pub fn veiled(self, veil: Option<Veil>) -> Self {
        Self { veil, ..self }
    }

    /// The workspace's absolute path.
    pub fn workspace(&self) -> String {
        self.roots.workspace.granted.clone()
    }

    /// The absolute paths of the folders and files that may be read; one inside another is not listed.
    pub fn read_roots(&self) -> Vec<String> {
        self.roots.outermost().map(|root| root.granted.clone()).collect()
    }

    /// The whole file, which is UTF-8.
    pub fn read_text(&self, path: &str) -> Result<String, FileError> {
        self.reading("safety.fs.readText", || self.text_of(path))
    }

    /// The sorted names in a folder; none where it does not exist. The tool's default folder is `.`.
    pub fn list(&self, dir: &str) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.list", || self.entries_of(dir))
    }

    /// What is refused does not exist.
    pub fn exists(&self, path: &str) -> Result<bool, FileError> {
        self.reading("safety.fs.exists", || self.is_there(path))
    }

    pub fn stat(&self, path: &str) -> Result<FileStat, FileError> {
        self.reading("safety.fs.stat", || self.stat_of(path))
    }

    /// The lines that contain a match.
    pub fn grep(&self, pattern: &str, path: &str, options: GrepOptions) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.grep", || self.matching_lines(pattern, path, options))
    }

    pub fn line_count(&self, path: &str) -> Result<u64, FileError> {
        self.reading("safety.fs.lineCount", || self.count_lines(path))
    }

    /// Lines from `start` up to but not including `end`, counted from 0, or from the end where negative.
    pub fn slice(&self, path: &str, start: i64, end: i64) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.slice", || self.lines_between(path, start, end))
    }

    /// The chosen fields of every line, in the chosen order.
    pub fn cut(&self, path: &str, options: &CutOptions) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.cut", || self.fields_of(path, options))
    }

    pub fn sort(&self, path: &str, options: SortOptions) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.sort", || self.sorted_lines(path, options))
    }

    /// The entries below a folder whose name matches. The tool's default glob is `*`.
    pub fn find(&self, dir: &str, glob: &str, options: FindOptions) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.find", || self.entries_below(dir, glob, options))
    }

    /// The matching lines of the files below a folder whose name matches. Files that are not UTF-8 text are passed over.
    pub fn search_in_files(
        &self,
        dir: &str,
        glob: &str,
        pattern: &str,
        options: SearchOptions,
    ) -> Result<Vec<SearchHit>, FileError> {
        self.reading("safety.fs.searchInFiles", || self.hits_below(dir, glob, pattern, options))
    }

    /// Replaces the file, or makes it and its folders. Returns its absolute path.
    pub fn write_text(&self, path: &str, content: &str) -> Result<String, FileError> {
        self.writing("safety.fs.writeText", || self.replace_text(path, content))
    }

    /// Adds to the end of the file, or makes it and its folders. Returns its absolute path.
    pub fn append_text(&self, path: &str, content: &str) -> Result<String, FileError> {
        self.writing("safety.fs.appendText", || self.add_text(path, content))
    }

    pub fn edit_text(
        &self,
        path: &str,
        old: &str,
        new: &str,
        which: Occurrences,
    ) -> Result<Edited, FileError> {
        self.writing("safety.fs.editText", || self.exchange_text(path, old, new, which))
    }

    /// Copies a regular file into the workspace. Needs the right to read as well. Returns the copy's absolute path.
    pub fn copy(&self, from: &str, to: &str) -> Result<String, FileError> {
        let helper = "safety.fs.copy";
        self.reading(helper, || Ok(()))?;
        self.writing(helper, || self.copy_file(from, to))
    }

    /// Moves a file or folder within the workspace. Returns its new absolute path.
    pub fn move_(&self, from: &str, to: &str) -> Result<String, FileError> {
        self.writing("safety.fs.move", || self.move_entry(from, to))
    }

    /// Was there something to delete?
    pub fn delete(&self, path: &str) -> Result<bool, FileError> {
        self.writing("safety.fs.delete", || self.delete_file(path))
    }

    /// Deletes a folder with all that is in it, and says how many entries that were, itself included.
    pub fn delete_dir(&self, path: &str) -> Result<u64, FileError> {
        self.writing("safety.fs.deleteDir", || self.delete_tree(path))
    }

    fn reading<T>(
        &self,
        helper: &'static str,
        work: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, FileError> {
        if self.rights.may_read() {
            return work().map_err(|fault| fault.by(helper));
        }
        Err(Fault::new(Reason::ReadNotGranted, "this tool may not read files; grant `fileRead`").by(helper))
    }

    fn writing<T>(
        &self,
        helper: &'static str,
        work: impl FnOnce() -> Result<T, Fault>,
    ) -> Result<T, FileError> {
        if self.rights.may_write() {
            return work().map_err(|fault| fault.by(helper));
        }
        Err(Fault::new(Reason::WriteNotGranted, "this tool may not write files; grant `fileWrite`")
            .by(helper))
    }

    fn go_on(&self) -> Result<(), Fault> {
        if (self.is_over)() {
            return Err(Fault::new(Reason::Interrupted, "the call is over; ask for less at a time"));
        }
        Ok(())
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("roots", &self.roots)
            .field("rights", &self.rights)
            .finish_non_exhaustive()
    }
}
