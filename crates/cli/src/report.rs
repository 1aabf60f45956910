//! Findings as reports need them: with location and excerpt, without the file's text.

mod excerpt;
mod github;
mod json;
mod location;
mod sarif;
mod text;

use std::io::{self, Write};

use toolgate_spec::{Code, Finding, Severity, SourcePosition};

pub use excerpt::Excerpt;
pub use github::GithubReport;
pub use json::JsonReport;
pub use location::report;
pub use sarif::SarifReport;
pub use text::{TextReport, counted};

use crate::load::Unreadable;

/// A finding with its file and location. All texts are untrusted.
#[derive(Clone, Debug)]
pub struct Reported {
    pub file: String,
    /// `None` if the finding is about the whole file.
    pub tool: Option<String>,
    pub finding: Finding,
    pub location: Option<FindingLocation>,
}

/// The lines, columns and excerpt of a finding.
#[derive(Clone, Debug)]
pub struct FindingLocation {
    pub start: SourcePosition,
    pub end: SourcePosition,
    pub excerpt: Excerpt,
}

impl Reported {
    pub fn code(&self) -> Code {
        self.finding.code
    }

    pub fn severity(&self) -> Severity {
        self.finding.code.severity()
    }
}

/// The totals of a run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    pub files: usize,
    pub tools: usize,
    pub errors: usize,
    pub warnings: usize,
    /// Findings that are counted but not shown, because their file had too many.
    pub not_shown: usize,
    pub unreadable: usize,
}

/// An output format for findings. The methods are called in order, as files finish.
pub trait ReportFormatter {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()>;
    fn finding(&mut self, out: &mut dyn Write, reported: &Reported) -> io::Result<()>;
    fn unreadable(&mut self, out: &mut dyn Write, unreadable: &Unreadable) -> io::Result<()>;
    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()>;
}
