//! One JSON object, written as the findings come.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Report, Reported, Summary};
use crate::{commands::explain::severity_name, load::Unreadable, terminal};

#[derive(Debug, Default)]
pub struct Json {
    deny_warnings: bool,
    written: usize,
    unreadable: Vec<Value>,
}

impl Json {
    pub fn new(deny_warnings: bool) -> Self {
        Self { deny_warnings, ..Self::default() }
    }
}

impl Report for Json {
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
    let place = reported.place.as_ref();
    json!({
        "file": reported.file,
        "tool": reported.tool,
        "pointer": reported.finding.at.as_str(),
        "line": place.map(|place| place.start.line),
        "column": place.map(|place| place.start.column),
        "endLine": place.map(|place| place.end.line),
        "endColumn": place.map(|place| place.end.column),
        "code": reported.code().name(),
        "severity": severity_name(reported.severity()),
        "message": reported.finding.message,
        "remedy": reported.finding.remedy,
    })
}

/// Of this object's shape; fields may be added without changing it.
const VERSION: u32 = 1;
