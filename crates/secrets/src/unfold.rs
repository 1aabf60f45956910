//! Escapes, entities, percent signs, look-alikes and controls: how does the text read once they are undone?
//!
//! Only the neighbourhood of such a thing is undone. Text without any is passed over at the speed of `memchr`.

use std::ops::{Range, RangeInclusive};

use crate::{
    coded::byte_of_hex,
    finding::Encoding,
    fold::{Reads, reads},
    view::View,
};

/// Calls `each` with every neighbourhood that reads otherwise than it is written.
pub(crate) fn unfold(hay: &[u8], mut each: impl FnMut(&View)) {
    let mut places: Vec<usize> =
        memchr::memchr3_iter(b'%', b'\\', b'&', hay).filter(|at| is_disguise(hay, *at)).collect();
    let written = places.len();
    places.extend(controls(hay));
    if !hay.is_ascii() {
        places.extend(odd_characters(hay));
    }
    if places.len() > written {
        places.sort_unstable();
    }
    let mut view = View::default();
    for region in regions(hay, &places) {
        view.clear();
        render(hay, &region, &mut view);
        each(&view);
    }
}

/// A space is part of no token, and `%20` is everywhere.
fn is_disguise(hay: &[u8], at: usize) -> bool {
    undo_escape(hay, at).is_some_and(|undone| undone.reads != Reads::As(b' '))
}

struct Undone {
    length: usize,
    reads: Reads,
    encoding: Encoding,
}

fn render(hay: &[u8], region: &Range<usize>, view: &mut View) {
    let mut at = region.start;
    while at < region.end {
        if let Some(undone) = undo(hay, at) {
            let original = at..at + undone.length;
            match undone.reads {
                Reads::As(byte) => view.replace(&original, &[byte], undone.encoding),
                Reads::AsNothing => view.replace(&original, &[], undone.encoding),
            }
            at = original.end;
            continue;
        }
        let rest = hay.get(at..region.end).unwrap_or_default();
        let plain = rest.iter().skip(1).take_while(|byte| !may_begin(**byte)).count() + 1;
        view.keep(rest.get(..plain).unwrap_or_default(), at);
        at += plain;
    }
}

fn may_begin(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&') || byte >= 0xc2 || is_control(byte)
}

fn undo(hay: &[u8], at: usize) -> Option<Undone> {
    match *hay.get(at)? {
        byte if is_control(byte) => undo_control(hay, at),
        byte if byte.is_ascii() => undo_escape(hay, at),
        _ => undo_character(hay, at),
    }
}

/// Controls that do not lay out text: a terminal shows nothing for them.
fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r')
}

/// A control, and what belongs to it where it begins a sequence that sets colours or an alphabet.
fn undo_control(hay: &[u8], at: usize) -> Option<Undone> {
    let sequence = match hay.get(at..hay.len().min(at + MAX_SEQUENCE))? {
        [ESCAPE, b'[', rest @ ..] => sequence_end(rest, &(b'0'..=b'?'), &(b'@'..=b'~')).map(|end| end + 2),
        [ESCAPE, b'(' | b')', b'0' | b'A' | b'B', ..] => Some(3),
        _ => None,
    };
    Some(Undone { length: sequence.unwrap_or(1), reads: Reads::AsNothing, encoding: Encoding::LookAlike })
}

/// How long a sequence is that has any number of the one kind, and then one of the other.
fn sequence_end(rest: &[u8], inside: &RangeInclusive<u8>, last: &RangeInclusive<u8>) -> Option<usize> {
    let inner = rest.iter().take_while(|byte| inside.contains(*byte)).count();
    rest.get(inner).filter(|byte| last.contains(*byte)).map(|_| inner + 1)
}

fn controls(hay: &[u8]) -> impl Iterator<Item = usize> {
    let blocks = hay.chunks(BLOCK).enumerate().filter(|(_, block)| has_control(block));
    blocks.flat_map(|(index, block)| {
        let controls = block.iter().enumerate().filter(|(_, byte)| is_control(**byte));
        controls.map(move |(at, _)| index * BLOCK + at)
    })
}

/// Without leaving early, so that the compiler looks at many bytes at once.
fn has_control(block: &[u8]) -> bool {
    block.iter().fold(false, |any, byte| any | is_control(*byte))
}

fn undo_escape(hay: &[u8], at: usize) -> Option<Undone> {
    let rest = hay.get(at..)?;
    match *rest {
        [b'%', high, low, ..] => {
            let byte = byte_of_hex([high, low])?;
            Some(Undone { length: 3, reads: Reads::As(byte), encoding: Encoding::Url })
        }
        [b'\\', b'/', ..] => Some(Undone { length: 2, reads: Reads::As(b'/'), encoding: Encoding::Escape }),
        [b'\\', b'x', high, low, ..] => {
            let byte = byte_of_hex([high, low])?;
            Some(Undone { length: 4, reads: Reads::As(byte), encoding: Encoding::Escape })
        }
        [b'\\', b'u' | b'U', ..] => undo_unicode(rest),
        [b'\\', a @ b'0'..=b'1', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
            let byte = (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0');
            Some(Undone { length: 4, reads: Reads::As(byte), encoding: Encoding::Escape })
        }
        [b'&', b'#', ..] => undo_entity(rest),
        _ => None,
    }
}

/// `\u002d`, `\u{2d}`, `\U0000002d`, and two of the first kind that make one character.
fn undo_unicode(rest: &[u8]) -> Option<Undone> {
    let digits = |from: usize, count: usize| {
        let digits = rest.get(from..from + count)?;
        digits.iter().try_fold(0_u32, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
    };
    let (code, length) = match *rest.get(1..)? {
        [b'u', b'{', ..] => {
            let count = rest.iter().skip(3).take(8).take_while(|byte| byte.is_ascii_hexdigit()).count();
            (digits(3, count).filter(|_| count > 0 && rest.get(3 + count) == Some(&b'}'))?, count + 4)
        }
        [b'U', ..] => (digits(2, 8)?, 10),
        _ => (digits(2, 4)?, 6),
    };
    let (code, length) = match (code, rest.get(6..8), digits(8, 4)) {
        (0xd800..=0xdbff, Some(br"\u"), Some(low @ 0xdc00..=0xdfff)) => {
            (0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00), 12)
        }
        _ => (code, length),
    };
    stands_for(code).map(|reads| Undone { length, reads, encoding: Encoding::Escape })
}

fn undo_entity(rest: &[u8]) -> Option<Undone> {
    let (radix, from) = if matches!(rest.get(2), Some(b'x' | b'X')) { (16, 3) } else { (10, 2) };
    let number = rest.get(from..rest.len().min(from + 7))?;
    let count = number.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let text = std::str::from_utf8(number.get(..count)?).ok()?;
    let reads = stands_for(u32::from_str_radix(text, radix).ok()?)?;
    let closing = usize::from(rest.get(from + count) == Some(&b';'));
    Some(Undone { length: from + count + closing, reads, encoding: Encoding::Entity })
}

fn undo_character(hay: &[u8], at: usize) -> Option<Undone> {
    let lead = *hay.get(at)?;
    let length = match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return None,
    };
    let character = std::str::from_utf8(hay.get(at..at + length)?).ok()?.chars().next()?;
    Some(Undone { length, reads: reads(character)?, encoding: Encoding::LookAlike })
}

/// How a code point reads; nothing for those that are neither ASCII nor pretend to be.
fn stands_for(code: u32) -> Option<Reads> {
    let character = char::from_u32(code)?;
    let ascii = u8::try_from(character).ok().filter(u8::is_ascii);
    ascii.map(Reads::As).or_else(|| reads(character))
}

fn odd_characters(hay: &[u8]) -> impl Iterator<Item = usize> {
    let blocks = hay.chunks(BLOCK).enumerate().filter(|(_, block)| !block.is_ascii());
    let leads = blocks.flat_map(|(index, block)| {
        let leads = block.iter().enumerate().filter(|(_, byte)| may_lead(**byte));
        leads.map(move |(at, _)| index * BLOCK + at)
    });
    leads.filter(|at| undo_character(hay, *at).is_some())
}

/// Whether characters of the table begin with this byte; those of most of the world's scripts do not.
fn may_lead(byte: u8) -> bool {
    matches!(byte, 0xc2 | 0xcd | 0xd8 | 0xe1 | 0xe2 | 0xe3 | 0xea | 0xef | 0xf0 | 0xf3)
}

/// The neighbourhoods of the places, put together where they touch.
fn regions(hay: &[u8], places: &[usize]) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for place in places {
        let start = token_start(hay, *place, regions.last().map_or(0, |last| last.end));
        match regions.last_mut() {
            // What is near it was taken in with the place before.
            Some(last) if place + NEAR <= last.end => {}
            Some(last) if start <= last.end => last.end = token_end(hay, *place),
            _ => regions.push(start..token_end(hay, *place)),
        }
    }
    regions
}

/// Some context, and then as far as there is no white space, but not before `floor`.
fn token_start(hay: &[u8], at: usize, floor: usize) -> usize {
    let from = at.saturating_sub(NEAR).max(floor);
    let far = hay.get(from.saturating_sub(FAR).max(floor)..from).unwrap_or_default();
    from - far.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count()
}

fn token_end(hay: &[u8], at: usize) -> usize {
    let from = hay.len().min(at + NEAR);
    let far = hay.get(from..hay.len().min(from + FAR)).unwrap_or_default();
    from + far.iter().take_while(|byte| !byte.is_ascii_whitespace()).count()
}

const BLOCK: usize = 128;
const ESCAPE: u8 = 0x1b;
/// Longer ones are not sent by anything that sets colours.
const MAX_SEQUENCE: usize = 40;
const NEAR: usize = 160;
const FAR: usize = 4096;

#[cfg(test)]
mod tests;
