//! One JSON object, streamed as findings arrive.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{ReportFormatter, Reported, Summary};
use crate::{commands::explain::severity_name, load::Unreadable, terminal};

#[derive(Debug, Default)]
pub struct JsonReport {
    deny_warnings: bool,
    written: usize,
    unreadable: Vec<Value>,
}

impl JsonReport {
    pub fn new(deny_warnings: bool) -> Self {
        Self { deny_warnings, ..Self::default() }
    }
}

impl ReportFormatter for JsonReport {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\"version\":{VERSION},\"findings\":[")
    }

    fn finding(&mut self, out: &mut dyn Write, reported: &Reported) -> io::Result<()> {
        let comma = if self.written == 0 { "" } else { "," };
        write!(out, "{comma}\n{}", terminal::json(&object(reported)))?;
        self.written += 1;
        Ok(())
    }

    fn unreadable(&mut self, _: &mut dyn Write, unreadable: &Unreadable) -> io::Result<()> {
        self.unreadable.push(json!({ "file": unreadable.file, "problem": unreadable.problem }));
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()> {
        let unreadable = terminal::json(&Value::Array(std::mem::take(&mut self.unreadable)));
        let counts = json!({
            "tools": summary.tools,
            "errors": summary.errors,
            "warnings": summary.warnings,
            "notShown": summary.not_shown,
            "unreadable": summary.unreadable,
        });
        let is_ok = summary.unreadable == 0
            && summary.files > 0
            && summary.errors == 0
            && !(self.deny_warnings && summary.warnings > 0);
        writeln!(
            out,
            "\n],\"ok\":{is_ok},\"unreadable\":{unreadable},\"files\":{},\"summary\":{counts}}}",
            summary.files
        )
    }
}

fn object(reported: &Reported) -> Value {
    let location = reported.location.as_ref();
    json!({
        "file": reported.file,
        "tool": reported.tool,
        "pointer": reported.finding.at.as_str(),
        "line": location.map(|location| location.start.line),
        "column": location.map(|location| location.start.column),
        "endLine": location.map(|location| location.end.line),
        "endColumn": location.map(|location| location.end.column),
        "code": reported.code().name(),
        "severity": severity_name(reported.severity()),
        "message": reported.finding.message,
        "remedy": reported.finding.remedy,
    })
}

/// The version of the object's format. Added members do not change it.
const VERSION: u32 = 1;
