//! How does a token read whose characters were set apart, `g h p _`?

use crate::{finding::Encoding, view::View};

/// Calls `each` with every run of single characters that white space separates.
pub(crate) fn spread(hay: &[u8], mut each: impl FnMut(&View)) {
    let mut done = 0;
    let mut view = View::default();
    for (index, eight) in hay.as_chunks::<8>().0.iter().enumerate() {
        let at = index * 8;
        if at < done || !is_spread(*eight) {
            continue;
        }
        let start = run_start(hay, at, done);
        view.clear();
        done = collect(hay, start, &mut view).max(at + 8);
        if view.text.len() >= SHORTEST {
            each(&view);
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

fn run_start(hay: &[u8], at: usize, floor: usize) -> usize {
    let mut start = at;
    let mut gap = 0;
    while start > floor {
        let Some(byte) = hay.get(start - 1) else { break };
        let follows_visible = hay.get(start).is_some_and(|next| !next.is_ascii_whitespace());
        if byte.is_ascii_whitespace() {
            gap += 1;
        } else if follows_visible && start != at {
            // The last of a word; the run begins behind it.
            return start + 1;
        } else {
            gap = 0;
        }
        if gap > MAX_GAP {
            break;
        }
        start -= 1;
    }
    start
}

/// Gathers single characters from `start` on, and tells where they end.
fn collect(hay: &[u8], start: usize, view: &mut View) -> usize {
    let mut gap = 0;
    let mut at = start;
    while let Some(byte) = hay.get(at) {
        let next = hay.get(at + 1).copied().unwrap_or(b' ');
        if byte.is_ascii_whitespace() {
            gap += 1;
            if gap > MAX_GAP {
                break;
            }
        } else if next.is_ascii_whitespace() {
            gap = 0;
            view.replace(&(at..at + 1), &[*byte], Encoding::Spaced);
        } else {
            break;
        }
        at += 1;
    }
    at
}

const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
const MAX_GAP: usize = 4;
const SHORTEST: usize = 16;

#[cfg(test)]
mod tests;
