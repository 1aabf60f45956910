//! Joins tokens that were split by line ends (raw or escaped as in JSON) or by concatenated string literals.
//!
//! Both tokens must touch the joint; words of a sentence are never joined.

use std::ops::Range;

use crate::{
    blocks::{BLOCK, ByteBlock, each_position, is_one_of},
    finding::Encoding,
    view::TextView,
};

/// Calls `each` with every chain of joined tokens.
pub(crate) fn join(hay: &[u8], mut each: impl FnMut(&TextView)) {
    let mut chain = TokenChain::default();
    each_position(hay, may_join, |before| {
        let at = before + 1;
        if at < chain.end {
            return;
        }
        let Some(joint) = joint(hay, at) else { return };
        if chain.pieces > 0 && joint.start == chain.end {
            chain.add(hay, &joint);
            return;
        }
        chain.tell(&mut each);
        chain.begin(hay, &joint);
    });
    chain.tell(&mut each);
}

/// One for each byte before a line end, plus sign or backslash, except those that end most lines of source code and are
/// part of no token.
fn may_join(block: &ByteBlock, next: &ByteBlock) -> ByteBlock {
    let mut passing = [0; BLOCK];
    for ((passing, byte), next) in passing.iter_mut().zip(block).zip(next) {
        *passing = is_one_of(*next, *b"\n+\\") & !is_one_of(*byte, *b"\n;,{");
    }
    passing
}

#[derive(Default)]
struct TokenChain {
    view: TextView,
    pieces: usize,
    /// The end of the last piece in the text.
    end: usize,
}

impl TokenChain {
    fn begin(&mut self, hay: &[u8], joint: &Range<usize>) {
        let before = hay.get(self.end.min(joint.start)..joint.start).unwrap_or_default();
        let first = before.iter().rev().take(MAX_FIRST).take_while(|byte| is_token(**byte)).count();
        let after = hay.get(joint.end..).unwrap_or_default();
        let second = after.iter().take(SHORTEST).take_while(|byte| is_token(**byte)).count();
        let goes_on = after.get(second).is_some_and(|byte| closes(*byte) || matches!(byte, b'\n' | b'+'));
        self.end = joint.end + second;
        if first + second < SHORTEST && !goes_on {
            return;
        }
        let start = joint.start - first;
        self.view.keep(hay.get(start..joint.start).unwrap_or_default(), start);
        self.pieces = 1;
        self.add(hay, joint);
    }

    fn add(&mut self, hay: &[u8], joint: &Range<usize>) {
        let rest = hay.get(joint.end..).unwrap_or_default();
        let piece = rest.iter().take_while(|byte| is_token(**byte)).count();
        self.view.replace(joint, &[], Encoding::Split);
        self.view.keep(rest.get(..piece).unwrap_or_default(), joint.end);
        self.pieces += 1;
        self.end = joint.end + piece;
    }

    fn tell(&mut self, each: &mut impl FnMut(&TextView)) {
        if self.pieces > 0 && self.view.text.len() >= SHORTEST {
            each(&self.view);
        }
        self.pieces = 0;
        self.view.clear();
    }
}

/// Returns the span between two pieces of a token, around the line end or plus sign at `at`.
fn joint(hay: &[u8], at: usize) -> Option<Range<usize>> {
    let length = match hay.get(at..)? {
        [b'\\', b'n', ..] => 2,
        [b'\\', b'r', b'\\', b'n', ..] => 4,
        [b'\\', ..] => return None,
        _ => 1,
    };
    let touches = |at: Option<usize>| at.and_then(|at| hay.get(at)).is_some_and(|byte| is_token(*byte));
    let before = hay.get(at.saturating_sub(MAX_JOINT)..at)?;
    let start = at - before.iter().rev().take_while(|byte| closes(**byte)).count();
    if !touches(start.checked_sub(1)) {
        return None;
    }
    let after = hay.get(at + length..hay.len().min(at + length + MAX_JOINT))?;
    let end = at + length + after.iter().take_while(|byte| opens(**byte)).count();
    if !touches(Some(end)) {
        return None;
    }
    let has_quote = |part: &[u8]| part.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let is_joint =
        hay.get(at) != Some(&b'+') || (has_quote(hay.get(start..at)?) && has_quote(hay.get(at..end)?));
    is_joint.then_some(start..end)
}

fn closes(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\\' | b'"' | b'\'' | b'`')
}

fn opens(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'"' | b'\'' | b'`' | b'>' | b'#' | b'*' | b'|')
}

pub(crate) fn is_token(byte: u8) -> bool {
    TOKEN.get(usize::from(byte)).copied().unwrap_or_default()
}

/// A table, because every byte around a line end is looked up.
#[expect(clippy::indexing_slicing, reason = "a byte is below 256, and this runs when it is compiled")]
const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut rest: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=.~";
    while let [byte, others @ ..] = rest {
        table[*byte as usize] = true;
        rest = others;
    }
    table
};
const MAX_JOINT: usize = 64;
const MAX_FIRST: usize = 4096;
/// Self-contained tokens are never shorter.
const SHORTEST: usize = 16;

#[cfg(test)]
mod tests;
