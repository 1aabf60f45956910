//! What is wrong with a policy, where, and what to do about it.

use std::{error::Error, fmt};

use miette::Diagnostic;
use toolgate_spec::{LineIndex, Position, edit_distance};

/// One mistake in one file. A set with a mistake is not used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CedarError {
    /// The file; or what else is at fault, such as a tool.
    pub file: String,
    pub position: Option<Position>,
    pub message: String,
    pub help: Option<String>,
}

impl CedarError {
    /// A mistake that no file is to blame for.
    pub(super) fn outside(what: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: what.into(), position: None, message: message.into(), help: None }
    }

    pub(super) fn at(file: &str, lines: &LineIndex<'_>, offset: usize, message: impl Into<String>) -> Self {
        let position = Some(lines.position(offset));
        Self { file: file.to_owned(), position, message: message.into(), help: None }
    }

    pub(super) fn with_help(mut self, help: Option<String>) -> Self {
        self.help = help;
        self
    }

    /// Cedar's own words, without the number that it gave to the policy. `fallback` is where the policy begins.
    pub(super) fn from_cedar(
        file: &str,
        lines: &LineIndex<'_>,
        fallback: usize,
        found: &dyn Diagnostic,
    ) -> Self {
        let label = found.labels().and_then(|mut labels| labels.next());
        let offset = label.as_ref().map_or(fallback, miette::LabeledSpan::offset);
        let said = one_line(&found.to_string());
        let message = match said.strip_prefix("for policy `").and_then(|rest| rest.split_once("`, ")) {
            Some((_, message)) => message.to_owned(),
            None => said,
        };
        let help = found.help().map(|help| one_line(&help.to_string()));
        let help = help.or_else(|| {
            label.and_then(|label| label.label().map(one_line)).filter(|label| *label != message)
        });
        Self::at(file, lines, offset, message).with_help(help)
    }
}

impl fmt::Display for CedarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.position {
            Some(Position { line, column }) => write!(f, "{}:{line}:{column}: {}", self.file, self.message)?,
            None => write!(f, "{}: {}", self.file, self.message)?,
        }
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}

impl Error for CedarError {}

/// "did you mean", where something known is near enough to be meant.
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

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

const LONGEST_GUESSED: usize = 64;
