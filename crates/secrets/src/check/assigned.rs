//! `password = …`: is that a password, or code and placeholders?
//!
//! Only the value's own form counts, never words near it: an attacker can write any word.

use std::ops::Range;

use self::apart::Link;
use super::given::name_before;
use crate::marker::Marks;

mod apart;
mod names;

/// The value, if it is a literal that somebody could log in with. `pattern` begins with the word that tells it, and ends with
/// the first character of the value.
pub(super) fn literal(hay: &[u8], pattern: &Range<usize>, marks: &Marks) -> Option<Range<usize>> {
    let value = pattern.end.checked_sub(1)?;
    match Link::of(hay.get(pattern.start..value)?) {
        Some(link) => apart::literal(hay, link, pattern.start, value),
        None => literal_end(hay, value, marks).map(|end| value..end),
    }
}

fn literal_end(hay: &[u8], start: usize, marks: &Marks) -> Option<usize> {
    let is_quoted = is_quoted(hay, start);
    let rest = hay.get(start..hay.len().min(start + MAX_VALUE))?;
    let name = name_before(hay.get(start.saturating_sub(MAX_NAME)..start)?);
    if !is_quoted && let Some(length) = number_length(name, rest) {
        return Some(start + length);
    }
    let is_setting = !is_quoted && is_in_connection(hay, start);
    let ends = |byte: u8| !is_bare(byte) || is_setting && byte == b';';
    let length =
        if is_quoted { quoted_length(rest)? } else { rest.iter().take_while(|byte| !ends(**byte)).count() };
    let span = start..start + length;
    if is_about(name) {
        return None;
    }
    // Within quotes a mark is a literal like everything else; without them its brackets would look like code.
    let value = if is_quoted { hay.get(span.clone())?.into() } else { marks.without(hay, &span) };
    if value.len() < MIN_VALUE || !is_written(&value) || names::is_name(name, &value) {
        return None;
    }
    let is_literal = if is_quoted { is_quoted_literal(&value) } else { is_bare_literal(hay, &span, &value) };
    is_literal.then_some(span.end)
}

fn is_quoted(hay: &[u8], value: usize) -> bool {
    value.checked_sub(1).and_then(|at| hay.get(at)).is_some_and(|byte| is_quote(*byte))
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// Up to the quote that ends it, or the backslash before that.
fn quoted_length(rest: &[u8]) -> Option<usize> {
    let ends = |byte: &u8| is_quote(*byte) || matches!(byte, b'\\' | b'\r' | b'\n');
    let length = rest.iter().position(ends)?;
    rest.get(length).is_some_and(|byte| !byte.is_ascii_whitespace()).then_some(length)
}

fn is_bare(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !is_quote(byte) && !matches!(byte, b'<' | b'>' | b'&' | b'\\')
}

/// Whether a value is there at all: no placeholder, and not one character over and over.
pub(super) fn is_written(value: &[u8]) -> bool {
    !is_placeholder(value) && !is_repetition(value)
}

/// `secretName`, `passwordPath`: not the secret, but where it is and what kind it is of.
fn is_about(name: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    ABOUT.iter().any(|end| name.ends_with(end))
}

/// `password: 84736251`, `{"pwd":84736251}`: how long the number is. Of other secrets, and of what is about a password, it tells
/// lengths, times and counts.
fn number_length(name: &[u8], rest: &[u8]) -> Option<usize> {
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = |byte: &u8| !is_bare(*byte) || matches!(byte, b',' | b';' | b'}' | b']' | b')');
    let name = name.to_ascii_lowercase();
    let is_password = PASSWORDS.iter().any(|end| name.ends_with(end));
    let is_number =
        length >= MIN_VALUE && rest.get(length).is_none_or(ends) && is_written(rest.get(..length)?);
    (is_password && is_number).then_some(length)
}

/// Within quotes anything is a literal but a sentence, the version of a package and what `fetch` takes for credentials.
fn is_quoted_literal(value: &[u8]) -> bool {
    if is_version(value) || FETCH_MODES.contains(&value) {
        return false;
    }
    let spaces = value.iter().filter(|byte| byte.is_ascii_whitespace()).count();
    spaces == 0 || (spaces <= 3 && has_digit(value))
}

/// Without quotes it may be a name, a type or a call; those have no digits among their letters, or end in a bracket.
fn is_bare_literal(hay: &[u8], span: &Range<usize>, value: &[u8]) -> bool {
    let calls =
        value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{' | b')' | b']' | b'}' | b';' | b','))
            || matches!(hay.get(span.end), Some(b'(' | b'['));
    let is_code = value.starts_with(b"$") || value.starts_with(b":");
    if calls
        || is_code
        || is_verdict(hay, span.start)
        || value.windows(2).any(|pair| matches!(pair, b"::" | b"->" | b"?."))
    {
        return false;
    }
    is_environment_line(hay, span.start)
        || (has_digit(value) && has_letter(value) && !is_member_access(value))
}

/// `DB_PASSWORD=value` at the beginning of a line, as in a `.env` file, or as a command and a list are given variables.
fn is_environment_line(hay: &[u8], value: usize) -> bool {
    let before = hay.get(value.saturating_sub(MAX_NAME)..value).unwrap_or_default();
    let Some(before) = before.strip_suffix(b"=") else { return false };
    let length = before.iter().rev().take_while(|byte| is_environment(**byte)).count();
    let Some((before, name)) = before.split_at_checked(before.len() - length) else { return false };
    !name.is_empty() && (before.is_empty() || BEFORE_VARIABLES.iter().any(|end| before.ends_with(end)))
}

/// `Server=db;Uid=sa;Pwd=…;`: behind another setting of a connection.
fn is_in_connection(hay: &[u8], value: usize) -> bool {
    let before = hay.get(value.saturating_sub(MAX_NAME)..value).unwrap_or_default();
    let Some(before) = before.strip_suffix(b"=") else { return false };
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let length = line.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let other = line.get(..line.len() - length).unwrap_or_default().trim_ascii_end().strip_suffix(b";");
    other
        .is_some_and(|other| other.rsplit(|byte| *byte == b';').next().is_some_and(|one| one.contains(&b'=')))
}

fn is_environment(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

/// `PASS: ` at the beginning of a line, or behind `--- `: what follows is the name of a test.
fn is_verdict(hay: &[u8], value: usize) -> bool {
    let before = hay.get(value.saturating_sub(MAX_NAME)..value).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    line == b"PASS: " || line.trim_ascii_start() == b"--- PASS: "
}

/// `^5.0.1`, `6.0.0-beta.1`: numbers and dots, and perhaps a name behind them.
fn is_version(value: &[u8]) -> bool {
    let rest = value.strip_prefix(b"^").or_else(|| value.strip_prefix(b"~")).unwrap_or(value);
    let numbers = rest.split(|byte| matches!(byte, b'-' | b'+')).next().unwrap_or_default();
    let is_number = |part: &[u8]| (1..=4).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
    let tail = rest.get(numbers.len()..).unwrap_or_default();
    memchr::memchr(b'.', numbers).is_some()
        && numbers.split(|byte| *byte == b'.').all(is_number)
        && tail.len() <= MAX_TAIL
}

/// `config.password2`: names joined by dots.
fn is_member_access(value: &[u8]) -> bool {
    let mut parts = value.split(|byte| *byte == b'.');
    let is_name = |part: &[u8]| {
        part.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_')
            && part.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    memchr::memchr(b'.', value).is_some() && parts.all(is_name)
}

/// `${NAME}`, `{{ name }}`, `<name>`, `%(name)s`, `$NAME`: closed at both ends, or nothing but a name.
fn is_placeholder(value: &[u8]) -> bool {
    let between = |open: &[u8], close: &[u8]| value.starts_with(open) && value.ends_with(close);
    let is_variable = value.strip_prefix(b"$").is_some_and(|name| {
        name.first().is_some_and(u8::is_ascii_uppercase)
            && name.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
    });
    is_variable
        || value.eq_ignore_ascii_case(b"[redacted]")
        || between(b"${", b"}")
        || between(b"$(", b")")
        || between(b"{", b"}")
        || between(b"<", b">")
        || between(b"%(", b"s")
        || between(b"%", b"%")
}

/// `********`, `xxxxxxxx`.
fn is_repetition(value: &[u8]) -> bool {
    value.first().is_some_and(|first| value.iter().all(|byte| byte == first))
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

fn has_letter(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_alphabetic)
}

/// The ends of names of what is no secret itself.
const ABOUT: &[&[u8]] =
    &[b"name", b"path", b"file", b"ref", b"type", b"field", b"label", b"arn", b"encryption"];
/// The ends of names of what may be a number.
const PASSWORDS: &[&[u8]] = &[b"password", b"passwd", b"passphrase", b"pwd"];
/// `export NAME=`, `docker run -e NAME=`, `Environment=NAME=`, `["NAME=…"]`.
const BEFORE_VARIABLES: &[&[u8]] = &[
    b"\n",
    b"\nexport ",
    b" export ",
    b"-e ",
    b"--env ",
    b"--env=",
    b"ENV ",
    b"env ",
    b"Environment=",
    b"\"",
];
const FETCH_MODES: &[&[u8]] = &[b"same-origin", b"include"];
/// `-beta.1`, `-rc.2+build`.
const MAX_TAIL: usize = 12;
const MAX_NAME: usize = 80;
const MIN_VALUE: usize = 6;
/// What is longer is no password; without quotes its beginning is taken for one all the same.
const MAX_VALUE: usize = 400;
