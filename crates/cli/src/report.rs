//! What does a finding look like once its file is gone? Everything that a report needs, and nothing of the text.

mod excerpt;
mod github;
mod json;
mod place;
mod sarif;
mod text;

use std::io::{self, Write};

use toolgate_spec::{Code, Finding, Position, Severity};

pub use excerpt::Excerpt;
pub use github::Github;
pub use json::Json;
pub use place::report;
pub use sarif::Sarif;
pub use text::{Text, counted};

use crate::load::Unreadable;

/// A finding with its file, place and excerpt. All texts are still untrusted.
#[derive(Clone, Debug)]
pub struct Reported {
    pub file: String,
    /// The tool it concerns; none if it concerns the whole file.
    pub tool: Option<String>,
    pub finding: Finding,
    pub place: Option<Place>,
}

/// Where a finding stands, for people.
#[derive(Clone, Debug)]
pub struct Place {
    pub start: Position,
    pub end: Position,
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

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    pub files: usize,
    pub tools: usize,
    pub errors: usize,
    pub warnings: usize,
    /// Counted, and left out because their file had too many.
    pub not_shown: usize,
    pub unreadable: usize,
}

/// A way to print findings. Called in order, as files are finished.
pub trait Report {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()>;
    fn finding(&mut self, out: &mut dyn Write, reported: &Reported) -> io::Result<()>;
    fn unreadable(&mut self, out: &mut dyn Write, unreadable: &Unreadable) -> io::Result<()>;
    fn end(&mut self, out: &mut dyn Write, summary: &Summary) -> io::Result<()>;
}
