//! Reads the lines of a journal across its files, also while it grows.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Seek as _, SeekFrom},
    path::{Path, PathBuf},
};

use crate::{JournalError, folder};

/// An iterator over the lines of a journal. At the end it may be called again later, because the journal may grow.
#[derive(Debug)]
pub(crate) struct JournalLines {
    folder: PathBuf,
    /// The file that is being read or, without a reader, the last finished one.
    name: String,
    reader: Option<BufReader<File>>,
    limit: Option<ReadLimit>,
    bytes: Vec<u8>,
    /// The number of the last line that was read.
    number: u64,
    start: u64,
    /// The offset of the next line.
    offset: u64,
}

/// The result of reading a line. The bytes are in [`JournalLines::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineRead {
    Line,
    /// Longer than any line that the journal writes; skipped.
    TooLong,
    /// The file ends without LF. In the last file the line may be incomplete because it is being written; it is then
    /// read again.
    Torn,
    End,
}

/// The end of a journal when reading started.
#[derive(Debug)]
struct ReadLimit {
    file: String,
    length: u64,
}

impl JournalLines {
    /// All lines of the files after the name `after`, including lines that are added meanwhile.
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

    /// The lines that exist now. A reader that is slower than the writer still reaches the end.
    pub(crate) fn until_now(folder: &Path) -> Result<Self, JournalError> {
        let mut lines = Self::after(folder, "");
        if let Some(file) = folder::day_files(folder)?.0.pop() {
            let path = folder.join(&file);
            let meta = path
                .symlink_metadata()
                .map_err(|error| JournalError::io("read the metadata of", &path, error))?;
            lines.limit = Some(ReadLimit { file, length: meta.len() });
        }
        Ok(lines)
    }

    /// Starts at an offset of a file.
    pub(crate) fn seek(&mut self, name: &str, offset: u64) -> Result<(), JournalError> {
        self.open(name)?;
        self.offset = offset;
        self.rewind().map_err(|error| self.failed(error))
    }

    pub(crate) fn next(&mut self) -> Result<LineRead, JournalError> {
        loop {
            if self.reader.is_none() {
                let Some(name) = self.following()? else { return Ok(LineRead::End) };
                self.open(&name)?;
            }
            if self.is_at_limit() {
                return Ok(LineRead::End);
            }
            let next = self.read().map_err(|error| self.failed(error))?;
            if matches!(next, LineRead::Line | LineRead::TooLong) || self.following()?.is_none() {
                return Ok(next);
            }
            // The writer finishes a file before it creates the next one, so a second read returns the rest.
            let again = self.read().map_err(|error| self.failed(error))?;
            if matches!(again, LineRead::Line | LineRead::TooLong) {
                return Ok(again);
            }
            self.reader = None;
            if again == LineRead::Torn {
                return Ok(again);
            }
        }
    }

    /// The last line that was read, without LF.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether the file that is being read may still grow.
    pub(crate) fn is_in_last_file(&self) -> bool {
        self.reader.is_some()
    }

    /// The file of the last line that was read.
    pub(crate) fn file(&self) -> &str {
        &self.name
    }

    /// The number of the last complete line in its file.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The offset of the last line in its file.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The offset of the next line in its file.
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

    /// Reads the line at `offset`. An incomplete line is not consumed.
    fn read(&mut self) -> io::Result<LineRead> {
        let Some(reader) = &mut self.reader else { return Ok(LineRead::End) };
        self.bytes.clear();
        let mut length = 0_u64;
        loop {
            let available = reader.fill_buf()?;
            if available.is_empty() {
                self.start = self.offset;
                return match length {
                    0 => Ok(LineRead::End),
                    1..=MAX_LINE => self.rewind().map(|()| LineRead::Torn),
                    _ => {
                        self.offset += length;
                        Ok(LineRead::TooLong)
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
                return Ok(if length > MAX_LINE { LineRead::TooLong } else { LineRead::Line });
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
/// Larger than the largest entry and the rest of its line.
const MAX_LINE: u64 = 8 << 20;
