//! Finds the end of a private key block.
//!
//! - A block ends at its `-----END …-----` line, unless the body continues after it: an attacker can insert such a line.
//! - Without that line, the block extends as far as the text looks like a body, because a truncated key is still a key.
//! - Foreign lines, dashes or another header do not end a block if a line of a body follows.
//! - A header without a body is a sentence about keys.
//! - A body without a header is recognised by the first bytes of its format, and ends with its lines.
//! - Prefixes that a search or a log prints before each line are skipped.

use std::ops::Range;

use memchr::memmem;

use self::prefix::{before_line, prefix_length, prefix_of_lines, resumed};
use super::CheckResult;
use crate::rule::MatchEnd;

mod prefix;

/// `header` is the `-----BEGIN …-----` line.
pub(super) fn judge(hay: &[u8], header: &Range<usize>) -> CheckResult {
    let rest = hay.get(header.end..).unwrap_or_default();
    let prefix = prefix_of_lines(hay, header.start, rest);
    let dashes = memmem::find(rest, DASHES).unwrap_or(rest.len());
    let body = rest.get(..dashes).unwrap_or_default();
    let closes = is_closing(rest.get(dashes..).unwrap_or_default());
    if closes && key_characters(body, prefix) >= MIN_BODY {
        let (length, end) = closed(rest, dashes, prefix);
        return CheckResult::Extends(header.start..header.end + length, end);
    }
    let first = body.get(..body_run(body, prefix)).unwrap_or_default();
    let begins_here = key_characters(first, prefix) >= MIN_BODY;
    if !begins_here && !is_behind_something(rest) {
        return CheckResult::Refuted;
    }
    let (length, end) = block(rest, prefix);
    if !begins_here && next_line(rest.get(..length).unwrap_or_default()).is_none() {
        return CheckResult::Refuted;
    }
    CheckResult::Extends(header.start..header.end + length, end)
}

/// Whether a body begins shortly after its header, behind a tag, a comment or an inserted end. One line may be a digest. Two
/// lines, or one line before the end of a key, are a body.
fn is_behind_something(rest: &[u8]) -> bool {
    let near = rest.get(..rest.len().min(MAX_GAP)).unwrap_or_default();
    let Some(first) = next_line(near) else { return false };
    let behind = near.get(first.end..).unwrap_or_default();
    let goes_on = || next_line(behind).is_some_and(|second| second.start <= MAX_TAG);
    first.start <= MAX_TAG && (is_closing(behind.trim_ascii_start()) || goes_on())
}

/// `beginning` is the start of a key format. Its header is missing, or another match was preferred.
pub(super) fn judge_body(hay: &[u8], beginning: &Range<usize>) -> CheckResult {
    if !may_begin_behind(hay.get(..beginning.start).unwrap_or_default()) {
        return CheckResult::Refuted;
    }
    let rest = hay.get(beginning.start..).unwrap_or_default();
    // Reject early and cheaply, because a text may contain many such beginnings.
    let first = line_length(rest);
    if first < MIN_BODY {
        return CheckResult::Refuted;
    }
    let prefix = prefix_of_lines(hay, beginning.start, rest.get(first..).unwrap_or_default());
    CheckResult::Extends(beginning.start..beginning.start + lines_run(rest, prefix), MatchEnd::Closed)
}

/// The position up to which other beginnings add nothing to a body that was found without its header.
pub(crate) fn covered_until(hay: &[u8], body: &Range<usize>) -> usize {
    if body.len() > MAX_BODY {
        // The body may have been cut at the limit. A key that begins shortly before the limit continues after it.
        return body.start + MAX_BODY - LONGEST_KEY;
    }
    // The last line may be the first line of another key, whose other lines have a different prefix.
    let text = hay.get(body.clone()).unwrap_or_default();
    memchr::memrchr(b'\n', text).map_or(body.end, |end| body.start + end + 1)
}

/// In the middle of base64, the letters of a beginning are a coincidence.
fn may_begin_behind(before: &[u8]) -> bool {
    match before {
        // The start of the text, an escaped line end, or the `+` of an added line in a diff.
        [] | [.., b'\\', b'n' | b'r' | b't'] | [.., b'\n', b'+'] | [b'+'] => true,
        [.., byte] => !is_base64(*byte) || *byte == b'=',
    }
}

/// The end of a block that began before this text.
pub(crate) fn body_end(hay: &[u8]) -> (usize, MatchEnd) {
    block(hay, b"")
}

/// The end of the block whose body begins here, and whether more of it may follow this text.
fn block(text: &[u8], prefix: &[u8]) -> (usize, MatchEnd) {
    let (mut at, mut dashes) = (0, 0);
    loop {
        if dashes <= at {
            let found = memmem::find(text.get(at..).unwrap_or_default(), DASHES);
            dashes = found.map_or(text.len(), |found| at + found);
        }
        let end = at + body_run(text.get(at..dashes).unwrap_or_default(), prefix);
        let rest = text.get(end..).unwrap_or_default();
        if is_closing(rest) {
            let closing = closing_end(text, end);
            match goes_on_behind_end(text.get(closing..).unwrap_or_default(), prefix) {
                Some(more) => at = closing + more,
                None => return (closing, MatchEnd::Closed),
            }
            continue;
        }
        match goes_on(rest) {
            BodyContinuation::At(more) => at = end + more,
            BodyContinuation::Nowhere => {
                return (trimmed(text.get(..end).unwrap_or_default()), MatchEnd::Closed);
            }
            BodyContinuation::Unknown => {
                return (trimmed(text.get(..end).unwrap_or_default()), MatchEnd::Open);
            }
        }
    }
}

/// Like `block`, for a block with an end line at `from`.
fn closed(text: &[u8], from: usize, prefix: &[u8]) -> (usize, MatchEnd) {
    let closing = closing_end(text, from);
    let rest = text.get(closing..).unwrap_or_default();
    let Some(more) = goes_on_behind_end(rest, prefix) else { return (closing, MatchEnd::Closed) };
    let (length, end) = block(rest.get(more..).unwrap_or_default(), prefix);
    (closing + more + length, end)
}

/// The position where a body continues after an end line. Certificates and public keys often follow a key, so this requires
/// more than inside a block: a bare line after a few others, or nothing but a body before the next end line, and no other block.
fn goes_on_behind_end(text: &[u8], prefix: &[u8]) -> Option<usize> {
    let near = text.get(..text.len().min(MAX_OTHERS))?;
    let dashes = memmem::find(near, DASHES).unwrap_or(near.len());
    let between = near.get(..dashes)?;
    if is_closing(near.get(dashes..)?) && body_run(between, prefix) == dashes {
        return Some(0);
    }
    let mut at = 0;
    for line in between.split_inclusive(|byte| *byte == b'\n').take(MAX_BETWEEN + 2) {
        if let Some(start) = bare_line(line, prefix) {
            return Some(at + start);
        }
        at += line.len();
    }
    None
}

/// The start of a body line on this line, if the line contains only a printed prefix, blanks, escaped line ends and quotes
/// besides.
fn bare_line(line: &[u8], prefix: &[u8]) -> Option<usize> {
    let own = prefix_length(line, prefix);
    let text = line.get(own..)?;
    let start = own + gap(text, b"");
    let length = line_length(line.get(start..)?);
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'\\' | b'"' | b'\'' | b',');
    let body = line.get(start..start + length)?;
    (is_full_line(body) && line.get(start + length).is_none_or(is_end)).then_some(start)
}

enum BodyContinuation {
    At(usize),
    Nowhere,
    /// The text ends too early to decide.
    Unknown,
}

/// The position where a body continues after a few foreign lines. A whole block such as a certificate counts as one line.
fn goes_on(text: &[u8]) -> BodyContinuation {
    let mut at = 0;
    for _ in 0..=MAX_BETWEEN {
        let rest = text.get(at..text.len().min(MAX_OTHERS)).unwrap_or_default();
        let line = rest.get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or_default();
        if [CLOSING, CLOSING_SSH2].iter().any(|closing| memmem::find(line, closing).is_some()) {
            return BodyContinuation::Nowhere;
        }
        if let Some(length) = block_of_others(text.get(at..).unwrap_or_default(), line) {
            at += length;
            continue;
        }
        if let Some(next) = next_line(line) {
            return BodyContinuation::At(at + next.start);
        }
        at += line.len() + 1;
        if at > text.len() {
            return BodyContinuation::Unknown;
        }
    }
    BodyContinuation::Nowhere
}

/// The length of a complete block that begins on this line, including its end line.
fn block_of_others(text: &[u8], line: &[u8]) -> Option<usize> {
    let opening = memmem::find(line, OPENING)?;
    let name = line.get(opening + OPENING.len()..)?;
    let name = name.get(..memmem::find(name, DASHES)?)?;
    let near = text.get(..text.len().min(MAX_BODY))?;
    let closing = memmem::find(near, &[CLOSING, name, DASHES].concat())?;
    Some(closing + line_end(near.get(closing..)?))
}

fn line_end(text: &[u8]) -> usize {
    memchr::memchr(b'\n', text).map_or(text.len(), |end| end + 1)
}

/// The first run of base64 that is as long and as varied as a line of a body.
fn next_line(text: &[u8]) -> Option<Range<usize>> {
    let mut from = 0;
    while from < text.len() {
        let rest = text.get(from..)?;
        let start = from + rest.iter().position(|byte| is_base64(*byte))?;
        let run = text.get(start..)?;
        let length = run.iter().take_while(|byte| is_base64(**byte)).count();
        if is_full_line(run.get(..length)?) {
            return Some(start..start + length);
        }
        from = start + length;
    }
    None
}

/// The length of the text that looks like the body of a block. Two words on a line, the first one short, are prose.
fn body_run<'h>(text: &'h [u8], mut prefix: &'h [u8]) -> usize {
    // The start of the current word, and the same including the prefix of its line.
    let (mut word, mut start) = (0, 0);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if !is_body(*byte) {
            return if at == word { start } else { at };
        }
        if is_base64(*byte) {
            at += 1;
            continue;
        }
        let follows_word = at > word && at - word < SHORTEST_LINE;
        let next_is_word = text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if *byte == b' ' && follows_word && next_is_word {
            return start;
        }
        at += 1;
        start = at;
        if *byte == b'\n' && !prefix.is_empty() {
            let rest = text.get(at..).unwrap_or_default();
            let Some((length, own)) = before_line(rest, prefix).or_else(|| resumed(rest, prefix)) else {
                return at;
            };
            (at, prefix) = (at + length, own);
        }
        word = at;
    }
    text.len()
}

fn is_full_line(body: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| body.iter().any(class);
    body.len() >= SHORTEST_LINE
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
}

/// The length of the lines of a body. All lines except the last have full length.
fn lines_run(text: &[u8], prefix: &[u8]) -> usize {
    let mut line = line_length(text);
    let (mut end, mut characters) = (line, line);
    loop {
        if line < SHORTEST_LINE || characters > MAX_BODY {
            return end;
        }
        let rest = text.get(end..).unwrap_or_default();
        let between = gap(rest, prefix);
        let next = rest.get(between..).unwrap_or_default();
        let length = line_length(next);
        let is_prose = length < SHORTEST_LINE && next.get(length) == Some(&b' ');
        if between == 0 || length == 0 || is_prose {
            return end;
        }
        (line, end, characters) = (length, end + between + length, characters + length);
    }
}

/// The length of the text between two lines of a body: a raw or escaped line end, and what source code, quotations, diffs and
/// printed lines add around it. Zero if the next line is foreign.
fn gap(text: &[u8], prefix: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at).filter(|_| at < MAX_GAP) {
        at += match byte {
            b'\n' if prefix.is_empty() => 1 + usize::from(text.get(at + 1) == Some(&b'-')),
            b'\n' => match prefix_length(text.get(at + 1..).unwrap_or_default(), prefix) {
                0 => return 0,
                length => 1 + length,
            },
            b'\\' if matches!(text.get(at + 1), Some(b'n' | b'r')) => 2,
            b'\r' | b' ' | b'\t' | b'\\' | b'"' | b'\'' | b',' | b'>' | b'#' => 1,
            _ => break,
        };
    }
    at
}

fn is_closing(text: &[u8]) -> bool {
    text.starts_with(CLOSING) || text.starts_with(CLOSING_SSH2)
}

/// `from` is the start of `-----END`. Its line ends with dashes, unless it is truncated.
fn closing_end(hay: &[u8], from: usize) -> usize {
    let name = from + CLOSING.len();
    let line = hay.get(name..hay.len().min(name + MAX_NAME)).unwrap_or_default();
    let line = line.get(..memchr::memchr(b'\n', line).unwrap_or(line.len())).unwrap_or_default();
    let Some(dashes) = memmem::find(line, DASHES) else { return name };
    let fifth = usize::from(line.get(dashes + DASHES.len()) == Some(&b'-'));
    name + dashes + DASHES.len() + fifth
}

/// White space at the end of a truncated block belongs to the following text.
fn trimmed(block: &[u8]) -> usize {
    block.trim_ascii_end().len()
}

fn key_characters(body: &[u8], prefix: &[u8]) -> usize {
    let lines = body.split(|byte| *byte == b'\n');
    let bare = lines.map(|line| line.get(prefix_length(line, prefix)..).unwrap_or_default());
    bare.flatten().filter(|byte| byte.is_ascii_alphanumeric()).take(MIN_BODY).count()
}

/// The length of the body line that begins here. Padding ends it.
fn line_length(text: &[u8]) -> usize {
    let letters = text.iter().take(MAX_BODY).take_while(|byte| is_base64(**byte) && **byte != b'=').count();
    letters + text.iter().skip(letters).take(2).take_while(|byte| **byte == b'=').count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Base64, raw and escaped line ends, and the characters around them in source code.
fn is_body(byte: u8) -> bool {
    is_base64(byte)
        || matches!(
            byte,
            b'\n' | b'\r' | b' ' | b'\t' | b'\\' | b'"' | b'\'' | b',' | b':' | b'-' | b'>' | b'#'
        )
}

/// Four dashes, because SSH2 writes four. Others write five.
const DASHES: &[u8] = b"----";
const OPENING: &[u8] = b"-----BEGIN";
const CLOSING: &[u8] = b"-----END";
const CLOSING_SSH2: &[u8] = b"---- END";
/// No usable key is shorter.
const MIN_BODY: usize = 32;
/// Bounds the work for a text with many beginnings.
const MAX_BODY: usize = 8 * 1024;
/// A key of 8,192 bits is shorter.
const LONGEST_KEY: usize = 6_400;
/// Applies to keys on one line too: they have spaces instead of line ends.
const SHORTEST_LINE: usize = 40;
const MAX_NAME: usize = 80;
/// The maximum number of foreign lines between two lines of a key.
const MAX_BETWEEN: usize = 4;
/// The maximum number of foreign bytes that are read to find the next line of a key.
const MAX_OTHERS: usize = 1024;
/// The maximum length of a comment or tags before a body.
const MAX_TAG: usize = 80;
/// More than any usual indentation.
const MAX_GAP: usize = 256;
