//! Removes matches that contain a secret from search results. A redacted line would still show that it matched: a
//! caller who searches for `sk_live_a`, `sk_live_b` and so on would learn the secret letter by letter.

use std::ops::Range;

use serde_json::Value;
use toolgate_policy::Mask;
use toolgate_secrets::{Detector, Tier};
use toolgate_spec::model::CommandOutput;

use crate::cli::program::conventions::Conventions;

/// The output of a search.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SearchOutput {
    /// Not a search, or not for a text that a caller chose.
    Nothing,
    /// Every line is a match, except the message for no matches.
    Lines { but: Option<&'static str> },
    /// Matches are shown with the lines around them, in groups.
    Groups,
}

impl SearchOutput {
    pub fn by(conventions: &Conventions, line: &[String]) -> Self {
        match (conventions.searches(line), line.iter().any(|element| shows_neighbours(conventions, element)))
        {
            (false, _) => Self::Nothing,
            (true, false) => Self::Lines { but: conventions.no_match_message() },
            (true, true) => Self::Groups,
        }
    }

    /// The result without lines or records that may have matched in a secret.
    pub fn without_secrets(self, answer: Value, mask: &Mask, detector: &Detector) -> Value {
        match (self, answer) {
            (Self::Nothing, answer) => answer,
            (_, Value::String(text)) => Value::String(self.lines_without_secrets(&text, mask, detector)),
            (_, Value::Array(records)) => Value::Array(records_without_secrets(records, mask, detector)),
            // `check_form` rejects this output format.
            _ => Value::Null,
        }
    }

    fn lines_without_secrets(self, text: &str, mask: &Mask, detector: &Detector) -> String {
        let mut secrets = SecretSpans::of(text, detector);
        let but = match self {
            Self::Lines { but } => but,
            Self::Nothing | Self::Groups => None,
        };
        let is_kept = |part: &Range<usize>| {
            let shown = text.get(part.clone()).unwrap_or_default();
            !secrets.touch(part) && but != Some(shown.trim_end()) && mask.text(shown) == shown
        };
        let kept: Vec<&str> =
            self.parts(text).into_iter().filter(is_kept).filter_map(|part| text.get(part)).collect();
        kept.join(if self == Self::Groups { SEPARATOR } else { "" })
    }

    /// The parts of the output that are kept or removed as a whole.
    fn parts(self, text: &str) -> Vec<Range<usize>> {
        let (mut parts, mut at, mut is_open) = (Vec::<Range<usize>>::new(), 0, false);
        for line in text.split_inclusive('\n') {
            let span = at..at + line.len();
            at = span.end;
            if self == Self::Groups && line == SEPARATOR {
                is_open = false;
                continue;
            }
            match parts.last_mut().filter(|_| is_open) {
                Some(group) => group.end = span.end,
                None => parts.push(span),
            }
            is_open = self == Self::Groups;
        }
        parts
    }
}

/// Rejects output formats in which something of a removed line would remain.
pub fn check_form(conventions: &Conventions, line: &[String], output: &CommandOutput) -> Result<(), String> {
    if !conventions.searches(line) {
        return Ok(());
    }
    if let Some(option) = conventions.revealing_option(line) {
        return Err(format!(
            "`{option}` would reveal matches in secrets although their lines are removed; leave it out, or write the search text into the manifest"
        ));
    }
    match output {
        CommandOutput::Text | CommandOutput::JsonLines => Ok(()),
        CommandOutput::Json | CommandOutput::Select(_) => Err(
            "it searches for a caller's text, and matches in secrets cannot be removed from one JSON value; set `output: text` or `output: jsonl`"
                .to_owned(),
        ),
    }
}

/// Scans each text separately and all of them together, as the gate does with results.
fn records_without_secrets(records: Vec<Value>, mask: &Mask, detector: &Detector) -> Vec<Value> {
    let written: Vec<String> = records.iter().map(Value::to_string).collect();
    let mut secrets = SecretSpans::of(&written.join(","), detector);
    let mut at = 0;
    let spans = written.iter().map(|record| {
        let span = at..at + record.len();
        at = span.end + 1;
        span
    });
    let is_kept = |(record, span): &(Value, Range<usize>)| {
        !secrets.touch(span) && !has_secret_text(record, detector) && mask.value(record.clone()) == *record
    };
    records.into_iter().zip(spans).filter(is_kept).map(|(record, _)| record).collect()
}

fn has_secret_text(value: &Value, detector: &Detector) -> bool {
    let is_secret = |text: &str| detector.contains(text.as_bytes(), Tier::Probable).is_some();
    match value {
        Value::String(text) => is_secret(text),
        Value::Array(items) => items.iter().any(|item| has_secret_text(item, detector)),
        Value::Object(members) => {
            members.iter().any(|(name, value)| is_secret(name) || has_secret_text(value, detector))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Positions of secrets in a text, for a scan from the start.
struct SecretSpans {
    spans: std::iter::Peekable<std::vec::IntoIter<Range<usize>>>,
}

impl SecretSpans {
    fn of(text: &str, detector: &Detector) -> Self {
        let sure = detector.scan(text).into_iter().filter(|finding| finding.tier >= Tier::Probable);
        let spans: Vec<Range<usize>> = sure.map(|finding| finding.span).collect();
        Self { spans: spans.into_iter().peekable() }
    }

    /// Whether a secret overlaps this part. Parts must be passed in order.
    fn touch(&mut self, part: &Range<usize>) -> bool {
        while self.spans.next_if(|secret| secret.end <= part.start).is_some() {}
        self.spans.peek().is_some_and(|secret| secret.start < part.end)
    }
}

/// `-A 2`, `-rnC2`, `-3`, `--context=2`, also abbreviated, and options that show the surrounding function.
fn shows_neighbours(conventions: &Conventions, element: &str) -> bool {
    if let Some(word) = element.strip_prefix("--") {
        let first = word.split(['-', '=']).next().unwrap_or_default();
        let is_begun = |whole: &&str| first.len() > 2 && whole.starts_with(first);
        return ["after", "before", "context", "function"].iter().any(is_begun);
    }
    conventions.letters_of(element).is_some_and(|letters| {
        letters.starts_with(|c: char| c.is_ascii_digit()) || letters.contains(['A', 'B', 'C', 'W'])
    })
}

/// The separator between groups of lines.
const SEPARATOR: &str = "--\n";
