//! The prefix that a search or a log prints before each line of a key.

use super::{MAX_BETWEEN, MAX_GAP, SHORTEST_LINE, is_base64, is_full_line, line_length};

/// The text before a key on its line, if the next line has it too. A search prints a file name and a line number there, a log the
/// time. Empty if the next line differs. `rest` is the text after the first line of the key.
pub(super) fn prefix_of_lines<'h>(hay: &'h [u8], at: usize, rest: &[u8]) -> &'h [u8] {
    let before = hay.get(at.saturating_sub(MAX_PREFIX)..at).unwrap_or_default();
    let prefix = match memchr::memrchr(b'\n', before) {
        Some(end) => before.get(end + 1..).unwrap_or_default(),
        None if before.len() == at => before,
        // The line is too long to have such a prefix.
        None => return b"",
    };
    // Indentation, quotes and diff signs are allowed in bodies anyway.
    if !prefix.iter().any(u8::is_ascii_alphanumeric) {
        return b"";
    }
    let near = rest.get(..rest.len().min(MAX_GAP)).unwrap_or_default();
    let next = memchr::memchr(b'\n', near).and_then(|end| rest.get(end + 1..));
    if next.is_some_and(|line| prefix_length(line, prefix) > 0) { prefix } else { b"" }
}

/// The length of the prefix on this line. Numbers and spaces may differ, and `name-7-` matches `name:7:`.
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

/// The length and text of the prefix before a body on its next line. A log may have trimmed the blanks of an empty line.
pub(super) fn before_line<'h>(line: &[u8], prefix: &'h [u8]) -> Option<(usize, &'h [u8])> {
    let length = prefix_length(line, prefix);
    if length > 0 {
        return Some((length, prefix));
    }
    let trimmed = prefix_length(line, prefix.trim_ascii_end());
    let is_empty = matches!(line.get(trimmed..), None | Some([] | [b'\r' | b'\n', ..]));
    (trimmed > 0 && is_empty).then_some((trimmed, prefix))
}

/// Like `before_line`, if the next line is foreign, because other processes write into the same log. If none of the next few lines
/// has the prefix, the first line that ends like a body line continues the body with another prefix.
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

/// The text before the base64 at the end of a line, if the base64 has full length and is not a digest or path.
fn prefix_of_full_line(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_end();
    let length = line.iter().rev().take_while(|byte| is_base64(**byte)).count();
    let (prefix, body) = line.split_at_checked(line.len() - length)?;
    is_full_line(body).then_some(prefix)
}

/// The longest path, a number and two separators.
const MAX_PREFIX: usize = 4096 + 16;
