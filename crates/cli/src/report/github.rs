//! Workflow commands, one line a finding. A document must not be able to write a command of its own.

use std::io::{self, Write};

use toolgate_spec::Severity;

use super::{Report, Reported, Summary};
use crate::{load::Unreadable, terminal::visible};

#[derive(Debug)]
pub struct Github;

impl Report for Github {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, out: &mut dyn Write, reported: &Reported) -> io::Result<()> {
        let command = match reported.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(out, "::{command} file={}", property(&reported.file))?;
        if let Some(place) = &reported.place {
            write!(out, ",line={},endLine={}", place.start.line, place.end.line)?;
            // Columns are understood only within one line.
            if place.start.line == place.end.line {
                write!(out, ",col={},endColumn={}", place.start.column, place.end.column)?;
            } else {
                write!(out, ",col={}", place.start.column)?;
            }
        }
        let finding = &reported.finding;
        write!(out, ",title={}::{}", property(reported.code().name()), data(&finding.message))?;
        if !finding.remedy.is_empty() {
            write!(out, "%0Ahelp: {}", data(&finding.remedy))?;
        }
        writeln!(out)
    }

    fn unreadable(&mut self, out: &mut dyn Write, unreadable: &Unreadable) -> io::Result<()> {
        writeln!(
            out,
            "::error file={},title=could not be read::{}",
            property(&unreadable.file),
            data(&unreadable.problem)
        )
    }

    fn end(&mut self, _: &mut dyn Write, _: &Summary) -> io::Result<()> {
        Ok(())
    }
}

/// The text of a command. Line breaks are already spelled out by `visible`; `%` would start an escape, and `::`
/// is kept apart for readers that look for it anywhere in a line.
fn data(text: &str) -> String {
    visible(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A").replace("::", "%3A%3A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::{data, property};

    #[test]
    fn a_document_cannot_write_commands() {
        assert_eq!(data("a\n::set-output name=x::y"), "a\\n%3A%3Aset-output name=x%3A%3Ay");
        assert_eq!(data("100%0A::error::"), "100%250A%3A%3Aerror%3A%3A");
        assert_eq!(property("a,line=1:b"), "a%2Cline=1%3Ab");
    }
}
