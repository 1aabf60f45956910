//! Where does a private key block end?
//!
//! At its `-----END …-----`. Where there is none, the block is all that still looks like one, however long: a key that was
//! cut off is a key. A header without a body is a sentence about keys.

use std::ops::Range;

use memchr::memmem;

use super::Judged;
use crate::rule::End;

/// `header` is the `-----BEGIN …-----` line.
pub(super) fn judge(hay: &[u8], header: &Range<usize>) -> Judged {
    let rest = hay.get(header.end..).unwrap_or_default();
    let dashes = memmem::find(rest, DASHES);
    let body = rest.get(..dashes.unwrap_or(rest.len())).unwrap_or_default();
    let closes = dashes.is_some_and(|at| rest.get(at..).unwrap_or_default().starts_with(CLOSING));
    if closes && key_characters(body) >= MIN_BODY {
        let from = header.end + body.len();
        return Judged::Extends(header.start..closing_end(hay, from), End::Closed);
    }
    let run = body_run(body);
    let block = body.get(..run).unwrap_or_default();
    if key_characters(block) < MIN_BODY {
        return Judged::Refuted;
    }
    let end = if run == rest.len() { End::Open } else { End::Closed };
    Judged::Extends(header.start..header.end + trimmed(block), end)
}

/// Where a block that began before this text ends in it.
pub(crate) fn body_end(hay: &[u8]) -> (usize, End) {
    let before_dashes = hay.get(..memmem::find(hay, DASHES).unwrap_or(hay.len())).unwrap_or_default();
    let run = body_run(before_dashes);
    if run == hay.len() {
        return (run, End::Open);
    }
    if hay.get(run..).unwrap_or_default().starts_with(CLOSING) {
        return (closing_end(hay, run), End::Closed);
    }
    (trimmed(hay.get(..run).unwrap_or_default()), End::Closed)
}

/// How far a text looks like the body of a block. Two words on a line, the first of them short, are prose.
fn body_run(text: &[u8]) -> usize {
    let mut word = 0;
    for (at, byte) in text.iter().enumerate() {
        if !is_body(*byte) {
            return at;
        }
        if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=') {
            continue;
        }
        let follows_word = at > word && at - word < SHORTEST_LINE;
        let next_is_word = text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
        if *byte == b' ' && follows_word && next_is_word {
            return word;
        }
        word = at + 1;
    }
    text.len()
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

fn key_characters(body: &[u8]) -> usize {
    body.iter().filter(|byte| byte.is_ascii_alphanumeric()).take(MIN_BODY).count()
}

/// Base64, line ends as such and as escapes, and what stands around them in source code.
fn is_body(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'+' | b'/'
                | b'='
                | b'\n'
                | b'\r'
                | b' '
                | b'\t'
                | b'\\'
                | b'"'
                | b'\''
                | b','
                | b':'
                | b'-'
                | b'>'
                | b'#'
        )
}

const DASHES: &[u8] = b"-----";
const CLOSING: &[u8] = b"-----END";
/// Nothing that can be used as a key is shorter.
const MIN_BODY: usize = 32;
/// Keys on one line have spaces where their line ends were.
const SHORTEST_LINE: usize = 40;
const MAX_NAME: usize = 80;
