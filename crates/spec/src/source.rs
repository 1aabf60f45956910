//! Decodes bytes to text, and converts offsets to lines and columns.

use std::ops::Range;

use crate::{Code, Finding, Pointer};

/// A byte range of the text that was read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SourceSpan {
    pub start: usize,
    pub end: usize,
}

impl SourceSpan {
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    #[must_use]
    pub const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }

    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// The format of a document.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    Json,
    Yaml,
}

impl Format {
    /// Chooses by file name: `.yaml` and `.yml` are YAML, everything else is JSON.
    pub fn of_file_name(name: &str) -> Self {
        let extension = name.rsplit('.').next().unwrap_or_default();
        if extension.eq_ignore_ascii_case("yaml") || extension.eq_ignore_ascii_case("yml") {
            Self::Yaml
        } else {
            Self::Json
        }
    }
}

/// One-based line and column; columns count characters, as editors do.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct SourcePosition {
    pub line: usize,
    pub column: usize,
}

/// The line starts of a text: built in one pass; positions are found by binary search.
#[derive(Clone, Debug)]
pub struct LineIndex<'text> {
    text: &'text str,
    line_starts: Vec<usize>,
}

impl<'text> LineIndex<'text> {
    pub fn new(text: &'text str) -> Self {
        let after_newlines =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { text, line_starts: std::iter::once(0).chain(after_newlines).collect() }
    }

    pub fn position(&self, offset: usize) -> SourcePosition {
        let line = self.line_starts.partition_point(|start| *start <= offset).max(1);
        let before = self.text.get(self.start_of(line)..offset).unwrap_or_default();
        SourcePosition { line, column: before.chars().count() + 1 }
    }

    /// A line without its end, counted from one; empty after the last line.
    pub fn line(&self, line: usize) -> &'text str {
        let rest = self.text.get(self.start_of(line)..).unwrap_or_default();
        rest.lines().next().unwrap_or_default()
    }

    /// The byte offset of a position whose column counts bytes.
    pub(crate) fn byte_offset(&self, line: usize, byte_column: usize) -> usize {
        let mut offset = (self.start_of(line) + byte_column.saturating_sub(1)).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }

    /// The byte offset of a position whose column counts characters.
    pub(crate) fn char_offset(&self, line: usize, column: usize) -> usize {
        let start = self.start_of(line);
        let line = self.line(line);
        start + line.char_indices().nth(column.saturating_sub(1)).map_or(line.len(), |(at, _)| at)
    }

    /// The offset of the end of the line that contains this byte, without scanning the line.
    pub(crate) fn end_of_line(&self, offset: usize) -> usize {
        let next = self.line_starts.partition_point(|start| *start <= offset);
        let end = self.line_starts.get(next).map_or(self.text.len(), |start| start - 1);
        let is_return = end > offset && self.text.as_bytes().get(end - 1) == Some(&b'\r');
        if is_return { end - 1 } else { end }
    }

    fn start_of(&self, line: usize) -> usize {
        self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }
}

/// Decodes a file as UTF-8 and reports the first invalid byte.
pub fn decode(bytes: &[u8]) -> Result<&str, Finding> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(refuse(
            0,
            format!("the file has {} bytes; at most {MAX_FILE_BYTES} are read", bytes.len()),
            "split the bundle into several files",
        ));
    }
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err(refuse(
            0,
            "the file is UTF-16, not UTF-8".into(),
            "save the file as UTF-8 without a byte order mark",
        ));
    }
    match std::str::from_utf8(bytes) {
        Err(error) => Err(refuse(
            error.valid_up_to(),
            format!("byte {} is not UTF-8", error.valid_up_to() + 1),
            "save the file as UTF-8 without a byte order mark",
        )),
        Ok(text) if text.starts_with('\u{feff}') => Err(refuse(
            0,
            "the file begins with a byte order mark, which JSON forbids".into(),
            "save the file as UTF-8 without a byte order mark",
        )),
        Ok(text) => Ok(text),
    }
}

fn refuse(offset: usize, message: String, remedy: &str) -> Finding {
    Finding::new(Code::SpecParse, Pointer::root(), message, remedy).at_span(SourceSpan::new(offset, offset))
}

/// The size limit of a file. A bundle may contain thousands of tools.
pub const MAX_FILE_BYTES: usize = 32 * 1024 * 1024;

/// The size limit of one tool. The largest in any known catalog has 24 KiB.
pub const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// The maximum nesting in JSON: the limit of the parser, which fits a thread's stack.
pub const MAX_DEPTH: usize = 127;

/// The maximum nesting in YAML, whose parser needs ten times the stack per level.
pub const MAX_YAML_DEPTH: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_from_one_and_columns_in_characters() {
        let text = "{\n  \"é\": 1\n}";
        let lines = LineIndex::new(text);
        assert_eq!(lines.position(0), SourcePosition { line: 1, column: 1 });
        assert_eq!(lines.position(text.find(':').unwrap()), SourcePosition { line: 2, column: 6 });
        assert_eq!(lines.position(text.len()), SourcePosition { line: 3, column: 2 });
        assert_eq!((lines.line(2), lines.line(9)), ("  \"é\": 1", ""));
        assert_eq!(lines.char_offset(2, 6), text.find(':').unwrap());
    }

    #[test]
    fn invalid_byte_is_reported() {
        assert!(decode(b"{\"a\": \"\xff\"}").unwrap_err().message.contains("byte 8"));
        assert!(decode(b"\xef\xbb\xbf{}").unwrap_err().message.contains("byte order mark"));
        assert!(decode(b"\xff\xfe{\0").unwrap_err().message.contains("UTF-16"));
    }
}
