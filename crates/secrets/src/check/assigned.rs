//! Distinguishes a password from code and placeholders in `password = …`.
//!
//! Only the form of the value counts, never words near it: an attacker can write any word.

use std::ops::Range;

use self::{
    apart::{Link, name_around},
    names::words,
};
use super::{
    given::name_before,
    keylike::{MIN_KEY, MIN_LETTERS, has_stray, has_token_alphabet, is_key, is_pair, noise},
    placeholder::{is_common_word, is_placeholder, is_template},
};
use crate::marker::MarkerSpans;

mod apart;
mod names;

/// The value, if it is a literal that could be a password. `pattern` begins with the keyword and ends with the first character
/// of the value.
pub(super) fn literal(hay: &[u8], pattern: &Range<usize>, marks: &MarkerSpans) -> Option<Range<usize>> {
    let value = pattern.end.checked_sub(1)?;
    let name = hay.get(name_around(hay, pattern.start))?;
    if is_part_of_word(hay, pattern.start, name) {
        return None;
    }
    match Link::of(hay.get(pattern.start..value)?) {
        Some(link) => apart::literal(hay, link, pattern.start, value).or_else(|| {
            let may_be_key = is_beside(link) && may_be_key(hay, value);
            may_be_key.then(|| generated(hay, value, marks).next()).flatten().filter(|_| !is_about(name))
        }),
        None => lengths(hay, value)
            .find_map(|length| literal_end(hay, value, length, marks))
            .map(|end| value..end),
    }
}

/// The value, if it looks generated and the name is that of a key or a token.
pub(super) fn key(hay: &[u8], pattern: &Range<usize>, marks: &MarkerSpans) -> Option<Range<usize>> {
    let value = pattern.end.checked_sub(1)?;
    if !may_be_key(hay, value) {
        return None;
    }
    let name = hay.get(name_around(hay, pattern.start))?;
    generated(hay, value, marks).find(|span| {
        let value = hay.get(span.clone()).unwrap_or_default();
        let is_evident = !names::is_bare_key(name) || is_random_word(value);
        let is_name = names::is_own_name(name, value) || names::is_own_type(name, value);
        names::is_of_key(name) && is_evident && !has_stray(value) && !is_name
    })
}

/// Long, with both cases and digits, and without separators: not a UUID, a hexadecimal id, a path or a file name.
fn is_random_word(value: &[u8]) -> bool {
    let has = |kind: fn(&u8) -> bool| value.iter().any(kind);
    value.len() >= MIN_RANDOM_WORD
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
}

/// Whether a value after a weak name such as `pw` is a password: mixed, and not code.
pub(super) fn is_password(value: &[u8]) -> bool {
    let is_code = value.iter().any(|byte| b"()[]{}".contains(byte)) || is_member_access(value);
    apart::is_literal(value) && !is_code && !names::is_identifier(value)
}

/// Whether the value at `span` looks generated, and a sign joins it to the name of a key.
pub(super) fn is_joined(hay: &[u8], span: &Range<usize>) -> bool {
    let Some(end) = span.start.checked_sub(1) else { return false };
    let name = name_around(hay, end).start..end;
    let is_of_key = |name: &[u8]| {
        names::is_of_key(name) || words(name).last().is_some_and(|last| last.ends_with(b"secret"))
    };
    // `cache/key-…` is a file.
    let is_file = name.start.checked_sub(1).and_then(|at| hay.get(at)) == Some(&b'/');
    !is_file && hay.get(name).is_some_and(is_of_key) && hay.get(span.clone()).is_some_and(is_key)
}

fn is_beside(link: Link) -> bool {
    matches!(link, Link::Argument | Link::Call | Link::Flag | Link::Column | Link::Element | Link::Member)
}

/// Rejects most words of a sentence without judging them: too short for a key, or neither long nor with a digit.
fn may_be_key(hay: &[u8], start: usize) -> bool {
    let head = hay.get(start..hay.len().min(start + MIN_LETTERS)).unwrap_or_default();
    let length = head.iter().take_while(|byte| byte.is_ascii_graphic() && !is_quote(**byte)).count();
    length == MIN_LETTERS || length >= MIN_KEY && head.get(..length).is_some_and(has_digit)
}

/// The spans at `start` that look generated, the longest first.
fn generated<'t>(
    hay: &'t [u8],
    start: usize,
    marks: &'t MarkerSpans,
) -> impl Iterator<Item = Range<usize>> + 't {
    lengths(hay, start).filter_map(move |length| {
        let is_quoted = is_quoted(hay, start);
        let rest = hay.get(start..)?;
        let length = if is_quoted {
            length
        } else {
            let ends = |byte: &u8| matches!(byte, b',' | b';' | b')' | b']' | b'}' | b'|');
            rest.get(..length)?.iter().position(ends).unwrap_or(length)
        };
        if is_pair(rest.get(..rest.len().min(MAX_TOKEN))?) {
            return None;
        }
        // A full stop or a colon behind a value belongs to the sentence.
        let written = rest.get(..length).filter(|written| !written.ends_with(b"..."))?;
        let kept = written.iter().rposition(|byte| !matches!(byte, b'.' | b':' | b'!' | b'?'))? + 1;
        let span = start..start + kept;
        let value = marks.without(hay, &span);
        let is_code = !is_quoted && (is_names(&value) || calls(hay, span.end));
        (is_key(&value) && !is_code).then_some(span)
    })
}

/// The possible lengths of the value at `start`. A quoted value ends at its closing quote, or earlier at a blank, a comma, a
/// backslash or another quote: a key that was read from a file ends with `\n`.
fn lengths(hay: &[u8], start: usize) -> impl Iterator<Item = usize> + use<> {
    let is_quoted = is_quoted(hay, start);
    let most = if is_quoted { MAX_TOKEN } else { MAX_VALUE };
    let rest = hay.get(start..hay.len().min(start + most)).unwrap_or_default();
    let (whole, head) = if is_quoted {
        let whole = hay.get(..start).and_then(|before| quoted_length(before, rest));
        let ends = |byte: &u8| is_quote(*byte) || matches!(byte, b'\\' | b',') || byte.is_ascii_whitespace();
        let head = whole.and_then(|whole| rest.get(..whole)?.iter().position(ends));
        // The first word of a sentence is not a password.
        let is_word = |head: &usize| {
            let is_cut_at_blank = rest.get(*head).is_some_and(u8::is_ascii_whitespace);
            is_cut_at_blank && rest.get(..*head).is_some_and(|head| head.iter().all(u8::is_ascii_alphabetic))
        };
        (whole, head.filter(|head| *head > 0 && !is_word(head)))
    } else {
        (Some(rest.iter().take_while(|byte| is_bare(**byte)).count()), None)
    };
    whole.into_iter().chain(head)
}

/// `win32api.RegEnumKey`: names joined by dots, and not the parts of a token.
fn is_names(value: &[u8]) -> bool {
    is_member_access(value) && value.split(|byte| *byte == b'.').all(|part| noise(part) < MIN_PART)
}

/// Whether arguments follow on the same line, also after blanks.
fn calls(hay: &[u8], end: usize) -> bool {
    let behind = hay.get(end..hay.len().min(end + MAX_NAME)).unwrap_or_default();
    let blanks = behind.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    matches!(behind.get(blanks), Some(b'(' | b'[')) || behind.starts_with(b"::") || behind.starts_with(b"<'")
}

/// `bypass`, `compass`: `pass` and `pwd` mean a password only as separate words of a name.
fn is_part_of_word(hay: &[u8], word: usize, name: &[u8]) -> bool {
    let is_short = |short: &&[u8]| {
        let text = hay.get(word..).unwrap_or_default();
        let goes_on = text.get(short.len()).is_some_and(u8::is_ascii_alphabetic);
        text.get(..short.len()).is_some_and(|text| text.eq_ignore_ascii_case(short)) && !goes_on
    };
    SHORT
        .iter()
        .find(|short| is_short(short))
        .is_some_and(|short| !words(name).iter().any(|word| word == short))
}

/// `length` is one of `lengths`.
fn literal_end(hay: &[u8], start: usize, length: usize, marks: &MarkerSpans) -> Option<usize> {
    let is_quoted = is_quoted(hay, start);
    let most = if is_quoted { MAX_TOKEN } else { MAX_VALUE };
    let rest = hay.get(start..hay.len().min(start + most))?;
    let name = name_before(hay.get(start.saturating_sub(MAX_NAME)..start)?);
    if !is_quoted && let Some(length) = number_length(name, rest) {
        return Some(start + length);
    }
    let is_setting = !is_quoted && is_in_connection(hay, start);
    let length = if is_setting {
        rest.get(..length)?.iter().position(|byte| *byte == b';').unwrap_or(length)
    } else {
        length
    };
    let span = start..start + length;
    // A long run without digits is text. Judging it closely at every name would be slow.
    let is_text = !is_quoted && length > LONG_TEXT && !rest.get(..length).is_some_and(has_digit);
    if is_text || is_about(name) || names::is_of_other(name) || !is_quoted && is_bracketed(rest) {
        return None;
    }
    // In quotes, a marker is a literal like other text. Without quotes, its brackets would look like code.
    let value = if is_quoted { hay.get(span.clone())?.into() } else { marks.without(hay, &span) };
    if is_setting && value.len() >= MIN_SETTING && !is_template(&value) && !is_member_access(&value) {
        return Some(span.end);
    }
    if value.len() < MIN_VALUE
        || !is_written(&value)
        || is_common_word(&value)
        || names::is_own_name(name, &value)
    {
        return None;
    }
    let is_literal = if is_quoted { is_quoted_literal(&value) } else { is_bare_literal(hay, &span, &value) };
    // Tokens are generated. A plain word after such a name belongs to a test or a form.
    let signs = value.iter().filter(|byte| byte.is_ascii_punctuation() && !b"-_./:".contains(byte)).count();
    let is_random = noise(&value) > 0 || signs >= MIN_SIGNS || value.iter().all(u8::is_ascii_digit);
    let is_of_key = names::is_of_key(name);
    let is_likely = is_random || !is_of_key || is_environment_line(hay, start);
    let is_token = value.len() < MIN_TOKEN || signs >= MIN_SIGNS || has_token_alphabet(&value);
    let is_other = is_of_key && !is_token || names::is_plural(name) && noise(&value) == 0;
    (is_literal && is_likely && !is_other).then_some(span.end)
}

/// `[Shared Access Key goes here]`: words in brackets, up to the end of a setting or a line.
fn is_bracketed(rest: &[u8]) -> bool {
    let line = rest.split(|byte| matches!(byte, b';' | b'\r' | b'\n')).next().unwrap_or_default();
    is_template(line) && line.contains(&b' ')
}

fn is_quoted(hay: &[u8], value: usize) -> bool {
    value.checked_sub(1).and_then(|at| hay.get(at)).is_some_and(|byte| is_quote(*byte))
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// The length of the value at the beginning of `rest`, without the closing quote. `before` ends with the opening quote.
///
/// JSON in a JSON string escapes its quotes. The closing quote has as many backslashes as the opening one, and other quotes
/// belong to the value. Without a closing quote on the line, the value ends at the first quote or backslash.
fn quoted_length(before: &[u8], rest: &[u8]) -> Option<usize> {
    let (quote, before) = before.split_last()?;
    let depth = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    let mut escapes = 0;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'\r' | b'\n' => break,
            b'\\' => escapes += 1,
            _ if byte == quote && is_closing(escapes, depth) => return Some(at - escapes.min(depth)),
            _ => escapes = 0,
        }
    }
    let ends = |byte: &u8| is_quote(*byte) || matches!(byte, b'\\' | b'\r' | b'\n');
    let length = rest.iter().position(ends)?;
    rest.get(length).is_some_and(|byte| !byte.is_ascii_whitespace()).then_some(length)
}

/// Whether a quote after this many backslashes closes a string whose opening quote has `depth` of them. At depth 0, an even
/// number means escaped backslashes.
const fn is_closing(escapes: usize, depth: usize) -> bool {
    if depth == 0 { escapes.is_multiple_of(2) } else { escapes <= depth }
}

fn is_bare(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !is_quote(byte) && !matches!(byte, b'<' | b'>' | b'&' | b'\\')
}

/// Whether this is a value: not a placeholder, and not one repeated character.
pub(super) fn is_written(value: &[u8]) -> bool {
    !is_placeholder(value)
}

/// `secretName`, `passwordPath`: the location or kind of the secret, not the secret itself.
fn is_about(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    ABOUT.iter().any(|end| lower.ends_with(end))
        || words(name).last().is_some_and(|last| ABOUT_WORDS.contains(&last.as_slice()))
}

/// The length of a number such as `password: 84736251` or `{"pwd":84736251}`. After other names, numbers are lengths, times and
/// counts.
fn number_length(name: &[u8], rest: &[u8]) -> Option<usize> {
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let ends = |byte: &u8| !is_bare(*byte) || matches!(byte, b',' | b';' | b'}' | b']' | b')');
    let name = name.to_ascii_lowercase();
    let is_password = PASSWORDS.iter().any(|end| name.ends_with(end));
    let is_number =
        length >= MIN_VALUE && rest.get(length).is_none_or(ends) && is_written(rest.get(..length)?);
    (is_password && is_number).then_some(length)
}

/// In quotes, everything is a literal except sentences, package versions, addresses, paths and names.
fn is_quoted_literal(value: &[u8]) -> bool {
    if is_version(value) || is_between_strings(value) || is_reference(value) || names::is_of_secret(value) {
        return false;
    }
    let spaces = value.iter().filter(|byte| byte.is_ascii_whitespace()).count();
    spaces == 0 || (spaces <= 3 && has_digit(value))
}

/// `" + value + "`, `",label:"`: code between two strings, not a string.
fn is_between_strings(value: &[u8]) -> bool {
    let opens = matches!(value, [b',' | b':' | b';' | b')' | b'+' | b']' | b' ', ..]);
    let closes = matches!(value, [.., b',' | b':' | b'=' | b'(' | b'+' | b'[' | b' ']);
    opens && (closes || !has_digit(value)) || closes && !has_digit(value)
}

/// An address without a password, a path, a CSS selector, or a cloud resource.
fn is_reference(value: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    let slashes = memchr::memchr_iter(b'/', value).count();
    let is_path = match value {
        [b'/', ..] => slashes > 1 || !has_digit(value),
        [b'.' | b'~', b'/', ..] | [b'.', b'.', b'/', ..] => true,
        [letter, b':', b'\\' | b'/', ..] => letter.is_ascii_alphabetic(),
        _ => slashes > 0 && !has_digit(value),
    };
    let is_selector =
        matches!(value, [b'#' | b'.', letter, ..] if letter.is_ascii_alphabetic()) && !has_digit(value);
    has(b"://")
        || is_host(value)
        || is_path
        || is_selector
        || value.starts_with(b"arn:")
        || value.starts_with(b"urn:")
}

/// `db1.acme.internal`, `db1.acme.com:5432`: small letters, at least two dots, and a common ending.
fn is_host(value: &[u8]) -> bool {
    let mut sides = value.splitn(2, |byte| *byte == b':');
    let host = sides.next().unwrap_or_default();
    let is_port = sides.next().is_none_or(|port| port.iter().all(u8::is_ascii_digit));
    let belongs =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'.');
    is_port
        && host.iter().all(belongs)
        && memchr::memchr_iter(b'.', host).count() >= 2
        && host.rsplit(|byte| *byte == b'.').next().is_some_and(|end| HOST_ENDS.contains(&end))
}

/// Without quotes it may be a name, a type or a call. Those have no digits between their letters, or end with a bracket.
fn is_bare_literal(hay: &[u8], span: &Range<usize>, value: &[u8]) -> bool {
    if is_step(hay, span.start) {
        return false;
    }
    let behind = hay.get(span.end..).unwrap_or_default();
    let calls =
        value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{' | b')' | b']' | b'}' | b';' | b','))
            || behind.first().is_some_and(|byte| matches!(byte, b'(' | b'['))
            || behind.starts_with(b"<'");
    let is_code = value.starts_with(b"$") || value.starts_with(b":");
    if calls
        || is_code
        || is_verdict(hay, span.start)
        || value.windows(2).any(|pair| matches!(pair, b"::" | b"->" | b"?."))
    {
        return false;
    }
    let is_line = is_environment_line(hay, span.start) || is_config_line(hay, span);
    let name = name_before(hay.get(span.start.saturating_sub(MAX_NAME)..span.start).unwrap_or_default());
    let is_of_secret = names::is_of_secret(value) && !(is_line && ends_with_number(value));
    let is_other = !is_line && (is_version(value) || names::is_own_type(name, value));
    if is_reference(value) || is_of_secret || is_other {
        return false;
    }
    is_line
        || is_key(value)
        || (has_digit(value) && has_letter(value) && !is_member_access(value) && !names::is_identifier(value))
}

/// `AdminPassword123`: a password rather than a name.
fn ends_with_number(value: &[u8]) -> bool {
    value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count() >= 2
}

/// `DB_PASSWORD=value` at the beginning of a line, as in a `.env` file, or as a variable of a command or a list.
fn is_environment_line(hay: &[u8], value: usize) -> bool {
    let before = hay.get(value.saturating_sub(MAX_NAME)..value).unwrap_or_default();
    let Some(before) = before.strip_suffix(b"=") else { return false };
    let length = before.iter().rev().take_while(|byte| is_environment(**byte)).count();
    let Some((before, name)) = before.split_at_checked(before.len() - length) else { return false };
    !name.is_empty() && (before.is_empty() || BEFORE_VARIABLES.iter().any(|end| before.ends_with(end)))
}

/// `first_pass = compute01`: a processing pass, with a name as its value. A password would be quoted, or follow without a blank.
fn is_step(hay: &[u8], value: usize) -> bool {
    let before = hay.get(value.saturating_sub(MAX_NAME)..value).unwrap_or_default();
    let name = name_before(before);
    before.last().is_some_and(u8::is_ascii_whitespace) && name.ends_with(b"_pass")
}

/// `Password=value` alone on its line, as in an `.ini` file.
fn is_config_line(hay: &[u8], value: &Range<usize>) -> bool {
    let before = hay.get(value.start.saturating_sub(MAX_NAME)..value.start).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    line.strip_suffix(b"=").is_some_and(|name| !name.is_empty() && name.iter().all(is_name))
        && value.len() >= MIN_WORD
        && matches!(hay.get(value.end), None | Some(b'\r' | b'\n'))
}

/// `Server=db;Uid=sa;Pwd=…;`: after another setting of a connection.
fn is_in_connection(hay: &[u8], value: usize) -> bool {
    let before = hay.get(value.saturating_sub(MAX_NAME)..value).unwrap_or_default();
    let Some(before) = before.trim_ascii_end().strip_suffix(b"=") else { return false };
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let line = line.trim_ascii_end();
    let length = line.iter().rev().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let other = line.get(..line.len() - length).unwrap_or_default().trim_ascii_end().strip_suffix(b";");
    other
        .is_some_and(|other| other.rsplit(|byte| *byte == b';').next().is_some_and(|one| one.contains(&b'=')))
}

fn is_environment(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
}

/// `PASS: ` at the beginning of a line or a text, or after `--- `: the name of a test follows.
fn is_verdict(hay: &[u8], value: usize) -> bool {
    let before = hay.get(value.saturating_sub(MAX_NAME)..value).unwrap_or_default();
    let line = before.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_printed = line.ends_with(b"\"PASS: ") || line.ends_with(b"'PASS: ");
    is_printed || line == b"PASS: " || line.trim_ascii_start() == b"--- PASS: "
}

/// `^5.0.1`, `6.0.0-beta.1`, `4.13+dfsg1-1_amd64.deb`: numbers and dots, optionally followed by a name.
fn is_version(value: &[u8]) -> bool {
    let rest = value.strip_prefix(b"^").or_else(|| value.strip_prefix(b"~")).unwrap_or(value);
    let numbers = rest.split(|byte| matches!(byte, b'-' | b'+')).next().unwrap_or_default();
    let is_number = |part: &[u8]| (1..=4).contains(&part.len()) && part.iter().all(u8::is_ascii_digit);
    let tail = rest.get(numbers.len()..).unwrap_or_default();
    memchr::memchr(b'.', numbers).is_some()
        && numbers.split(|byte| *byte == b'.').all(is_number)
        && noise(tail) < MIN_PART
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

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

fn has_letter(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_alphabetic)
}

/// The ends of names of values that are not secrets.
const ABOUT: &[&[u8]] =
    &[b"name", b"path", b"file", b"ref", b"type", b"field", b"label", b"arn", b"encryption"];
/// The last words of such names.
const ABOUT_WORDS: &[&[u8]] = &[
    b"id",
    b"ids",
    b"names",
    b"paths",
    b"files",
    b"url",
    b"uri",
    b"urls",
    b"host",
    b"endpoint",
    b"version",
    b"policy",
    b"mode",
    b"ttl",
    b"expiry",
    b"expires",
    b"expiration",
    b"length",
    b"size",
    b"len",
    b"count",
    b"timeout",
    b"format",
    b"variable",
    b"var",
    b"column",
    b"selector",
    b"class",
    b"prompt",
    b"title",
    b"message",
    b"msg",
    b"error",
    b"errors",
    b"hint",
    b"help",
    b"description",
    b"placeholder",
    b"input",
    b"form",
    b"algorithm",
    b"provider",
    b"manager",
    b"strategy",
    b"regex",
    b"pattern",
    b"validator",
    b"reset",
    b"link",
    b"route",
    b"template",
    b"page",
    b"button",
    b"index",
    b"location",
    b"date",
    b"at",
    b"required",
    b"enabled",
    b"changed",
    b"protection",
    b"hashers",
];
const HOST_ENDS: &[&[u8]] = &[b"com", b"net", b"org", b"io", b"dev", b"cloud", b"local", b"internal"];
/// Words that are a part of others.
const SHORT: &[&[u8]] = &[b"pass", b"pwd"];
/// The ends of names whose value may be a number.
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
const MAX_NAME: usize = 80;
const MIN_RANDOM_WORD: usize = 20;
/// Longer than a password without digits.
const LONG_TEXT: usize = 64;
/// Characters that names do not contain.
const MIN_SIGNS: usize = 3;
/// The minimum entropy of a part of a token.
const MIN_PART: usize = 12;
const MIN_VALUE: usize = 6;
/// A connection setting named `Password` contains a password, even a short one.
const MIN_SETTING: usize = 4;
/// For a single word without a digit.
const MIN_WORD: usize = 8;
/// Longer values are not passwords. Without quotes, their beginning is still treated as one.
const MAX_VALUE: usize = 400;
/// A value of this length after the name of a key is a token.
const MIN_TOKEN: usize = 16;
/// A token in quotes may be longer.
const MAX_TOKEN: usize = 2000;
