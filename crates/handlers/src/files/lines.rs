//! How is a file gone through line by line without holding it, and how much is given back?

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read},
};

use super::{
    Files,
    access::Found,
    error::{Fault, Reason, quoted},
    kernel,
    veil::VeiledFile,
};

/// Lines end with `\n` or `\r\n`; what follows the last end is a line if it is not empty.
pub(super) struct Lines<'f> {
    files: &'f Files,
    reader: BufReader<Source>,
    asked: &'f str,
    line: Vec<u8>,
    /// Of the line that was read last, counted from 1.
    pub number: u64,
    before: usize,
}

impl<'f> Lines<'f> {
    /// Lines as the tool may see them.
    pub fn open(files: &'f Files, found: &Found, asked: &'f str) -> Result<Self, Fault> {
        let file = kernel::readable(&found.handle, asked)?;
        let source = match &files.veil {
            Some(veil) => Source::Veiled(Box::new(veil.over_file(file, files.caps.scan_bytes))),
            None => Source::Exact(file),
        };
        Ok(Self::over(files, source, asked))
    }

    /// Lines as they stand in the file, for whoever tells nothing of what is in them.
    pub fn open_exact(files: &'f Files, found: &Found, asked: &'f str) -> Result<Self, Fault> {
        Ok(Self::over(files, Source::Exact(kernel::readable(&found.handle, asked)?), asked))
    }

    fn over(files: &'f Files, source: Source, asked: &'f str) -> Self {
        let reader = BufReader::with_capacity(BUFFER, source);
        Self { files, reader, asked, line: Vec::new(), number: 0, before: 0 }
    }

    pub fn next(&mut self, scan: &mut Scan) -> Result<Option<&str>, Fault> {
        if self.number.is_multiple_of(LINES_BETWEEN_CHECKS) || self.line.len() > BUFFER {
            self.files.go_on()?;
        }
        self.before += self.line.len();
        self.line.clear();
        let most = self.files.caps.line_bytes;
        let take = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(LINE_END);
        let read = self.reader.by_ref().take(take).read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| Fault::io(self.asked, &error))?;
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

    fn too_long(&self) -> Fault {
        let (asked, number, most) = (quoted(self.asked), self.number, self.files.caps.line_bytes);
        Fault::new(Reason::LineTooLong, format!("line {number} of {asked} is longer than {most} bytes"))
    }
}

enum Source {
    Exact(File),
    Veiled(Box<VeiledFile>),
}

impl Source {
    /// What it took to give back so many bytes.
    fn cost(&mut self, given: usize) -> usize {
        match self {
            Self::Exact(_) => given,
            Self::Veiled(file) => file.take_unpaid(),
        }
    }
}

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Exact(file) => file.read(out),
            Self::Veiled(file) => file.read(out),
        }
    }
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// How much may still be read.
pub(super) struct Scan {
    left: usize,
    most: usize,
    reason: Reason,
}

impl Scan {
    pub fn one_file(files: &Files) -> Self {
        Self { left: files.caps.scan_bytes, most: files.caps.scan_bytes, reason: Reason::FileTooLarge }
    }

    pub fn many_files(files: &Files) -> Self {
        Self { reason: Reason::ScanTooLarge, ..Self::one_file(files) }
    }

    fn pay(&mut self, bytes: usize) -> Result<(), Fault> {
        let Some(left) = self.left.checked_sub(bytes) else {
            let message = format!("there are more than {} bytes to go through; ask for less", self.most);
            return Err(Fault::new(self.reason, message));
        };
        self.left = left;
        Ok(())
    }
}

/// The lines or names that go back to the tool, as long as they are not too many.
pub(super) struct Output {
    pub lines: Vec<String>,
    most_lines: usize,
    bytes: Budget,
}

impl Output {
    pub fn new(most_lines: usize, most_bytes: usize) -> Self {
        Self { lines: Vec::new(), most_lines, bytes: Budget { left: most_bytes } }
    }

    pub fn of(files: &Files) -> Self {
        Self::new(files.caps.lines, files.caps.output_bytes)
    }

    pub fn push(&mut self, line: String) -> Result<(), Fault> {
        if self.lines.len() >= self.most_lines {
            return Err(self.too_large());
        }
        self.bytes.pay(line.len() + OVERHEAD)?;
        self.lines.push(line);
        Ok(())
    }

    pub fn too_large(&self) -> Fault {
        let message = format!("the result has more than {} entries; ask for less at a time", self.most_lines);
        Fault::new(Reason::ResultTooLarge, message)
    }
}

/// How many bytes may still go back to the tool.
pub(super) struct Budget {
    pub left: usize,
}

impl Budget {
    pub fn pay(&mut self, bytes: usize) -> Result<(), Fault> {
        let Some(left) = self.left.checked_sub(bytes) else {
            return Err(Fault::new(
                Reason::ResultTooLarge,
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

/// Quotes and a comma: a result of empty lines is not free.
pub(super) const OVERHEAD: usize = 3;
