//! Reassembles tokens whose characters are separated by white space: `g h p _`.

use std::ops::Range;

use crate::{finding::Encoding, view::TextView};

/// Calls `each` with every run of single characters separated by white space: once as it is, and once with adjacent
/// characters that touch a word and may belong to either.
pub(crate) fn spread(hay: &[u8], mut each: impl FnMut(&TextView)) {
    let mut done = 0;
    let mut view = TextView::default();
    // Every run that is long enough to be a token contains one of these blocks.
    for (index, block) in hay.as_chunks::<BLOCK>().0.iter().enumerate() {
        if !is_spread(block) {
            continue;
        }
        let last = block.iter().rposition(|byte| is_visible(*byte)).unwrap_or(0);
        let at = index * BLOCK + last;
        if at < done {
            continue;
        }
        let run = run(hay, at, done);
        done = run.end;
        let touches = |at: usize| usize::from(hay.get(at).is_some_and(|byte| is_visible(*byte)));
        let outer = run.start - touches(run.start.wrapping_sub(1))..run.end + touches(run.end);
        for range in [&run, &outer] {
            render(hay, range, &mut view);
            if view.text.len() >= SHORTEST {
                each(&view);
            }
            if run == outer {
                break;
            }
        }
    }
}

/// Whether no two adjacent bytes are both visible, and some are. May have false positives.
fn is_spread(block: &[u8; BLOCK]) -> bool {
    // The first half rules out most blocks.
    let are_apart = |eight: &[u8; 8]| {
        let visible = visible(*eight);
        visible & visible >> 8 == 0
    };
    let (halves, _) = block.as_chunks::<8>();
    halves.iter().all(are_apart) && halves.iter().any(|eight| visible(*eight) != 0)
}

/// The high bit of every visible byte.
fn visible(eight: [u8; 8]) -> u64 {
    let bytes = u64::from_le_bytes(eight);
    let white = bytes.wrapping_sub(0x2121_2121_2121_2121) & !bytes & HIGH_BITS;
    !white & HIGH_BITS
}

/// The run of single characters around `at`, not before `floor`. Begins and ends with white space or with the text.
fn run(hay: &[u8], at: usize, floor: usize) -> Range<usize> {
    let before = hay.get(floor..at).unwrap_or_default();
    let after = hay.get(at..).unwrap_or_default();
    let touching = before.last().zip(after.first()).is_some_and(|(a, b)| is_visible(*a) && is_visible(*b));
    let skip = usize::from(touching);
    at - singles(before.iter().rev().skip(skip))..at + skip + singles(after.iter().skip(skip))
}

/// The number of bytes from here that are single characters and white space between them.
fn singles<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    let (mut gap, mut length, mut last) = (0, 0, b' ');
    for byte in bytes {
        let follows_visible = is_visible(last);
        gap = if is_visible(*byte) { 0 } else { gap + 1 };
        if gap > MAX_GAP {
            break;
        }
        if is_visible(*byte) && follows_visible {
            // The previous character begins a word.
            return length - 1;
        }
        length += 1;
        last = *byte;
    }
    length
}

fn render(hay: &[u8], range: &Range<usize>, view: &mut TextView) {
    view.clear();
    for at in range.clone() {
        if let Some(byte) = hay.get(at).filter(|byte| is_visible(**byte)) {
            view.replace(&(at..at + 1), &[*byte], Encoding::Spaced);
        }
    }
}

fn is_visible(byte: u8) -> bool {
    !byte.is_ascii_whitespace()
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const MAX_GAP: usize = 4;
const SHORTEST: usize = 16;
/// INVARIANT: sixteen characters with white space between them are 31 bytes, and contain a whole aligned block.
const BLOCK: usize = 16;

#[cfg(test)]
mod tests;
