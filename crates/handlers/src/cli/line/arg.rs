//! One element of a command line: the author's text and the caller's values, which cannot become options.

use std::fmt;

use serde_json::Value;
use toolgate_gate::{Reason, Refusal};

use crate::cli::program::conventions::Conventions;

/// One element of a command line. Each part knows whether the author or the caller wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Arg {
    parts: Vec<ArgText>,
    dashes: LeadingDash,
}

/// A part of an element.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgText {
    /// Written by the author.
    Author(String),
    /// Filled in by the caller, with the name of the parameter.
    Caller { name: String, text: String },
}

/// Whether a caller's value may begin with `-`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeadingDash {
    Denied,
    Allowed,
}

impl Arg {
    /// Text of the author. Takes only program text, so a caller's value cannot get here by mistake.
    pub fn literal(text: &'static str) -> Self {
        Self { parts: vec![ArgText::Author(text.to_owned())], dashes: LeadingDash::Denied }
    }

    /// A value as a separate element: a text, number or boolean.
    pub fn operand<'v>(value: impl Into<Option<&'v Value>>) -> Self {
        Self::option_value("", value)
    }

    /// A value attached to its option: `--max-count=`, or a letter that is known to take a value, such as `-m` of
    /// `grep`. After other letters only digits are accepted, unless `with_dashes` states that the letter takes a
    /// value.
    pub fn option_value<'v>(option: &'static str, value: impl Into<Option<&'v Value>>) -> Self {
        // A missing value becomes an empty text, which is rejected later.
        let text = value.into().and_then(|value| text_of(value).ok()).unwrap_or_default();
        let name = option.trim_start_matches('-').trim_end_matches('=');
        let name = if name.is_empty() { "a value" } else { name };
        Self::of(
            vec![ArgText::Author(option.to_owned()), ArgText::Caller { name: name.to_owned(), text }],
            LeadingDash::Denied,
        )
    }

    /// The value may begin with `-` or follow a letter, because the command does not read it as an option here.
    #[must_use]
    pub fn with_dashes(mut self) -> Self {
        self.dashes = LeadingDash::Allowed;
        self
    }

    pub fn of(mut parts: Vec<ArgText>, dashes: LeadingDash) -> Self {
        parts.retain(|part| !matches!(part, ArgText::Author(text) if text.is_empty()));
        Self { parts, dashes }
    }

    /// The text of the element, or the refusal.
    pub fn settle(&self, conventions: &Conventions) -> Result<String, Refusal> {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                ArgText::Author(written) => text.push_str(written),
                ArgText::Caller { name, text: value } => {
                    if value.is_empty() {
                        return Err(refused(
                            format!("`{name}` is empty, not a plain value, or too large a number"),
                            "give it a value",
                        ));
                    }
                    let check = if conventions.takes_lines() { check_text } else { check_value };
                    check(name, value)?;
                    // Checked against the element built so far: after `--max-count=`, `-1` is a value.
                    if self.dashes == LeadingDash::Denied && text.is_empty() && value.starts_with('-') {
                        return Err(would_be_an_option(name));
                    }
                    if let Some(why) = conventions.refuses(value, &text) {
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

    /// Checks an element built by code, which has no template to check: the caller must not complete the option.
    pub fn check_option(&self, conventions: &Conventions) -> Result<(), Refusal> {
        let [ArgText::Author(start), ArgText::Caller { text, .. }] = self.parts.as_slice() else {
            return Ok(());
        };
        let Some(option) = start.strip_prefix('-') else { return Ok(()) };
        // Some programs write long options as `-name=`.
        let is_named = option.find('=').is_some_and(|end| end > 1);
        let is_vouched_for =
            self.dashes == LeadingDash::Allowed || text.bytes().all(|sign| sign.is_ascii_digit());
        let is_unknown = !option.is_empty() && !conventions.ends_options_at_dashes();
        let is_the_authors = match option.strip_prefix('-') {
            Some(_) => is_named,
            None => conventions.takes_rest(start) || (is_unknown && (is_named || is_vouched_for)),
        };
        if is_the_authors {
            return Ok(());
        }
        Err(refused(
            format!(
                "`{self}` lets the caller choose options: the text after `{start}` may be read as more of them"
            ),
            "the author must write the option with `=`, or as a separate element",
        ))
    }

    /// Whether it is an operand that contains a caller's value.
    pub fn is_filled_operand(&self) -> bool {
        let begins_as_option =
            matches!(self.parts.first(), Some(ArgText::Author(text)) if text.starts_with('-'));
        !begins_as_option && self.is_filled() && self.dashes == LeadingDash::Denied
    }

    pub fn is_filled(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, ArgText::Caller { .. }))
    }

    /// The caller's values, each with the text before it.
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

    /// The author's text, if it contains nothing else.
    pub fn as_literal(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [ArgText::Author(text)] => Some(text),
            _ => None,
        }
    }

    /// Whether the author meant it as an option.
    pub fn may_be_option(&self) -> bool {
        let begins_as_option =
            matches!(self.parts.first(), Some(ArgText::Author(text)) if text.starts_with('-'));
        begins_as_option || (self.dashes == LeadingDash::Allowed && self.is_filled())
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

/// A scalar value as text; or why it has none, and what to give instead.
pub fn text_of(value: &Value) -> Result<String, (&'static str, &'static str)> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Bool(is_true) => Ok(is_true.to_string()),
        Value::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            // A large integer was rounded to a float when the JSON was parsed.
            Some(float) if float <= LEAST_WHOLE || float >= BEYOND_WHOLE => {
                Err(("is a number of more than 64 bits, which would be rounded", "give a smaller number"))
            }
            // A schema accepts `5.0` as an integer, but most programs do not. In `1e16` attached to a letter, the `e`
            // would be the option `-e`. Numbers are therefore written without exponent.
            Some(float) => Ok(float.to_string()),
            None => Ok(number.to_string()),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => {
            Err(("is not a plain value", "give a text, number or boolean"))
        }
    }
}

/// -2^63 and 2^64. Integers in between are exact; floats at or beyond these values may be rounded integers.
const LEAST_WHOLE: f64 = -9_223_372_036_854_775_808.0;
const BEYOND_WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Checks a value for the command line.
fn check_value(name: &str, value: &str) -> Result<(), Refusal> {
    if let Some(bad) = value.chars().find(|c| c.is_control()) {
        let message = format!("`{name}` contains the control character `{}`", bad.escape_unicode());
        return Err(refused(message, "leave control characters out, line breaks and tabs included"));
    }
    Ok(())
}

/// Checks a value for standard input or a variable, where line breaks are allowed.
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
