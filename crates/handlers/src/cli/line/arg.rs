//! What may one element of a command line be? The author's words, or a caller's value in a place where it stays a value.

use std::fmt;

use serde_json::Value;
use toolgate_gate::{Reason, Refusal};

use crate::cli::program::conventions::Known;

/// One element of a command line, with what is known of where its parts came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    parts: Vec<ArgText>,
    dashes: Dashes,
}

/// A part of an element.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgText {
    /// Written by the author.
    Author(String),
    /// Filled in by the caller, with the name of the parameter.
    Caller { name: String, text: String },
}

/// May what a caller fills in begin with `-`?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dashes {
    Refused,
    Meant,
}

impl Arg {
    /// The author's own word. Takes program text only, so that no value of a caller ends up here by mistake.
    pub fn literal(text: &'static str) -> Self {
        Self { parts: vec![ArgText::Author(text.to_owned())], dashes: Dashes::Refused }
    }

    /// A value that is an element of its own: a text, number or boolean.
    pub fn operand<'v>(value: impl Into<Option<&'v Value>>) -> Self {
        Self::option_value("", value)
    }

    /// A value glued to its option: `--max-count=`, or a letter that the command is known to take a value with, such as `-m` of
    /// `grep`. After another letter only digits pass, unless `with_dashes` says that the letter takes a value.
    pub fn option_value<'v>(option: &'static str, value: impl Into<Option<&'v Value>>) -> Self {
        // What is missing or has no text is empty, and refused as such.
        let text = value.into().and_then(|value| text_of(value).ok()).unwrap_or_default();
        let name = option.trim_start_matches('-').trim_end_matches('=');
        let name = if name.is_empty() { "a value" } else { name };
        Self::of(
            vec![ArgText::Author(option.to_owned()), ArgText::Caller { name: name.to_owned(), text }],
            Dashes::Refused,
        )
    }

    /// The value may begin with `-`, or follow a letter: the command does not take it for an option here.
    #[must_use]
    pub fn with_dashes(mut self) -> Self {
        self.dashes = Dashes::Meant;
        self
    }

    pub fn of(mut parts: Vec<ArgText>, dashes: Dashes) -> Self {
        parts.retain(|part| !matches!(part, ArgText::Author(text) if text.is_empty()));
        Self { parts, dashes }
    }

    /// The text of the element, or why it is refused.
    pub fn settle(&self, known: &Known) -> Result<String, Refusal> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                ArgText::Author(written) => text.push_str(written),
                ArgText::Caller { name, text: value } => {
                    if value.is_empty() {
                        return Err(refused(
                            format!("`{name}` is empty, no plain value, or too large a number"),
                            "give it a value",
                        ));
                    }
                    let check = if known.takes_lines() { check_text } else { check_value };
                    check(name, value)?;
                    // Judged by the element as it is built: behind `--max-count=` a `-1` is a value.
                    if self.dashes == Dashes::Refused && text.is_empty() && value.starts_with('-') {
                        return Err(would_be_an_option(name));
                    }
                    if let Some(why) = known.refuses(value, &text) {
                        return Err(refused(format!("`{name}` {why}"), "write the value without it"));
                    }
                    text.push_str(value);
                }
            }
        }
        Ok(text)
    }

    /// The text of the element, unchecked.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().map(|part| match part {
            ArgText::Author(text) | ArgText::Caller { text, .. } => text.as_str(),
        });
        texts.collect()
    }

    /// For an element that code made, of which there is no template to look at before: is the option all the author's?
    pub fn check_option(&self, known: &Known) -> Result<(), Refusal> {
        let [ArgText::Author(start), ArgText::Caller { text, .. }] = self.parts.as_slice() else {
            return Ok(());
        };
        let Some(option) = start.strip_prefix('-') else { return Ok(()) };
        // `-name=` is how some programs write their words.
        let is_named = option.find('=').is_some_and(|end| end > 1);
        let is_vouched_for = self.dashes == Dashes::Meant || text.bytes().all(|sign| sign.is_ascii_digit());
        let is_unknown = !option.is_empty() && !known.ends_options_at_dashes();
        let is_the_authors = match option.strip_prefix('-') {
            Some(_) => is_named,
            None => known.takes_rest(start) || (is_unknown && (is_named || is_vouched_for)),
        };
        if is_the_authors {
            return Ok(());
        }
        Err(refused(
            format!("`{self}` lets the caller choose options: what follows `{start}` may be more of them"),
            "the author writes the option out with `=`, or as an element of its own",
        ))
    }

    /// Does it stand on its own, with something in it that a caller chose?
    pub fn is_filled_operand(&self) -> bool {
        let begins_as_option =
            matches!(self.parts.first(), Some(ArgText::Author(text)) if text.starts_with('-'));
        !begins_as_option && self.is_filled() && self.dashes == Dashes::Refused
    }

    pub fn is_filled(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, ArgText::Caller { .. }))
    }

    /// What callers chose, each with what stands before it.
    pub fn filled_parts(&self) -> Vec<(String, &str)> {
        let (mut before, mut filled) = (String::new(), Vec::new());
        for part in &self.parts {
            let text = match part {
                ArgText::Author(text) => text,
                ArgText::Caller { text, .. } => {
                    filled.push((before.clone(), text.as_str()));
                    text
                }
            };
            before.push_str(text);
        }
        filled
    }

    pub fn begins_with_value(&self) -> bool {
        matches!(self.parts.first(), Some(ArgText::Caller { .. }))
    }

    /// The author's own word, where it is nothing else.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [ArgText::Author(text)] => Some(text),
            _ => None,
        }
    }

    /// Could it be an option, in the author's meaning?
    pub fn may_be_option(&self) -> bool {
        let begins_as_option =
            matches!(self.parts.first(), Some(ArgText::Author(text)) if text.starts_with('-'));
        begins_as_option || (self.dashes == Dashes::Meant && self.is_filled())
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|part| match part {
            ArgText::Author(text) => f.write_str(text),
            ArgText::Caller { name, .. } => write!(f, "{{{name}}}"),
        })
    }
}

/// A plain value as text, or why it has none, and what to give instead.
pub fn text_of(value: &Value) -> Result<String, (&'static str, &'static str)> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(is_true) => Ok(is_true.to_string()),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // Was it written as an integer, it has been rounded to another one since.
            Some(float) if float <= LEAST_WHOLE || float >= BEYOND_WHOLE => {
                Err(("is a number of more than 64 bits, which would be rounded", "give a smaller number"))
            }
            // `5.0` is an integer to a schema and no number to most programs. Nor is `1e16`, which glued to a letter is the
            // option `-e` besides: written out, a number has no letter in it.
            Some(float) => Ok(float.to_string()),
            None => Ok(number.to_string()),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(("is no plain value", "give a text, number or boolean"))
        }
    }
}

/// -2^63 and 2^64. An integer in between is kept as it was written; a float of these values may be a rounded one.
const LEAST_WHOLE: f64 = -9_223_372_036_854_775_808.0;
const BEYOND_WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// A value that comes to stand in a command line.
fn check_value(name: &str, value: &str) -> Result<(), Refusal> {
    if let Some(bad) = value.chars().find(|c| c.is_control()) {
        let message = format!("`{name}` contains the control character `{}`", bad.escape_unicode());
        return Err(refused(message, "leave control characters out, line breaks and tabs included"));
    }
    Ok(())
}

/// A value that comes to stand in standard input or a variable: lines are fine there.
pub fn check_text(name: &str, value: &str) -> Result<(), Refusal> {
    let is_bad = |c: &char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    if let Some(bad) = value.chars().find(is_bad) {
        let message = format!("`{name}` contains the control character `{}`", bad.escape_unicode());
        return Err(refused(message, "leave control characters out"));
    }
    Ok(())
}

pub fn would_be_an_option(name: &str) -> Refusal {
    refused(
        format!("`{name}` begins with `-`, and would be taken for an option"),
        "begin the value with something else; a file is named `./-x`",
    )
}

pub fn refused(message: String, remedy: &str) -> Refusal {
    Refusal { reason: Reason::ArgumentRefused, message, remedy: remedy.to_owned() }
}
