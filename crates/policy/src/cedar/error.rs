//! Errors in policies, each with position and help.

use std::{error::Error, fmt};

use miette::Diagnostic;
use toolgate_spec::{LineIndex, SourcePosition, edit_distance};

/// One error in one file. Policies with an error are not used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CedarError {
    /// The file, or another cause such as a tool.
    pub file: String,
    pub position: Option<SourcePosition>,
    pub message: String,
    pub help: Option<String>,
}

impl CedarError {
    /// An error that no file causes.
    pub(super) fn outside(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: what.into(), position: None, message: visible(&message.into()), help: None }
    }

    pub(super) fn at(file: &str, lines: &LineIndex<'_>, offset: usize, message: impl Into<String>) -> Self {
        let position = Some(lines.position(offset));
        Self { file: file.to_owned(), position, message: visible(&message.into()), help: None }
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help.map(|help| visible(&help));
        self
    }

    /// Converts an error of Cedar. `fallback` is the start of the policy.
    pub(super) fn from_cedar(
        file: &str,
        lines: &LineIndex<'_>,
        fallback: usize,
        found: &dyn Diagnostic,
    ) -> Self {
        let label = found.labels().and_then(|mut labels| labels.next());
        let offset = label.as_ref().map_or(fallback, miette::LabeledSpan::offset);
        let message = plain(&found.to_string());
        let label = label.and_then(|label| label.label().map(plain)).filter(|label| *label != message);
        let ours = message.ends_with("but saw decimal").then(|| COMPARE_DECIMALS.to_owned());
        let help = found.help().map(|help| plain(&help.to_string())).or(label).or(ours);
        Self::at(file, lines, offset, message).with_help(help)
    }
}

impl fmt::Display for CedarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(SourcePosition { line, column }) => {
                write!(f, "{}:{line}:{column}: {}", self.file, self.message)?;
            }
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl Error for CedarError {}

/// "did you mean …?", if a known name is similar.
pub(super) fn suggestion<'known>(word: &str, known: impl Iterator<Item = &'known str>) -> Option<String> {
    if word.len() > LONGEST_GUESSED {
        return None;
    }
    known
        .filter(|candidate| candidate.len() <= LONGEST_GUESSED)
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(edits, candidate)| *edits <= 2 && *edits * 2 < candidate.len())
        .min()
        .map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// One line, without Cedar's internal policy number.
fn plain(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, ")) {
        Some((_, message)) => message.to_owned(),
        None => line,
    }
}

/// Escapes control and bidirectional characters, so people see the actual text.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}

const LONGEST_GUESSED: usize = 64;

const COMPARE_DECIMALS: &str = "compare with `.lessThan(decimal(\"1.0\"))`, `.greaterThan(…)` and similar";
