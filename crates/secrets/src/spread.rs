//! How does a token read whose characters were set apart, `g h p _`?

use std::ops::Range;

use crate::{finding::Encoding, view::View};

/// Calls `each` with every run of single characters that white space separates: once as it is, and once with the
/// characters at its ends that touch a word and may belong to either.
pub(crate) fn spread(hay: &[u8], mut each: impl FnMut(&View)) {
    let mut done = 0;
    let mut view = View::default();
    for (index, eight) in hay.as_chunks::<8>().0.iter().enumerate() {
        let at = index * 8;
        if at < done || !is_spread(*eight) {
            continue;
        }
        let run = run(hay, at, done);
        done = run.end.max(at + 8);
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

/// Whether no two of eight bytes that touch are both visible, and at least two are. May say yes too often.
fn is_spread(eight: [u8; 8]) -> bool {
    let bytes = u64::from_le_bytes(eight);
    let white = bytes.wrapping_sub(0x2121_2121_2121_2121) & !bytes & HIGH_BITS;
    let visible = !white & HIGH_BITS;
    visible & visible >> 8 == 0 && visible.count_ones() >= 2
}

/// The run of single characters around `at`, not before `floor`. Begins and ends with white space, or where the text does.
fn run(hay: &[u8], at: usize, floor: usize) -> Range<usize> {
    let before = hay.get(floor..at).unwrap_or_default();
    let after = hay.get(at..).unwrap_or_default();
    let touching = before.last().zip(after.first()).is_some_and(|(a, b)| is_visible(*a) && is_visible(*b));
    let skip = usize::from(touching);
    at - singles(before.iter().rev().skip(skip))..at + skip + singles(after.iter().skip(skip))
}

/// How many bytes from here are single characters and white space between them.
fn singles<'a>(bytes: impl Iterator<Item = &'a u8>) -> usize {
    let (mut gap, mut length, mut last) = (0, 0, b' ');
    for byte in bytes {
        let follows_visible = is_visible(last);
        gap = if is_visible(*byte) { 0 } else { gap + 1 };
        if gap > MAX_GAP {
            break;
        }
        if is_visible(*byte) && follows_visible {
            // The one before begins a word.
            return length - 1;
        }
        length += 1;
        last = *byte;
    }
    length
}

fn render(hay: &[u8], range: &Range<usize>, view: &mut View) {
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

#[cfg(test)]
mod tests;
