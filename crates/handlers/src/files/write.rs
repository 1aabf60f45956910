//! Writes, edits and copies files of the workspace.

use rustix::io::Errno;

use super::{
    Files,
    access::{MissingParents, OpenEntry, WriteTarget},
    error::{FileFault, FileReason, quoted},
    kernel,
    staged_file::StagedFile,
};

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EditResult {
    /// Absolute.
    pub path: String,
    pub replacements: usize,
}

/// Which occurrences of the old text to replace.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Occurrences {
    /// The only one; several are an error.
    Only,
    All,
}

impl Files {
    pub(super) fn replace_text(&self, asked: &str, content: &str) -> Result<String, FileFault> {
        self.fits(content.len(), asked)?;
        let _lock = self.lock_workspace()?;
        let target = self.new_target(asked)?;
        let replaced = self.at(&target, asked)?;
        self.put(&target, replaced.as_ref(), content.as_bytes(), asked)
    }

    pub(super) fn add_text(&self, asked: &str, content: &str) -> Result<String, FileFault> {
        self.fits(content.len(), asked)?;
        let _lock = self.lock_workspace()?;
        let target = self.new_target(asked)?;
        let replaced = self.at(&target, asked)?;
        let mut bytes = match &replaced {
            Some(found) => self.read_whole(found, asked, self.caps.write_bytes)?,
            None => Vec::new(),
        };
        if bytes.len() + content.len() > self.caps.write_bytes {
            return Err(self.grown(asked));
        }
        bytes.extend_from_slice(content.as_bytes());
        self.put(&target, replaced.as_ref(), &bytes, asked)
    }

    pub(super) fn exchange_text(
        &self,
        asked: &str,
        old: &str,
        new: &str,
        which: Occurrences,
    ) -> Result<EditResult, FileFault> {
        if old.is_empty() {
            return Err(FileFault::new(
                FileReason::EditOldRequired,
                "the text to replace is empty; quote some of the file",
            ));
        }
        let _lock = self.lock_workspace()?;
        let place = self.writable(asked)?;
        let missing = || {
            FileFault::new(
                FileReason::EditFileMissing,
                format!("{} does not exist; write it first", quoted(asked)),
            )
        };
        let target = self.target(&place, MissingParents::MustExist, asked)?.ok_or_else(missing)?;
        let found = self.at(&target, asked)?.ok_or_else(missing)?;
        let text = kernel::text(self.read_whole(&found, asked, self.caps.read_bytes)?, asked)?;
        let replacements = text.matches(old).count();
        self.may_replace(replacements, which, asked)?;
        // Computed first: a thousand replacements by a megabyte would exhaust the memory.
        let kept = text.len() - replacements * old.len();
        let size = replacements.checked_mul(new.len()).and_then(|added| added.checked_add(kept));
        if size.is_none_or(|size| size > self.caps.write_bytes) {
            return Err(self.grown(asked));
        }
        let path = self.put(&target, Some(&found), text.replace(old, new).as_bytes(), asked)?;
        Ok(EditResult { path, replacements })
    }

    pub(super) fn copy_file(&self, from: &str, to: &str) -> Result<String, FileFault> {
        let source = self.look(from)?.filter(|found| found.metadata.is_file());
        let source = source.ok_or_else(|| {
            FileFault::new(FileReason::CopySourceNotFile, format!("{} is not a regular file", quoted(from)))
        })?;
        let bytes = self.read_whole(&source, from, self.caps.write_bytes)?;
        let _lock = self.lock_workspace()?;
        let target = self.new_target(to)?;
        let replaced = self.at(&target, to)?;
        self.put(&target, replaced.as_ref(), &bytes, to)
    }

    pub(super) fn new_target(&self, asked: &str) -> Result<WriteTarget, FileFault> {
        let place = self.writable(asked)?;
        let target = self.target(&place, MissingParents::Create, asked)?;
        target.ok_or_else(|| FileFault::io(asked, &Errno::NOENT.into()))
    }

    fn put(
        &self,
        target: &WriteTarget,
        replaced: Option<&OpenEntry>,
        bytes: &[u8],
        asked: &str,
    ) -> Result<String, FileFault> {
        if replaced.is_some_and(|found| !found.metadata.is_file()) {
            return Err(kernel::not_a_file(asked));
        }
        let io = |error| FileFault::io(asked, &error);
        self.byte_counter.count_written(bytes.len());
        let staged = StagedFile::write(target, replaced.map(|found| &found.metadata), bytes).map_err(io)?;
        self.check_deadline()?;
        staged.commit().map_err(io)?;
        target.keep_name(asked)?;
        Ok(self.roots.absolute(&target.path))
    }

    fn may_replace(&self, replacements: usize, which: Occurrences, asked: &str) -> Result<(), FileFault> {
        self.check_deadline()?;
        match (replacements, which) {
            (0, _) => {
                let message = format!("the text to replace is not in {}; read the file again", quoted(asked));
                Err(FileFault::new(FileReason::EditNoMatch, message))
            }
            (1, _) | (_, Occurrences::All) => Ok(()),
            (many, Occurrences::Only) => {
                let message = format!(
                    "the text to replace is {many} times in {}; quote more of it, or replace all",
                    quoted(asked)
                );
                Err(FileFault::new(FileReason::EditAmbiguous, message))
            }
        }
    }

    fn fits(&self, bytes: usize, asked: &str) -> Result<(), FileFault> {
        let most = self.caps.write_bytes;
        if bytes <= most {
            return Ok(());
        }
        let message = format!("the content for {} is larger than {most} bytes; write less", quoted(asked));
        Err(FileFault::new(FileReason::ContentTooLarge, message))
    }

    fn grown(&self, asked: &str) -> FileFault {
        let most = self.caps.write_bytes;
        let message = format!("{} would grow beyond {most} bytes; begin another file", quoted(asked));
        FileFault::new(FileReason::FileTooLarge, message)
    }
}
