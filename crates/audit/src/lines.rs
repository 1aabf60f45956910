//! Which lines does a journal have, file after file, also while it grows?

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use crate::{JournalError, folder};

/// Goes through the lines of a journal. At the end it may be asked again later: the journal may have grown.
#[derive(Debug)]
pub(crate) struct Lines {
    folder: PathBuf,
    /// The file being read or, without a reader, the one that is done.
    name: String,
    reader: Option<BufReader<File>>,
    limit: Option<Limit>,
    bytes: Vec<u8>,
    /// Of the line that was read last.
    number: u64,
    start: u64,
    /// Where the next line begins.
    offset: u64,
}

/// What came next. The bytes are in [`Lines::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Line,
    /// Longer than any line that the journal writes; skipped.
    TooLong,
    /// The file ends without LF. In the last file it may be in the middle of being written, and is read again.
    Torn,
    End,
}

/// Where a journal ended when somebody began to read it.
#[derive(Debug)]
struct Limit {
    file: String,
    length: u64,
}

impl Lines {
    /// All lines of the files that come after the name `after`, and those that are added meanwhile.
    pub(crate) fn after(folder: &Path, after: &str) -> Self {
        Self {
            folder: folder.into(),
            name: after.to_owned(),
            reader: None,
            limit: None,
            bytes: Vec::new(),
            number: 0,
            start: 0,
            offset: 0,
        }
    }

    /// The lines that are there now, so that a reader slower than the writer comes to an end.
    pub(crate) fn until_now(folder: &Path) -> Result<Self, JournalError> {
        let mut lines = Self::after(folder, "");
        if let Some(file) = folder::day_files(folder)?.0.pop() {
            let path = folder.join(&file);
            let meta = path.symlink_metadata().map_err(|error| JournalError::io("look at", &path, error))?;
            lines.limit = Some(Limit { file, length: meta.len() });
        }
        Ok(lines)
    }

    /// Begins in the middle of a file.
    pub(crate) fn seek(&mut self, name: &str, offset: u64) -> Result<(), JournalError> {
        self.open(name)?;
        self.offset = offset;
        self.rewind().map_err(|error| self.failed(error))
    }

    pub(crate) fn next(&mut self) -> Result<Next, JournalError> {
        loop {
            if self.reader.is_none() {
                let Some(name) = self.following()? else { return Ok(Next::End) };
                self.open(&name)?;
            }
            if self.is_at_limit() {
                return Ok(Next::End);
            }
            let next = self.read().map_err(|error| self.failed(error))?;
            if matches!(next, Next::Line | Next::TooLong) || self.following()?.is_none() {
                return Ok(next);
            }
            // The writer leaves a file for good before it makes the next one, so a second look sees the rest.
            let again = self.read().map_err(|error| self.failed(error))?;
            if matches!(again, Next::Line | Next::TooLong) {
                return Ok(again);
            }
            self.reader = None;
            if again == Next::Torn {
                return Ok(again);
            }
        }
    }

    /// The line that was read last, without LF.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the file being read may still grow, as far as anybody can know.
    pub(crate) fn is_in_last_file(&self) -> bool {
        self.reader.is_some()
    }

    /// The file of the line that was read last.
    pub(crate) fn file(&self) -> &str {
        &self.name
    }

    /// The number, in its file, of the last whole line that was read.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Where in its file the line begins that was read last.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Where in its file the next line will begin.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    fn following(&self) -> Result<Option<String>, JournalError> {
        let is_within = |file: &String| self.limit.as_ref().is_none_or(|limit| *file <= limit.file);
        let files = folder::day_files(&self.folder)?.0;
        Ok(files.into_iter().find(|file| *file > self.name && is_within(file)))
    }

    fn is_at_limit(&self) -> bool {
        self.limit.as_ref().is_some_and(|limit| limit.file == self.name && self.offset >= limit.length)
    }

    fn open(&mut self, name: &str) -> Result<(), JournalError> {
        name.clone_into(&mut self.name);
        (self.number, self.start, self.offset) = (0, 0, 0);
        let file = folder::open_regular(&self.folder.join(name)).map_err(|error| self.failed(error))?;
        self.reader = Some(BufReader::with_capacity(BUFFER, file));
        Ok(())
    }

    /// Reads the line at `offset`. A torn one is left where it is.
    fn read(&mut self) -> io::Result<Next> {
        let Some(reader) = &mut self.reader else { return Ok(Next::End) };
        self.bytes.clear();
        let mut length = 0_u64;
        loop {
            let available = reader.fill_buf()?;
            if available.is_empty() {
                self.start = self.offset;
                return match length {
                    0 => Ok(Next::End),
                    1..=MAX_LINE => self.rewind().map(|()| Next::Torn),
                    _ => {
                        self.offset += length;
                        Ok(Next::TooLong)
                    }
                };
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            length += part.len() as u64;
            if length <= MAX_LINE {
                self.bytes.extend_from_slice(part);
            }
            let used = part.len() + usize::from(end.is_some());
            reader.consume(used);
            if end.is_some() {
                self.start = self.offset;
                self.offset += length + 1;
                self.number += 1;
                return Ok(if length > MAX_LINE { Next::TooLong } else { Next::Line });
            }
        }
    }

    fn rewind(&mut self) -> io::Result<()> {
        let offset = SeekFrom::Start(self.offset);
        self.reader.as_mut().map_or(Ok(()), |reader| reader.seek(offset).map(|_| ()))
    }

    fn failed(&self, error: io::Error) -> JournalError {
        JournalError::io("read", &self.folder.join(&self.name), error)
    }
}

const BUFFER: usize = 256 << 10;
/// Larger than the largest entry and what stands around it.
const MAX_LINE: u64 = 8 << 20;
