//! Reads files, directories and metadata.

use std::os::unix::fs::MetadataExt as _;

use super::{
    Files,
    error::{FileFault, FileReason, quoted},
    kernel,
    lines::LineOutput,
    roots::join,
};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileStat {
    pub size: u64,
    /// Milliseconds since 1970.
    pub mtime: i64,
    pub directory: bool,
}

impl Files {
    pub(super) fn text_of(&self, asked: &str) -> Result<String, FileFault> {
        let found = self.must_open(asked)?;
        let text = kernel::text(self.read_whole(&found, asked, self.caps.read_bytes)?, asked)?;
        match &self.redactor {
            Some(redactor) => redactor.redact_text(text, || self.check_deadline()),
            None => Ok(text),
        }
    }

    pub(super) fn entries_of(&self, asked: &str) -> Result<Vec<String>, FileFault> {
        let Some(found) = self.look(asked)? else { return Ok(Vec::new()) };
        if !found.metadata.is_dir() {
            return Err(FileFault::new(
                FileReason::NotADirectory,
                format!("{} is not a folder", quoted(asked)),
            ));
        }
        let io = |error| FileFault::io(asked, &error);
        let folder = kernel::folder(&found.handle, ".").map_err(io)?;
        let mut output = LineOutput::new(self.caps.entries, self.caps.output_bytes);
        let names = kernel::names(&folder, self.caps.walked).map_err(io)?;
        for name in names.ok_or_else(|| output.too_large())? {
            self.check_deadline()?;
            if kernel::is_unfinished(&name) {
                continue;
            }
            let name = kernel::lossy(&name);
            let path = join(&found.path, &name);
            if self.shows(&path, &join(&found.real, &name)) {
                output.push(self.roots.shown(&path))?;
            }
        }
        Ok(output.lines)
    }

    /// Paths that the policy does not grant are not listed.
    pub(super) fn shows(&self, path: &str, real: &str) -> bool {
        self.judge.grants(path, &self.roots) && (path == real || self.judge.grants(real, &self.roots))
    }

    pub(super) fn is_there(&self, asked: &str) -> Result<bool, FileFault> {
        match self.look(asked) {
            Ok(found) => Ok(found.is_some()),
            Err(fault) if fault.is_refusal() || fault.reason == FileReason::Io => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    pub(super) fn stat_of(&self, asked: &str) -> Result<FileStat, FileFault> {
        let metadata = self.must_open(asked)?.metadata;
        Ok(FileStat {
            size: metadata.len(),
            mtime: metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000),
            directory: metadata.is_dir(),
        })
    }
}
