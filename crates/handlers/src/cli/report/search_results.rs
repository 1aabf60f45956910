//! Would what a search shows tell a caller a secret, letter by letter? A line whose secret is taken out still says that it was
//! found: who asks for `sk_live_a`, `sk_live_b` and so on learns the next letter by the answer. So a line with a secret in it is
//! no line of the answer, as if nothing had been found there.

use std::ops::Range;

use serde_json::Value;
use toolgate_policy::Mask;
use toolgate_secrets::{Detector, Tier};
use toolgate_spec::model::CommandOutput;

use crate::cli::program::conventions::Known;

/// What a command line looks for in files.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sought {
    /// Nothing, or nothing of a caller's choice.
    Nothing,
    /// Each line that is shown was found, but for the one by which the program says that there is none.
    Lines { but: Option<&'static str> },
    /// Lines are shown around those that were found, in groups.
    Groups,
}

impl Sought {
    pub fn by(known: &Known, line: &[String]) -> Self {
        match (known.searches(line), line.iter().any(|element| shows_neighbours(known, element))) {
            (false, _) => Self::Nothing,
            (true, false) => Self::Lines { but: known.says_nothing_found() },
            (true, true) => Self::Groups,
        }
    }

    /// The answer without the lines or records that were, or may have been, found in a secret.
    pub fn without_secrets(self, answer: Value, mask: &Mask, detector: &Detector) -> Value {
        match (self, answer) {
            (Self::Nothing, answer) => answer,
            (_, Value::String(text)) => Value::String(self.lines_without_secrets(&text, mask, detector)),
            (_, Value::Array(records)) => Value::Array(records_without_secrets(records, mask, detector)),
            // Such an answer is not given: see `check_form`.
            _ => Value::Null,
        }
    }

    fn lines_without_secrets(self, text: &str, mask: &Mask, detector: &Detector) -> String {
        let mut secrets = Secrets::of(text, detector);
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

    /// What is shown or not shown as a whole.
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

/// Why the answer of a search cannot be had in this form: something in it would be left of a line that is not shown.
pub fn check_form(known: &Known, line: &[String], output: &CommandOutput) -> Result<(), String> {
    if !known.searches(line) {
        return Ok(());
    }
    if let Some(option) = known.tells_besides_lines(line) {
        return Err(format!(
            "`{option}` tells that something was found in a secret, though the line is not shown; leave it out, or write out what is searched for"
        ));
    }
    match output {
        CommandOutput::Text | CommandOutput::JsonLines => Ok(()),
        CommandOutput::Json | CommandOutput::Select(_) => Err(
            "it searches for a caller's text, and what is found in a secret cannot be left out of one JSON value; write `output: text` or `output: jsonl`"
                .to_owned(),
        ),
    }
}

/// Looked at as the gate looks at a result: each text by itself, and all of them together.
fn records_without_secrets(records: Vec<Value>, mask: &Mask, detector: &Detector) -> Vec<Value> {
    let written: Vec<String> = records.iter().map(Value::to_string).collect();
    let mut secrets = Secrets::of(&written.join(","), detector);
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

/// Where the secrets of a text stand, for whoever goes through it from its beginning.
struct Secrets {
    spans: std::iter::Peekable<std::vec::IntoIter<Range<usize>>>,
}

impl Secrets {
    fn of(text: &str, detector: &Detector) -> Self {
        let sure = detector.scan(text).into_iter().filter(|finding| finding.tier >= Tier::Probable);
        let spans: Vec<Range<usize>> = sure.map(|finding| finding.span).collect();
        Self { spans: spans.into_iter().peekable() }
    }

    /// Is one of them in this part, which comes after all parts that were asked for?
    fn touch(&mut self, part: &Range<usize>) -> bool {
        while self.spans.next_if(|secret| secret.end <= part.start).is_some() {}
        self.spans.peek().is_some_and(|secret| secret.start < part.end)
    }
}

/// `-A 2`, `-rnC2`, `-3`, `--context=2`, also shortened, and the whole function around a line.
fn shows_neighbours(known: &Known, element: &str) -> bool {
    if let Some(word) = element.strip_prefix("--") {
        let first = word.split(['-', '=']).next().unwrap_or_default();
        let is_begun = |whole: &&str| first.len() > 2 && whole.starts_with(first);
        return ["after", "before", "context", "function"].iter().any(is_begun);
    }
    known.letters_of(element).is_some_and(|letters| {
        letters.starts_with(|c: char| c.is_ascii_digit()) || letters.contains(['A', 'B', 'C', 'W'])
    })
}

/// Between groups of lines.
const SEPARATOR: &str = "--\n";
