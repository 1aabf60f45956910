//! What does the journal say, in which time?

use std::{fmt, path::Path, time::SystemTime};

use serde::Serialize;
use serde_json::Value;

use crate::{
    JournalError, Position, folder,
    lines::{Lines, Next},
    record::Line,
    stamp::Stamp,
};

/// Reads a journal, also while it is being written. Records stand for themselves here: each must be intact, but
/// whether all are there and in order is what [`crate::verify`] tells.
pub fn read(folder: &Path, span: Span) -> Result<Entries, JournalError> {
    folder::day_files(folder)?;
    let since = span.since.and_then(Stamp::of).unwrap_or(Stamp::EPOCH);
    // Whatever the day is called, `2026-11-16` comes after no file before it and before `2026-11-16.jsonl`.
    Ok(Entries { lines: Lines::after(folder, &since.day_text()), since, span, is_over: false })
}

/// Which records to read; without bounds, all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Span {
    /// Not older than this.
    pub since: Option<SystemTime>,
    /// Older than this.
    pub until: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    pub position: Position,
    /// `2026-11-16T03:59:31.123456Z`; never before that of an earlier record.
    pub time: String,
    /// The system clock's time, if it was behind `time`.
    #[serde(rename = "wallClock", skip_serializing_if = "Option::is_none")]
    pub wall_clock: Option<String>,
    pub entry: Value,
}

/// A line that is no intact record; the ones after it can still be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub file: String,
    pub line: u64,
    pub what: String,
}

/// Records in the order of the journal. At the end it may be asked again later: what was added meanwhile comes next.
#[derive(Debug)]
pub struct Entries {
    lines: Lines,
    since: Stamp,
    span: Span,
    is_over: bool,
}

impl Iterator for Entries {
    type Item = Result<Record, Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.lines.next() {
                Ok(Next::End) => return None,
                // The last line of all may be in the middle of being written.
                Ok(Next::Torn) if self.lines.is_in_last_file() => return None,
                Ok(Next::Torn) => return Some(Err(self.flaw("it is cut off", 1))),
                Ok(Next::TooLong) => return Some(Err(self.flaw("it is too long for a record", 0))),
                Ok(Next::Line) => {}
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(self.flaw(&error.to_string(), 0)));
                }
            }
            let Some(line) = Line::parse(self.lines.bytes()).filter(Line::is_intact) else {
                return Some(Err(self.flaw("it is not a record, or was changed", 0)));
            };
            // A later record may be of an earlier time, where the clock was set back.
            let real = line.time.real();
            if real < self.since || self.span.until.is_some_and(|until| real.time() >= until) {
                continue;
            }
            return Some(Record::of(&line).ok_or_else(|| self.flaw("its entry cannot be read", 0)));
        }
        None
    }
}

impl Entries {
    fn flaw(&self, what: &str, ahead: u64) -> Flaw {
        let file = self.lines.file().to_owned();
        Flaw { file, line: self.lines.number() + ahead, what: what.to_owned() }
    }
}

impl Record {
    pub(crate) fn of(line: &Line<'_>) -> Option<Self> {
        let entry = serde_json::from_str(line.entry).ok()?;
        let wall_clock = line.time.wall_clock.map(Stamp::text);
        Some(Self { position: line.position, time: line.time.stamp.text(), wall_clock, entry })
    }

    /// When it was written by the system clock.
    pub fn real_time(&self) -> &str {
        self.wall_clock.as_deref().unwrap_or(&self.time)
    }

    /// When it was written.
    pub fn at(&self) -> Option<SystemTime> {
        Stamp::parse(&self.time).map(Stamp::time)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; run `toolgate audit verify`", self.file, self.line, self.what)
    }
}

impl std::error::Error for Flaw {}
