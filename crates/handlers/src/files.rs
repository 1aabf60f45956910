//! Implements `safety.fs`, the file functions of JavaScript tools.
//!
//! Names, defaults and error reasons match the reference runtime. Every path is checked twice: as requested, and by
//! the real path of the opened file. After that only the handle is used, so there is no TOCTOU race. Reads stay
//! beneath the read roots and writes beneath the workspace. Absolute symlinks are never followed, not even back
//! inside. A hard link to a file outside counts as a file of its directory, unless the file is blocked under another
//! name. All functions block the thread.

mod access;
mod blocked_links;
mod byte_counter;
mod error;
mod find;
mod grants;
mod grep;
mod judged_paths;
mod kernel;
mod lines;
mod locate;
mod path_policy;
mod pattern;
mod read;
mod redaction;
mod remove;
mod replica;
mod roots;
mod staged_file;
#[cfg(test)]
mod tests;
mod walk;
mod workspace_lock;
mod write;

use std::{fmt, path::PathBuf, sync::OnceLock};

use self::{
    blocked_links::BlockedLinks,
    byte_counter::ByteCounter,
    error::{FileFault, FileReason},
    judged_paths::CleanJudgedPath,
    path_policy::PathPolicy,
    roots::GrantedRoots,
};

pub(crate) use self::path_policy::PatternBase;
pub use self::{
    error::{FileError, FileErrorClass},
    find::{EntryKind, FindOptions, SearchHit, SearchOptions},
    grants::{FileCaps, FileGrants, FileRights},
    grep::{CutOptions, GrepOptions, SortOptions},
    judged_paths::JudgedPath,
    locate::{FileAccess, HeldPath},
    read::FileStat,
    redaction::{RedactedReads, SecretRedactor},
    replica::{CopyLimits, copy_workspace},
    write::{EditResult, Occurrences},
};

/// The files of one call.
pub struct Files {
    roots: GrantedRoots,
    judge: PathPolicy,
    /// Paths that were judged before the call began.
    judged: Vec<CleanJudgedPath>,
    own: Vec<PathBuf>,
    locks: PathBuf,
    /// Searched for when a hard-linked file is opened.
    blocked_links: OnceLock<BlockedLinks>,
    rights: FileRights,
    caps: FileCaps,
    redactor: Option<SecretRedactor>,
    is_over: Box<dyn Fn() -> bool + Send + Sync>,
    byte_counter: ByteCounter,
}

impl Files {
    /// Opens the granted directories. Long operations poll `is_over` and end as `interrupted`.
    pub fn open(
        grants: &FileGrants,
        is_over: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Result<Self, FileError> {
        let opened = GrantedRoots::open(grants).and_then(|roots| Ok((PathPolicy::new(grants)?, roots)));
        let (judge, roots) = opened.map_err(|fault| fault.by("safety.fs"))?;
        Ok(Self {
            roots,
            judge,
            judged: Vec::new(),
            own: grants.own.clone(),
            locks: grants.locks.clone(),
            blocked_links: OnceLock::new(),
            rights: grants.rights,
            caps: grants.caps,
            redactor: None,
            is_over: Box::new(is_over),
            byte_counter: ByteCounter::default(),
        })
    }

    /// Redacts secrets in what is read. Writes, copies and edits stay exact.
    #[must_use]
    pub fn redacted(self, redactor: Option<SecretRedactor>) -> Self {
        Self { redactor, ..self }
    }

    /// The workspace's absolute path.
    pub fn workspace(&self) -> String {
        self.roots.workspace.granted.clone()
    }

    /// The absolute paths that may be read, without nested ones.
    pub fn read_roots(&self) -> Vec<String> {
        self.roots.outermost().map(|root| root.granted.clone()).collect()
    }

    /// The whole file, which must be UTF-8.
    pub fn read_text(&self, path: &str) -> Result<String, FileError> {
        self.reading("safety.fs.readText", || self.text_of(path))
    }

    /// The sorted names in a directory; empty if it does not exist. Tools default to `.`.
    pub fn list(&self, dir: &str) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.list", || self.entries_of(dir))
    }

    /// A denied path counts as absent.
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

    /// Lines from `start` up to but excluding `end`, counted from 0; negative numbers count from the end.
    pub fn slice(&self, path: &str, start: i64, end: i64) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.slice", || self.lines_between(path, start, end))
    }

    /// The selected fields of every line, in the given order.
    pub fn cut(&self, path: &str, options: &CutOptions) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.cut", || self.fields_of(path, options))
    }

    pub fn sort(&self, path: &str, options: SortOptions) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.sort", || self.sorted_lines(path, options))
    }

    /// The entries below a directory whose name matches. Tools default to the glob `*`.
    pub fn find(&self, dir: &str, glob: &str, options: FindOptions) -> Result<Vec<String>, FileError> {
        self.reading("safety.fs.find", || self.entries_below(dir, glob, options))
    }

    /// The matching lines of files below a directory whose name matches. Files that are not UTF-8 are skipped.
    pub fn search_in_files(
        &self,
        dir: &str,
        glob: &str,
        pattern: &str,
        options: SearchOptions,
    ) -> Result<Vec<SearchHit>, FileError> {
        self.reading("safety.fs.searchInFiles", || self.hits_below(dir, glob, pattern, options))
    }

    /// Replaces or creates the file and its directories. Returns its absolute path.
    pub fn write_text(&self, path: &str, content: &str) -> Result<String, FileError> {
        self.writing("safety.fs.writeText", || self.replace_text(path, content))
    }

    /// Appends to the file, or creates it and its directories. Returns its absolute path.
    pub fn append_text(&self, path: &str, content: &str) -> Result<String, FileError> {
        self.writing("safety.fs.appendText", || self.add_text(path, content))
    }

    pub fn edit_text(
        &self,
        path: &str,
        old: &str,
        new: &str,
        which: Occurrences,
    ) -> Result<EditResult, FileError> {
        self.writing("safety.fs.editText", || self.exchange_text(path, old, new, which))
    }

    /// Copies a regular file into the workspace. Needs the right to read as well. Returns the copy's absolute path.
    pub fn copy(&self, from: &str, to: &str) -> Result<String, FileError> {
        let helper = "safety.fs.copy";
        self.reading(helper, || Ok(()))?;
        self.writing(helper, || self.copy_file(from, to))
    }

    /// Moves a file or directory within the workspace. Returns its new absolute path.
    pub fn move_(&self, from: &str, to: &str) -> Result<String, FileError> {
        self.writing("safety.fs.move", || self.move_entry(from, to))
    }

    /// Returns whether there was something to delete.
    pub fn delete(&self, path: &str) -> Result<bool, FileError> {
        self.writing("safety.fs.delete", || self.delete_file(path))
    }

    /// Deletes a directory and its contents. Returns the number of deleted entries, including itself.
    pub fn delete_dir(&self, path: &str) -> Result<u64, FileError> {
        self.writing("safety.fs.deleteDir", || self.delete_tree(path))
    }

    fn reading<T>(
        &self,
        helper: &'static str,
        work: impl FnOnce() -> Result<T, FileFault>,
    ) -> Result<T, FileError> {
        if self.rights.may_read() {
            return work().map_err(|fault| fault.by(helper));
        }
        Err(FileFault::new(FileReason::ReadNotGranted, "this tool may not read files; grant `fileRead`")
            .by(helper))
    }

    fn writing<T>(
        &self,
        helper: &'static str,
        work: impl FnOnce() -> Result<T, FileFault>,
    ) -> Result<T, FileError> {
        if self.rights.may_write() {
            return work().map_err(|fault| fault.by(helper));
        }
        Err(FileFault::new(FileReason::WriteNotGranted, "this tool may not write files; grant `fileWrite`")
            .by(helper))
    }

    fn check_deadline(&self) -> Result<(), FileFault> {
        if (self.is_over)() {
            return Err(FileFault::new(FileReason::Interrupted, "the call is over; ask for less at a time"));
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
