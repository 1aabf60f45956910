//! Where does a private key block end?
//!
//! At its `-----END …-----`. Where there is none, the block is all that still looks like one, however long: a key that was
//! cut off is a key. A line of something else in it, five dashes or another header, is no end where a line of a body follows. A header without a body is a sentence about keys. A body without its header is known by how its format begins,
//! and ends with its lines. What a search or a log prints before each line is no end.

use std::ops::Range;

use memchr::memmem;

use super::Judged;
use crate::rule::End;

/// `header` is the `-----BEGIN …-----` line.
pub(super) fn judge(hay: &[u8], header: &Range<usize>) -> Judged {
    let rest = hay.get(header.end..).unwrap_or_default();
    let prefix = prefix_of_lines(hay, header.start, rest);
    let dashes = memmem::find(rest, DASHES).unwrap_or(rest.len());
    let body = rest.get(..dashes).unwrap_or_default();
    let closes = rest.get(dashes..).unwrap_or_default().starts_with(CLOSING);
    if closes && key_characters(body, prefix) >= MIN_BODY {
        return Judged::Extends(header.start..closing_end(hay, header.end + dashes), End::Closed);
    }
    let first = body.get(..body_run(body, prefix)).unwrap_or_default();
    let begins_here = key_characters(first, prefix) >= MIN_BODY;
    if !begins_here && !is_behind_something(rest) {
        return Judged::Refuted;
    }
    let (length, end) = block(rest, prefix);
    if !begins_here && next_line(rest.get(..length).unwrap_or_default()).is_none() {
        return Judged::Refuted;
    }
    Judged::Extends(header.start..header.end + length, end)
}

/// Whether a body begins a little behind its header, behind a tag or a comment. One line may be a digest, two are not.
fn is_behind_something(rest: &[u8]) -> bool {
    let near = rest.get(..rest.len().min(MAX_GAP)).unwrap_or_default();
    let Some(first) = next_line(near) else { return false };
    let behind = near.get(first.end..).unwrap_or_default();
    first.start <= MAX_TAG && next_line(behind).is_some_and(|second| second.start <= MAX_TAG)
}

/// `beginning` is how the format of a key begins; its header is not there, or was not chosen.
pub(super) fn judge_body(hay: &[u8], beginning: &Range<usize>) -> Judged {
    if !may_begin_behind(hay.get(..beginning.start).unwrap_or_default()) {
        return Judged::Refuted;
    }
    let rest = hay.get(beginning.start..).unwrap_or_default();
    // Little was read to find out that it is none: there may be one at every turn.
    let first = line_length(rest);
    if first < MIN_BODY {
        return Judged::Refuted;
    }
    let prefix = prefix_of_lines(hay, beginning.start, rest.get(first..).unwrap_or_default());
    Judged::Extends(beginning.start..beginning.start + lines_run(rest, prefix), End::Closed)
}

/// Until where another beginning has nothing to add to a body that was found without its header.
pub(crate) fn covered_until(hay: &[u8], body: &Range<usize>) -> usize {
    if body.len() > MAX_BODY {
        // It may have been cut off, and a key that begins a little later goes on behind it.
        return body.start + MAX_BODY - LONGEST_KEY;
    }
    // The last line may be the first one of a key whose other lines stand without what is before this one.
    let text = hay.get(body.clone()).unwrap_or_default();
    memchr::memrchr(b'\n', text).map_or(body.end, |end| body.start + end + 1)
}

/// Within a run of base64 the letters of a beginning are chance.
fn may_begin_behind(before: &[u8]) -> bool {
    match before {
        // Nothing, a line end as an escape, or the sign of a line that was added.
        [] | [.., b'\\', b'n' | b'r' | b't'] | [.., b'\n', b'+'] | [b'+'] => true,
        [.., byte] => !is_base64(*byte) || *byte == b'=',
    }
}

/// Where a block that began before this text ends in it.
pub(crate) fn body_end(hay: &[u8]) -> (usize, End) {
    block(hay, b"")
}

/// Where the block ends whose body begins here, and whether more of it may follow this text.
fn block(text: &[u8], prefix: &[u8]) -> (usize, End) {
    let (mut at, mut dashes) = (0, 0);
    loop {
        if dashes <= at {
            let found = memmem::find(text.get(at..).unwrap_or_default(), DASHES);
            dashes = found.map_or(text.len(), |found| at + found);
        }
        let end = at + body_run(text.get(at..dashes).unwrap_or_default(), prefix);
        let rest = text.get(end..).unwrap_or_default();
        if rest.starts_with(CLOSING) {
            return (closing_end(text, end), End::Closed);
        }
        match goes_on(rest) {
            Next::At(more) => at = end + more,
            Next::Nowhere => return (trimmed(text.get(..end).unwrap_or_default()), End::Closed),
            Next::Unknown => return (trimmed(text.get(..end).unwrap_or_default()), End::Open),
        }
    }
}

enum Next {
    At(usize),
    Nowhere,
    /// The text ends before that can be told.
    Unknown,
}

/// Where a body goes on behind a few lines of something else. A whole block in between, such as a certificate, is one of them.
fn goes_on(text: &[u8]) -> Next {
    let mut at = 0;
    for _ in 0..=MAX_BETWEEN {
        let rest = text.get(at..text.len().min(MAX_OTHERS)).unwrap_or_default();
        let line = rest.get(..memchr::memchr(b'\n', rest).unwrap_or(rest.len())).unwrap_or_default();
        if memmem::find(line, CLOSING).is_some() {
            return Next::Nowhere;
        }
        if let Some(length) = block_of_others(text.get(at..).unwrap_or_default(), line) {
            at += length;
            continue;
        }
        if let Some(next) = next_line(line) {
            return Next::At(at + next.start);
        }
        at += line.len() + 1;
        if at > text.len() {
            return Next::Unknown;
        }
    }
    Next::Nowhere
}

/// How long a block is that begins on this line and has an end of its own, with that line.
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

/// How far a text looks like the body of a block. Two words on a line, the first of them short, are prose.
fn body_run<'h>(text: &'h [u8], mut prefix: &'h [u8]) -> usize {
    // Where a word begins, and the same with the prefix of its line.
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

/// How much stands before a body on its next line, and what that is. From an empty line a log may have trimmed the blanks.
fn before_line<'h>(line: &[u8], prefix: &'h [u8]) -> Option<(usize, &'h [u8])> {
    let length = prefix_length(line, prefix);
    if length > 0 {
        return Some((length, prefix));
    }
    let trimmed = prefix_length(line, prefix.trim_ascii_end());
    let is_empty = matches!(line.get(trimmed..), None | Some([] | [b'\r' | b'\n', ..]));
    (trimmed > 0 && is_empty).then_some((trimmed, prefix))
}

/// The same where the next line is of something else, for others write into the same log. If none of the next few lines has
/// the prefix, one that ends like the line of a body goes on with its own.
fn resumed<'h>(text: &'h [u8], prefix: &'h [u8]) -> Option<(usize, &'h [u8])> {
    let mut at = 0;
    let mut other = None;
    for line in text.split(|byte| *byte == b'\n').take(MAX_BETWEEN + 1) {
        let length = prefix_length(line, prefix);
        if length > 0 && line_length(line.get(length..).unwrap_or_default()) >= SHORTEST_LINE {
            return Some((at + length, prefix));
        }
        if other.is_none() {
            other = prefix_of_full_line(line).map(|own| (at + own.len(), own));
        }
        at += line.len() + 1;
    }
    other
}

/// What stands before the base64 with which a line ends, if that is of full length and no digest or path.
fn prefix_of_full_line(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_end();
    let length = line.iter().rev().take_while(|byte| is_base64(**byte)).count();
    let (prefix, body) = line.split_at_checked(line.len() - length)?;
    is_full_line(body).then_some(prefix)
}

fn is_full_line(body: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| body.iter().any(class);
    body.len() >= SHORTEST_LINE
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_digit)
}

/// How far the lines of a body go. All but the last are of full length.
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

/// What stands between two lines of a body: their end, as such or as an escape, and what is around it in source code, quotations,
/// changes and printed lines. Nothing where the next line is of something else.
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

/// What stands before a key on its line, if it stands before the next line too: a search prints a name and a number there, a log
/// the time. Empty where it does not. `rest` is what stands behind the first line of the key.
fn prefix_of_lines<'h>(hay: &'h [u8], at: usize, rest: &[u8]) -> &'h [u8] {
    let before = hay.get(at.saturating_sub(MAX_PREFIX)..at).unwrap_or_default();
    let prefix = match memchr::memrchr(b'\n', before) {
        Some(end) => before.get(end + 1..).unwrap_or_default(),
        None if before.len() == at => before,
        // The line began so long ago that it is not made of such lines.
        None => return b"",
    };
    // Indents, quotes and the signs of a change stand within bodies anyway.
    if !prefix.iter().any(u8::is_ascii_alphanumeric) {
        return b"";
    }
    let near = rest.get(..rest.len().min(MAX_GAP)).unwrap_or_default();
    let next = memchr::memchr(b'\n', near).and_then(|end| rest.get(end + 1..));
    if next.is_some_and(|line| prefix_length(line, prefix) > 0) { prefix } else { b"" }
}

/// How much of this line is the prefix: the same but for numbers, spaces, and `name-7-` where another line has `name:7:`.
fn prefix_length(line: &[u8], prefix: &[u8]) -> usize {
    let (mut left, mut own) = (line, prefix);
    while let Some((first, others)) = own.split_first() {
        let class: fn(&u8) -> bool = match first {
            b'0'..=b'9' => u8::is_ascii_digit,
            b' ' | b'\t' => |byte: &u8| matches!(byte, b' ' | b'\t'),
            _ => match left.split_first() {
                Some((byte, after)) if byte == first || [byte, first].iter().all(|one| is_sign(**one)) => {
                    (left, own) = (after, others);
                    continue;
                }
                _ => return 0,
            },
        };
        let there = left.iter().take_while(|byte| class(byte)).count();
        if there == 0 {
            return 0;
        }
        left = left.get(there..).unwrap_or_default();
        own = own.get(own.iter().take_while(|byte| class(byte)).count()..).unwrap_or_default();
    }
    line.len() - left.len()
}

fn is_sign(byte: u8) -> bool {
    matches!(byte, b':' | b'-')
}

/// `from` is where `-----END` begins; its line ends with dashes again, if it was not cut off.
fn closing_end(hay: &[u8], from: usize) -> usize {
    let name = from + CLOSING.len();
    let line = hay.get(name..hay.len().min(name + MAX_NAME)).unwrap_or_default();
    memmem::find(line, DASHES).map_or(name, |at| name + at + DASHES.len())
}

/// White space at the end of a block that was cut off belongs to what follows.
fn trimmed(block: &[u8]) -> usize {
    block.trim_ascii_end().len()
}

fn key_characters(body: &[u8], prefix: &[u8]) -> usize {
    let lines = body.split(|byte| *byte == b'\n');
    let bare = lines.map(|line| line.get(prefix_length(line, prefix)..).unwrap_or_default());
    bare.flatten().filter(|byte| byte.is_ascii_alphanumeric()).take(MIN_BODY).count()
}

/// How much of a line of a body stands here; padding is its end.
fn line_length(text: &[u8]) -> usize {
    let letters = text.iter().take(MAX_BODY).take_while(|byte| is_base64(**byte) && **byte != b'=').count();
    letters + text.iter().skip(letters).take(2).take_while(|byte| **byte == b'=').count()
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=')
}

/// Base64, line ends as such and as escapes, and what stands around them in source code.
fn is_body(byte: u8) -> bool {
    is_base64(byte)
        || matches!(
            byte,
            b'\n' | b'\r' | b' ' | b'\t' | b'\\' | b'"' | b'\'' | b',' | b':' | b'-' | b'>' | b'#'
        )
}

const DASHES: &[u8] = b"-----";
const OPENING: &[u8] = b"-----BEGIN";
const CLOSING: &[u8] = b"-----END";
/// Nothing that can be used as a key is shorter.
const MIN_BODY: usize = 32;
/// A text of nothing but beginnings must not be read anew from each to its end.
const MAX_BODY: usize = 8 * 1024;
/// A key of 8,192 bits has less.
const LONGEST_KEY: usize = 6_400;
/// Keys on one line have spaces where their line ends were.
const SHORTEST_LINE: usize = 40;
const MAX_NAME: usize = 80;
/// The longest path, a number and two signs.
const MAX_PREFIX: usize = 4096 + 16;
/// So many lines of others stand between two of a key.
const MAX_BETWEEN: usize = 4;
/// No more of them than this are read to find the next one of a key.
const MAX_OTHERS: usize = 1024;
/// A comment or some tags.
const MAX_TAG: usize = 80;
/// Deeper than anybody indents.
const MAX_GAP: usize = 256;
