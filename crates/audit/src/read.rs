//! Reads the records of a journal in a time range.

use std::{fmt, path::Path, time::SystemTime};

use serde::Serialize;
use serde_json::Value;

use crate::{
    JournalError, RecordPosition, folder,
    lines::{JournalLines, LineRead},
    record::RecordLine,
    stamp::Stamp,
};

/// Reads a journal, also while it is being written. Each record must be intact; [`crate::verify`] checks that all are
/// there and in order.
pub fn read(folder: &Path, span: TimeRange) -> Result<Entries, JournalError> {
    folder::day_files(folder)?;
    let since = span.since.and_then(Stamp::of).unwrap_or(Stamp::EPOCH);
    // `2026-11-16` sorts before `2026-11-16.jsonl` and after all earlier files.
    Ok(Entries { lines: JournalLines::after(folder, &since.day_text()), since, span, is_over: false })
}

/// The records to read; without bounds, all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeRange {
    /// At or after this time.
    pub since: Option<SystemTime>,
    /// Before this time.
    pub until: Option<SystemTime>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    pub position: RecordPosition,
    /// `2026-11-16T03:59:31.123456Z`. Never before the time of an earlier record.
    pub time: String,
    /// The system clock's time, if it was behind `time`.
    #[serde(rename = "wallClock", skip_serializing_if = "Option::is_none")]
    pub wall_clock: Option<String>,
    pub entry: Value,
}

/// A line that is not an intact record. Later lines can still be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    pub file: String,
    pub line: u64,
    pub what: String,
}

/// An iterator over records in journal order. At the end it may be called again later, to get new records.
#[derive(Debug)]
pub struct Entries {
    lines: JournalLines,
    since: Stamp,
    span: TimeRange,
    is_over: bool,
}

impl Iterator for Entries {
    type Item = Result<Record, Flaw>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            match self.lines.next() {
                Ok(LineRead::End) => return None,
                // The last line may be incomplete because it is being written.
                Ok(LineRead::Torn) if self.lines.is_in_last_file() => return None,
                Ok(LineRead::Torn) => return Some(Err(self.flaw("it is cut off", 1))),
                Ok(LineRead::TooLong) => return Some(Err(self.flaw("it is too long for a record", 0))),
                Ok(LineRead::Line) => {}
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(self.flaw(&error.to_string(), 0)));
                }
            }
            let Some(line) = RecordLine::parse(self.lines.bytes()).filter(RecordLine::is_intact) else {
                return Some(Err(self.flaw("it is not a record, or was changed", 0)));
            };
            // A later record may have an earlier system time, if the clock was set back.
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
    pub(crate) fn of(line: &RecordLine<'_>) -> Option<Self> {
        let entry = serde_json::from_str(line.entry).ok()?;
        let wall_clock = line.time.wall_clock.map(Stamp::text);
        Some(Self { position: line.position, time: line.time.stamp.text(), wall_clock, entry })
    }

    /// The system time at which it was written.
    pub fn real_time(&self) -> &str {
        self.wall_clock.as_deref().unwrap_or(&self.time)
    }

    /// The record's time.
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
