//! Values that are separate from their name, as in `"name": "DB_PASSWORD", "value": …`.
//!
//! The value is in a list, an object, an element, the next line or the next column. Form rules, translations and lists of names
//! look the same, so the value must meet stricter conditions than directly after a sign.

use std::ops::Range;

use super::{
    super::placeholder::is_common_word, has_digit, has_letter, is_bare, is_environment, is_member_access,
    is_quote, is_quoted, is_quoted_literal, is_written, names, quoted_length,
};

/// The text between a name and its value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Link {
    /// `["…", "…"]`, or a line with a dash.
    List,
    /// `, "value": "…"` or the like, also on the next line.
    Member,
    /// `get("DB_PASSWORD", "…")`
    Argument,
    /// `setPassword("…")`
    Call,
    /// `--password …`, `-Password …`
    Flag,
    /// A column of a table, with or without a separator.
    Column,
    /// `<password>…</password>`
    Element,
}

impl Link {
    /// `None`: the value directly follows a sign.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let has = |sign: u8| text.contains(&sign);
        if has(b'[') || text.ends_with(b"- ") && has(b'\n') {
            return Some(Self::List);
        }
        if has(b',') && memchr::memmem::find(&text.to_ascii_lowercase(), b"value").is_none() && !has(b':') {
            return Some(Self::Argument);
        }
        if [b',', b'{', b'\n'].into_iter().any(has) || memchr::memmem::find(text, b" value=").is_some() {
            return Some(Self::Member);
        }
        if has(b'(') {
            return Some(Self::Call);
        }
        if has(b'"') && text.ends_with(b">") && !text.ends_with(b"=>") {
            return Some(Self::Element);
        }
        let compares = [&b"=="[..], b"!="].into_iter().any(|sign| memchr::memmem::find(text, sign).is_some());
        let is_quoted = text.last().is_some_and(|byte| is_quote(*byte));
        match text {
            _ if compares => Some(Self::Member),
            _ if has(b'=') || has(b':') => None,
            _ if is_quoted => Some(Self::Member),
            [.., b'>'] => Some(Self::Element),
            [.., b' ' | b'\t' | b'|', b' ' | b'\t'] => Some(Self::Column),
            [.., b' ' | b'\t'] => Some(Self::Flag),
            _ => None,
        }
    }
}

/// The value at `value` that belongs to the word at `word`, if it is a literal.
pub(super) fn literal(hay: &[u8], link: Link, word: usize, value: usize) -> Option<Range<usize>> {
    let is_list = link == Link::List && is_quoted(hay, value);
    let end = value + length(hay, value)?;
    // Most candidates are words of a sentence. This test is cheaper than those of the name.
    if !is_list && link != Link::Member && !hay.get(value..end).is_some_and(has_digit) {
        return None;
    }
    let name = name_around(hay, word);
    let own = hay.get(name.clone())?;
    let lower = own.to_ascii_lowercase();
    let is_about = super::is_about(own) || ABOUT.iter().any(|end| lower.ends_with(end));
    if is_about || link == Link::List && names::is_plural(own) {
        return None;
    }
    if is_list {
        return listed(hay, value);
    }
    let behind = hay.get(end..).unwrap_or_default();
    let before = hay.get(..name.start)?;
    let fits = match link {
        Link::List | Link::Member => true,
        Link::Argument => {
            let text = hay.get(value..end)?;
            names::ends_with_secret(own) && !names::is_identifier(text) && !has_same_beginning(own, text)
        }
        Link::Call => !names::reads(own),
        Link::Flag => own.starts_with(b"-"),
        Link::Column => is_row(before, behind),
        Link::Element => before.ends_with(b"<") && behind.starts_with(b"</"),
    };
    let text = hay.get(value..end).filter(|_| fits)?;
    let is_variable = own.iter().all(|byte| is_environment(*byte)) && own.contains(&b'_');
    (is_literal(text) || link == Link::Member && is_variable && is_phrase(text)).then_some(value..end)
}

/// `acme_token_read2`, `acme_token_write2`: names of one family in a list.
fn has_same_beginning(name: &[u8], text: &[u8]) -> bool {
    name.iter().zip(text).take_while(|(a, b)| a == b).count() >= MIN_SAME
}

/// Whether a line has a name and a value and nothing else, or lines between them and around.
fn is_row(before: &[u8], behind: &[u8]) -> bool {
    let has_lines = before.trim_ascii_end().ends_with(b"|")
        && behind.iter().find(|byte| !matches!(byte, b' ' | b'\t')) == Some(&b'|');
    let is_bare = matches!(before, [] | [.., b'\n']) && matches!(behind, [] | [b'\n' | b'\r', ..]);
    has_lines || is_bare
}

/// The whole name that contains the word at `word`.
pub(super) fn name_around(hay: &[u8], word: usize) -> Range<usize> {
    let belongs = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let before = hay.get(word.saturating_sub(MAX_NAME)..word).unwrap_or_default();
    let behind = hay.get(word..hay.len().min(word + MAX_NAME)).unwrap_or_default();
    let (before, behind) =
        (before.iter().rev().take_while(belongs).count(), behind.iter().take_while(belongs).count());
    word - before..word + behind
}

fn length(hay: &[u8], value: usize) -> Option<usize> {
    let rest = hay.get(value..hay.len().min(value + super::MAX_VALUE))?;
    if is_quoted(hay, value) {
        quoted_length(hay.get(..value)?, rest)
    } else {
        Some(rest.iter().take_while(|byte| is_bare(**byte)).count())
    }
}

/// From the first literal of a list to its last one.
fn listed(hay: &[u8], first: usize) -> Option<Range<usize>> {
    let mut found: Option<Range<usize>> = None;
    let mut at = first;
    for _ in 0..MAX_ITEMS {
        let Some(length) = length(hay, at) else { break };
        let end = at + length;
        if hay.get(at..end).is_some_and(is_literal) {
            found = Some(found.map_or(at, |found| found.start)..end);
        }
        let behind = hay.get(end..hay.len().min(end + MAX_NAME)).unwrap_or_default();
        let between = behind.iter().take_while(|byte| is_between(**byte)).count();
        let is_next = behind.get(..between).is_some_and(|text| text.contains(&b','));
        if !is_next || !is_quoted(hay, end + between) {
            break;
        }
        at = end + between;
    }
    found
}

fn is_between(byte: u8) -> bool {
    is_quote(byte) || byte.is_ascii_whitespace() || matches!(byte, b',' | b'\\')
}

/// Letters and digits, but not a name, a form rule or an address.
pub(super) fn is_literal(text: &[u8]) -> bool {
    let is_name = text.iter().all(|byte| is_environment(*byte)) && text.contains(&b'_');
    let word = text.iter().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_').count();
    let is_rule = word > 1 && text.get(word) == Some(&b':');
    let is_other = is_name || is_rule || is_path(text) || is_member_access(text);
    is_plain(text) && has_digit(text) && has_letter(text) && !is_other
}

/// Letters only, after the name of a variable: neither a single word nor a repetition of the name.
fn is_phrase(text: &[u8]) -> bool {
    let lower = text.to_ascii_lowercase();
    let says = |word: &&[u8]| memchr::memmem::find(&lower, word).is_some();
    is_plain(text) && text.len() >= MIN_PHRASE && !SAYINGS.iter().any(says) && !is_member_access(text)
}

/// `/run/secrets/db1`, `.ssh/id_rsa2`, `464/tcp`.
fn is_path(text: &[u8]) -> bool {
    let begins = text.iter().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'~')).count();
    let behind = text.get(begins..).unwrap_or_default();
    behind.starts_with(b"/") && (begins > 0 || memchr::memchr_iter(b'/', behind).count() > 1)
        || text.starts_with(b".") && text.contains(&b'/')
}

fn is_plain(text: &[u8]) -> bool {
    let is_code = text.iter().any(|byte| b"(){}[];,".contains(byte)) || text.starts_with(b"$");
    text.len() >= super::MIN_VALUE
        && is_written(text)
        && is_quoted_literal(text)
        && !is_common_word(text)
        && !is_code
        && !text.contains(&b' ')
        && memchr::memmem::find(text, b"://").is_none()
}

const MAX_NAME: usize = 80;
const MAX_ITEMS: usize = 64;
const MIN_PHRASE: usize = 10;
const MIN_SAME: usize = 10;
/// The ends of names of what is no secret itself, besides those that hold everywhere.
const ABOUT: &[&[u8]] = &[
    b"_id", b"url", b"uri", b"host", b"version", b"policy", b"mode", b"ttl", b"expiry", b"expires",
    b"length", b"timeout", b"format", b"store",
];
const SAYINGS: &[&[u8]] = &[b"pass", b"secret", b"token", b"key", b"auth", b"credential"];
