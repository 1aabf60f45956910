//! Reads a file line by line, and bounds what is read and returned.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read},
};

use super::{
    Files,
    access::OpenEntry,
    error::{FileFault, FileReason, quoted},
    kernel,
    redaction::RedactedFile,
};

/// Lines end with `\n` or `\r\n`. Text after the last line end counts as a line if it is not empty.
pub(super) struct LineReader<'f> {
    files: &'f Files,
    reader: BufReader<LineSource>,
    asked: &'f str,
    line: Vec<u8>,
    /// The number of the last line, counted from 1.
    pub number: u64,
    before: usize,
}

impl<'f> LineReader<'f> {
    /// Lines with secrets redacted, if the grants require it.
    pub fn open(files: &'f Files, found: &OpenEntry, asked: &'f str) -> Result<Self, FileFault> {
        let file = kernel::readable(&found.handle, asked)?;
        let source = match &files.redactor {
            Some(redactor) => {
                LineSource::Redacted(Box::new(redactor.redact_file(file, files.caps.scan_bytes)))
            }
            None => LineSource::Exact(file),
        };
        Ok(Self::over(files, source, asked))
    }

    /// Lines as in the file, for functions that return no content.
    pub fn open_exact(files: &'f Files, found: &OpenEntry, asked: &'f str) -> Result<Self, FileFault> {
        Ok(Self::over(files, LineSource::Exact(kernel::readable(&found.handle, asked)?), asked))
    }

    fn over(files: &'f Files, source: LineSource, asked: &'f str) -> Self {
        let reader = BufReader::with_capacity(BUFFER, source);
        Self { files, reader, asked, line: Vec::new(), number: 0, before: 0 }
    }

    pub fn next(&mut self, scan: &mut ScanBudget) -> Result<Option<&str>, FileFault> {
        if self.number.is_multiple_of(LINES_BETWEEN_CHECKS) || self.line.len() > BUFFER {
            self.files.check_deadline()?;
        }
        self.before += self.line.len();
        self.line.clear();
        let most = self.files.caps.line_bytes;
        let take = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(LINE_END);
        let read = self.reader.by_ref().take(take).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| FileFault::io(self.asked, &error))?;
        scan.pay(self.reader.get_mut().cost(read))?;
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        let line = self.line.strip_suffix(b"\n").map_or(self.line.as_slice(), without_return);
        if line.len() > most {
            return Err(self.too_long());
        }
        let text = str::from_utf8(line)
            .map_err(|error| kernel::not_utf8(self.asked, self.before + error.valid_up_to()))?;
        Ok(Some(text))
    }

    fn too_long(&self) -> FileFault {
        let (asked, number, most) = (quoted(self.asked), self.number, self.files.caps.line_bytes);
        FileFault::new(
            FileReason::LineTooLong,
            format!("line {number} of {asked} is longer than {most} bytes"),
        )
    }
}

enum LineSource {
    Exact(File),
    Redacted(Box<RedactedFile>),
}

impl LineSource {
    /// The cost of returning this many bytes.
    fn cost(&mut self, given: usize) -> usize {
        match self {
            Self::Exact(_) => given,
            Self::Redacted(file) => file.take_cost(),
        }
    }
}

impl Read for LineSource {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Exact(file) => file.read(out),
            Self::Redacted(file) => file.read(out),
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The number of bytes that may still be read.
pub(super) struct ScanBudget {
    left: usize,
    most: usize,
    reason: FileReason,
}

impl ScanBudget {
    pub fn one_file(files: &Files) -> Self {
        Self { left: files.caps.scan_bytes, most: files.caps.scan_bytes, reason: FileReason::FileTooLarge }
    }

    pub fn many_files(files: &Files) -> Self {
        Self { reason: FileReason::ScanTooLarge, ..Self::one_file(files) }
    }

    fn pay(&mut self, bytes: usize) -> Result<(), FileFault> {
        let Some(left) = self.left.checked_sub(bytes) else {
            let message = format!("there are more than {} bytes to go through; ask for less", self.most);
            return Err(FileFault::new(self.reason, message));
        };
        self.left = left;
        Ok(())
    }
}

/// The lines or names to return, up to a limit.
pub(super) struct LineOutput {
    pub lines: Vec<String>,
    most_lines: usize,
    bytes: OutputBudget,
}

impl LineOutput {
    pub fn new(most_lines: usize, most_bytes: usize) -> Self {
        Self { lines: Vec::new(), most_lines, bytes: OutputBudget { left: most_bytes } }
    }

    pub fn of(files: &Files) -> Self {
        Self::new(files.caps.lines, files.caps.output_bytes)
    }

    pub fn push(&mut self, line: String) -> Result<(), FileFault> {
        if self.lines.len() >= self.most_lines {
            return Err(self.too_large());
        }
        self.bytes.pay(line.len() + OVERHEAD)?;
        self.lines.push(line);
        Ok(())
    }

    pub fn too_large(&self) -> FileFault {
        let message = format!("the result has more than {} entries; ask for less at a time", self.most_lines);
        FileFault::new(FileReason::ResultTooLarge, message)
    }
}

/// The number of bytes that may still be returned.
pub(super) struct OutputBudget {
    pub left: usize,
}

impl OutputBudget {
    pub fn pay(&mut self, bytes: usize) -> Result<(), FileFault> {
        let Some(left) = self.left.checked_sub(bytes) else {
            return Err(FileFault::new(
                FileReason::ResultTooLarge,
                "the result is too large; ask for less at a time",
            ));
        };
        self.left = left;
        Ok(())
    }
}

const BUFFER: usize = 64 * 1024;
const LINES_BETWEEN_CHECKS: u64 = 64;

/// `\r\n`, which does not count towards a line's length.
const LINE_END: u64 = 2;

/// Quotes and a comma, so empty lines also count.
pub(super) const OVERHEAD: usize = 3;
