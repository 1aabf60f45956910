//! Findings for people: severity, code, message, location, excerpt with carets, remedy.

use std::{
    fmt::Write as _,
    io::{self, Write},
};

use toolgate_spec::Severity;

use super::{FindingLocation, ReportFormatter, Reported, Summary};
use crate::{
    load::Unreadable,
    terminal::{Palette, visible, width},
};

#[derive(Debug)]
pub struct TextReport {
    pub palette: Palette,
    pub with_summary: bool,
    /// The maximum width of excerpts. If a line wrapped, the carets would no longer match it.
    pub columns: Option<usize>,
}

impl ReportFormatter for TextReport {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, out: &mut dyn Write, reported: &Reported) -> io::Result<()> {
        let Palette { frame, bold, .. } = self.palette;
        let (word, style) = match reported.severity() {
            Severity::Error => ("error", self.palette.error),
            Severity::Warning => ("warning", self.palette.warning),
        };
        let message = visible(&reported.finding.message);
        writeln!(out, "{style}{word}[{}]{style:#}{bold}: {message}{bold:#}", reported.code().name())?;
        let margin = reported.location.as_ref().map_or(1, |location| location.start.line.to_string().len());
        let gap = " ".repeat(margin);
        let file = visible(&reported.file);
        match &reported.location {
            Some(location) => {
                let (line, column) = (location.start.line, location.start.column);
                writeln!(out, "{gap}{frame}-->{frame:#} {file}:{line}:{column}")?;
                let shown = match self.columns {
                    Some(columns) => location.excerpt.within(columns.saturating_sub(margin + 3)),
                    None => location.excerpt.clone(),
                };
                excerpt(out, (location, &shown), &gap, frame, style)?;
            }
            None => writeln!(out, "{gap}{frame}-->{frame:#} {file}")?,
        }
        if let Some(whereabouts) = whereabouts(reported) {
            writeln!(out, "{gap} {frame}={frame:#} {bold}at{bold:#}: {whereabouts}")?;
        }
        if !reported.finding.remedy.is_empty() {
            writeln!(
                out,
                "{gap} {frame}={frame:#} {bold}help{bold:#}: {}",
                visible(&reported.finding.remedy)
            )?;
        }
        writeln!(out)
    }

    fn unreadable(&mut self, _: &mut dyn Write, _: &Unreadable) -> io::Result<()> {
        // `check` prints it on standard error.
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        if !self.with_summary {
            return Ok(());
        }
        let style = match summary {
            Summary { errors: 1.., .. } | Summary { unreadable: 1.., .. } => self.palette.error,
            Summary { warnings: 1.., .. } => self.palette.warning,
            _ => self.palette.good,
        };
        writeln!(out, "{style}{}{style:#}", sentence(summary))
    }
}

/// `1 error`, `1,204 errors`.
pub fn counted(count: usize, noun: &str) -> String {
    let digits = count.to_string();
    let mut number = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            number.push(',');
        }
        number.push(digit);
    }
    let plural = if count == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

fn excerpt(
    out: &mut dyn Write,
    (location, shown): (&FindingLocation, &super::Excerpt),
    gap: &str,
    frame: anstyle::Style,
    style: anstyle::Style,
) -> io::Result<()> {
    let super::Excerpt { before, marked, after } = shown;
    let indent = " ".repeat(width(before));
    let carets = "^".repeat(width(marked).max(1));
    writeln!(out, "{gap} {frame}|{frame:#}")?;
    writeln!(out, "{frame}{} |{frame:#} {before}{marked}{after}", location.start.line)?;
    writeln!(out, "{gap} {frame}|{frame:#} {indent}{style}{carets}{style:#}")
}

/// The tool and the pointer, if the finding has any.
fn whereabouts(reported: &Reported) -> Option<String> {
    let pointer = reported.finding.at.as_str();
    let tool = reported.tool.as_deref().filter(|name| !name.is_empty());
    let mut words = String::new();
    if let Some(tool) = tool {
        // Writing to a `String` cannot fail.
        let _ = write!(words, "tool `{}`", visible(tool));
    }
    if !pointer.is_empty() {
        let comma = if words.is_empty() { "" } else { ", " };
        let _ = write!(words, "{comma}{}", visible(pointer));
    }
    (!words.is_empty()).then_some(words)
}

fn sentence(summary: &Summary) -> String {
    let mut found = Vec::new();
    if summary.errors > 0 {
        found.push(counted(summary.errors, "error"));
    }
    if summary.warnings > 0 {
        found.push(counted(summary.warnings, "warning"));
    }
    if found.is_empty() && summary.unreadable == 0 {
        found.push("nothing found".into());
    }
    if summary.not_shown > 0 {
        found.push(format!("{} not shown", counted(summary.not_shown, "finding")));
    }
    if summary.unreadable > 0 {
        found.push(format!("{} could not be read", counted(summary.unreadable, "path")));
    }
    let (tools, files) = (counted(summary.tools, "tool"), counted(summary.files, "file"));
    format!("{tools} in {files}: {}", found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_has_plurals_and_separators() {
        let summary = Summary { files: 37, tools: 1204, errors: 2, warnings: 14, ..Summary::default() };
        assert_eq!(sentence(&summary), "1,204 tools in 37 files: 2 errors, 14 warnings");
        let summary = Summary { files: 1, tools: 1, unreadable: 1, ..Summary::default() };
        assert_eq!(sentence(&summary), "1 tool in 1 file: 1 path could not be read");
        assert_eq!(counted(1_000_000, "tool"), "1,000,000 tools");
    }
}
