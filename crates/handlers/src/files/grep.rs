//! Reads lines of a file: grep, slice, cut and sort.

use std::{cmp::Ordering, collections::HashSet};

use super::{
    Files,
    error::{FileFault, FileReason, quoted},
    lines::{LineOutput, LineReader, OVERHEAD, OutputBudget, ScanBudget},
    pattern::{LetterCase, LinePattern},
};

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct GrepOptions {
    pub case_insensitive: bool,
    /// 0 means the limit on lines, where the result ends. A larger value fails once more lines match than the limit.
    pub limit: usize,
    /// Each line begins with its number and a colon.
    pub numbered: bool,
}

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CutOptions {
    /// Counted from 1; a missing field is empty.
    pub fields: Vec<i64>,
    /// Default: a tab.
    pub delimiter: Option<String>,
    /// The delimiter is a regular expression, and the fields are joined by tabs.
    pub regex: bool,
}

#[expect(clippy::struct_excessive_bools, reason = "the four switches of the options object that tools pass")]
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SortOptions {
    pub reverse: bool,
    /// Lines that are not numbers come last in both directions, in the order of the file.
    pub numeric: bool,
    pub case_insensitive: bool,
    /// Keeps the first of equal lines; lines that differ in case are not equal.
    pub unique: bool,
}

impl Files {
    pub(super) fn matching_lines(
        &self,
        pattern: &str,
        asked: &str,
        options: GrepOptions,
    ) -> Result<Vec<String>, FileFault> {
        let mut pattern = self.pattern(pattern, letter_case(options.case_insensitive))?;
        let found = self.must_open(asked)?;
        let mut lines = LineReader::open(self, &found, asked)?;
        let mut scan = ScanBudget::one_file(self);
        let mut output = LineOutput::of(self);
        let limit = if options.limit == 0 { self.caps.lines } else { options.limit };
        while output.lines.len() < limit {
            let Some(line) = lines.next(&mut scan)? else { break };
            if pattern.is_match(line)? {
                let line = line.to_owned();
                output.push(if options.numbered { format!("{}:{line}", lines.number) } else { line })?;
            }
        }
        Ok(output.lines)
    }

    pub(super) fn pattern(&self, pattern: &str, case: LetterCase) -> Result<LinePattern<'_>, FileFault> {
        if pattern.is_empty() {
            return Err(FileFault::new(
                FileReason::GrepPatternRequired,
                "the pattern is empty; use `.*` for every line",
            ));
        }
        LinePattern::new(self, pattern, case).map_err(|why| {
            FileFault::new(
                FileReason::GrepInvalidPattern,
                format!("pattern {} cannot be used: {why}", quoted(pattern)),
            )
        })
    }

    pub(super) fn count_lines(&self, asked: &str) -> Result<u64, FileFault> {
        let found = self.must_open(asked)?;
        let mut lines = LineReader::open_exact(self, &found, asked)?;
        let mut scan = ScanBudget::one_file(self);
        while lines.next(&mut scan)?.is_some() {}
        Ok(lines.number)
    }

    pub(super) fn lines_between(&self, asked: &str, start: i64, end: i64) -> Result<Vec<String>, FileFault> {
        let count = if start < 0 || end < 0 { self.count_lines(asked)? } else { 0 };
        let (start, end) = (from_start(start, count), from_start(end, count));
        let found = self.must_open(asked)?;
        let mut lines = LineReader::open(self, &found, asked)?;
        let mut scan = ScanBudget::one_file(self);
        let mut output = LineOutput::of(self);
        while start < end && lines.number < end {
            let Some(line) = lines.next(&mut scan)? else { break };
            let line = line.to_owned();
            if lines.number > start {
                output.push(line)?;
            }
        }
        Ok(output.lines)
    }

    pub(super) fn fields_of(&self, asked: &str, options: &CutOptions) -> Result<Vec<String>, FileFault> {
        if options.fields.is_empty() {
            let message = "`fields` is empty; name at least one field, counted from 1";
            return Err(FileFault::new(FileReason::CutFieldsRequired, message));
        }
        let delimiter = options.delimiter.as_deref().unwrap_or(TAB);
        let mut splitter = self.splitter(delimiter, options.regex)?;
        let joint = if options.regex { TAB } else { delimiter };
        let found = self.must_open(asked)?;
        let mut lines = LineReader::open(self, &found, asked)?;
        let mut scan = ScanBudget::one_file(self);
        let mut output = LineOutput::of(self);
        let mut budget = OutputBudget { left: self.caps.output_bytes };
        while let Some(line) = lines.next(&mut scan)? {
            let pieces = splitter.split(line)?;
            output.push(pick(&pieces, &options.fields, joint, &mut budget)?)?;
        }
        Ok(output.lines)
    }

    fn splitter<'f>(&'f self, delimiter: &'f str, is_regex: bool) -> Result<Splitter<'f>, FileFault> {
        let invalid = |why: &str| {
            let message = format!("delimiter {} cannot be used: {why}", quoted(delimiter));
            FileFault::new(FileReason::CutInvalidDelimiter, message)
        };
        if delimiter.is_empty() {
            return Err(invalid("it is empty"));
        }
        if !is_regex {
            return Ok(Splitter::Text(delimiter));
        }
        let pattern = LinePattern::new(self, delimiter, LetterCase::Counts).map_err(|why| invalid(&why))?;
        Ok(Splitter::Expression(Box::new(pattern)))
    }

    pub(super) fn sorted_lines(&self, asked: &str, options: SortOptions) -> Result<Vec<String>, FileFault> {
        let found = self.must_open(asked)?;
        let mut lines = LineReader::open(self, &found, asked)?;
        let mut scan = ScanBudget::one_file(self);
        let mut output = LineOutput::of(self);
        let mut seen = HashSet::new();
        while let Some(line) = lines.next(&mut scan)? {
            if options.unique && seen.contains(line) {
                continue;
            }
            let line = line.to_owned();
            if options.unique {
                seen.insert(line.clone());
            }
            output.push(line)?;
        }
        Ok(sort(output.lines, options))
    }
}

pub(super) fn letter_case(is_ignored: bool) -> LetterCase {
    if is_ignored { LetterCase::Ignored } else { LetterCase::Counts }
}

enum Splitter<'f> {
    Text(&'f str),
    Expression(Box<LinePattern<'f>>),
}

impl Splitter<'_> {
    fn split<'l>(&mut self, line: &'l str) -> Result<Vec<&'l str>, FileFault> {
        match self {
            Self::Text(delimiter) => Ok(line.split(*delimiter).collect()),
            Self::Expression(pattern) => split(pattern, line),
        }
    }
}

fn split<'l>(pattern: &mut LinePattern<'_>, line: &'l str) -> Result<Vec<&'l str>, FileFault> {
    let mut pieces = Vec::new();
    let (mut piece, mut from) = (0, 0);
    while from <= line.len() {
        let Some((start, end)) = pattern.find(line, from)? else { break };
        // An empty match separates nothing, for example at the start of the line or inside a character.
        if start == end {
            from = line.ceil_char_boundary(end + 1).max(end + 1);
            continue;
        }
        let Some(text) = line.get(piece..start) else { break };
        pieces.push(text);
        (piece, from) = (end, end);
    }
    pieces.push(line.get(piece..).unwrap_or_default());
    Ok(pieces)
}

/// Each piece is charged, because a field may be requested any number of times.
fn pick(
    pieces: &[&str],
    fields: &[i64],
    joint: &str,
    budget: &mut OutputBudget,
) -> Result<String, FileFault> {
    let mut line = String::new();
    budget.pay(OVERHEAD)?;
    for (at, field) in fields.iter().enumerate() {
        let index = field.checked_sub(1).and_then(|index| usize::try_from(index).ok());
        let piece = index.and_then(|index| pieces.get(index)).copied().unwrap_or_default();
        let joint = if at == 0 { "" } else { joint };
        budget.pay(joint.len() + piece.len())?;
        line.push_str(joint);
        line.push_str(piece);
    }
    Ok(line)
}

fn from_start(index: i64, count: u64) -> u64 {
    u64::try_from(index).unwrap_or_else(|_| count.saturating_sub(index.unsigned_abs()))
}

fn sort(mut lines: Vec<String>, options: SortOptions) -> Vec<String> {
    let directed = |order: Ordering| if options.reverse { order.reverse() } else { order };
    if options.numeric {
        return sorted_by_key(lines, number, |a, b| by_number(*a, *b, directed));
    }
    if options.case_insensitive {
        return sorted_by_key(lines, str::to_lowercase, |a, b| directed(a.cmp(b)));
    }
    lines.sort_by(|a, b| directed(a.cmp(b)));
    lines
}

/// Lines that are not numbers come last, in both directions.
fn by_number(a: Option<f64>, b: Option<f64>, directed: impl Fn(Ordering) -> Ordering) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => directed(a.total_cmp(&b)),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

fn number(line: &str) -> Option<f64> {
    // Adding zero makes `-0` equal to `0`.
    line.trim().parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number + 0.0)
}

fn sorted_by_key<K>(
    lines: Vec<String>,
    key: impl Fn(&str) -> K,
    order: impl Fn(&K, &K) -> Ordering,
) -> Vec<String> {
    let mut keyed: Vec<(K, String)> = lines.into_iter().map(|line| (key(&line), line)).collect();
    keyed.sort_by(|(a, _), (b, _)| order(a, b));
    keyed.into_iter().map(|(_, line)| line).collect()
}

const TAB: &str = "\t";
