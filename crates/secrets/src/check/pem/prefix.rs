//! What do a search and a log print before each line of a key?

use super::{MAX_BETWEEN, MAX_GAP, SHORTEST_LINE, is_base64, is_full_line, line_length};

/// What stands before a key on its line, if it stands before the next line too: a search prints a name and a number there, a log
/// the time. Empty where it does not. `rest` is what stands behind the first line of the key.
pub(super) fn prefix_of_lines<'h>(hay: &'h [u8], at: usize, rest: &[u8]) -> &'h [u8] {
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
pub(super) fn prefix_length(line: &[u8], prefix: &[u8]) -> usize {
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

/// How much stands before a body on its next line, and what that is. From an empty line a log may have trimmed the blanks.
pub(super) fn before_line<'h>(line: &[u8], prefix: &'h [u8]) -> Option<(usize, &'h [u8])> {
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
pub(super) fn resumed<'h>(text: &'h [u8], prefix: &'h [u8]) -> Option<(usize, &'h [u8])> {
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

/// The longest path, a number and two signs.
const MAX_PREFIX: usize = 4096 + 16;
