//! GitHub workflow commands, one line for each finding. Text from documents is escaped, so it cannot inject commands.

use std::io::{self, Write};

use toolgate_spec::Severity;

use super::{ReportFormatter, Reported, Summary};
use crate::{load::Unreadable, terminal::visible};

#[derive(Debug)]
pub struct GithubReport;

impl ReportFormatter for GithubReport {
    fn begin(&mut self, _: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, out: &mut dyn Write, reported: &Reported) -> io::Result<()> {
        let command = match reported.severity() {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(out, "::{command} file={}", property(&reported.file))?;
        if let Some(location) = &reported.location {
            write!(out, ",line={},endLine={}", location.start.line, location.end.line)?;
            // GitHub supports an end column only within one line.
            if location.start.line == location.end.line {
                write!(out, ",col={},endColumn={}", location.start.column, location.end.column)?;
            } else {
                write!(out, ",col={}", location.start.column)?;
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

/// Escapes the text of a command. `visible` already escapes line breaks. `::` is escaped for parsers that search for it
/// anywhere in a line.
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
    fn documents_cannot_inject_commands() {
        assert_eq!(data("a\n::set-output name=x::y"), "a\\n%3A%3Aset-output name=x%3A%3Ay");
        assert_eq!(data("100%0A::error::"), "100%250A%3A%3Aerror%3A%3A");
        assert_eq!(property("a,line=1:b"), "a%2Cline=1%3Ab");
    }
}
