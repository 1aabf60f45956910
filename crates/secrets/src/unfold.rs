//! Escapes, entities, percent signs, look-alikes and controls: how does the text read once they are undone?
//!
//! Only the neighbourhood of such a thing is undone. Text without any is passed over in blocks.

use std::ops::Range;

use self::odd::{Odd, odd_places};
use crate::{
    coded::byte_of_hex,
    finding::Encoding,
    fold::{Reads, reads},
    join::is_token,
    view::{View, short},
};

mod odd;

/// Room to work in, kept from one text to the next: for a text full of percent signs it is large.
#[derive(Default)]
pub(crate) struct Room {
    places: Vec<Place>,
    view: View,
}

/// Calls `each` with every neighbourhood that reads otherwise than it is written.
pub(crate) fn unfold(hay: &[u8], room: &mut Room, mut each: impl FnMut(&View)) {
    let Room { places, view } = room;
    places.clear();
    odd_places(hay, |at, odd| {
        let undone = match odd {
            Odd::Escape => undo_escape(hay, at),
            Odd::Control => undo_control(hay, at),
            Odd::Character => undo_character(hay, at),
        };
        places.extend(undone.map(|Undone { length, reads, encoding }| Place {
            at: short(at),
            length: short(length),
            reads,
            encoding,
        }));
    });
    let mut rest = places.as_slice();
    for region in regions(hay, places) {
        view.clear();
        rest = render(hay, &region, rest, view);
        each(view);
    }
}

/// Something that reads otherwise than it is written, and where. Small, for there may be very many.
#[derive(Clone, Copy)]
struct Place {
    at: u32,
    length: u32,
    reads: Reads,
    encoding: Encoding,
}

#[derive(Clone, Copy)]
struct Undone {
    length: usize,
    reads: Reads,
    encoding: Encoding,
}

impl Place {
    /// A space is part of no token, and `%20` is everywhere, as `\"` is in JSON. They are undone where something else is, too,
    /// or where something begins behind the space whose border they would hide.
    fn is_disguise(&self, hay: &[u8]) -> bool {
        match self.reads {
            _ if self.encoding == Encoding::LookAlike => true,
            Reads::As(b' ') => begins_something(hay, self.at as usize + self.length as usize),
            Reads::As(b'"') => hay.get(self.at as usize + 1) != Some(&b'"'),
            _ => true,
        }
    }
}

/// Writes how a region reads. Gives back the places behind it.
fn render<'p>(hay: &[u8], region: &Range<usize>, places: &'p [Place], view: &mut View) -> &'p [Place] {
    let mut at = region.start;
    let mut rest = places;
    while let [place, others @ ..] = rest {
        let from = place.at as usize;
        if from >= region.end {
            break;
        }
        rest = others;
        // What lies within another one was undone with it.
        if from < at {
            continue;
        }
        if at < from {
            view.keep(hay.get(at..from).unwrap_or_default(), at);
        }
        let original = from..from + place.length as usize;
        match place.reads {
            Reads::As(byte) => view.replace(&original, &[byte], place.encoding),
            Reads::AsNothing => view.replace(&original, &[], place.encoding),
        }
        at = original.end;
    }
    if at < region.end {
        view.keep(hay.get(at..region.end).unwrap_or_default(), at);
    }
    rest
}

/// A control, and what belongs to it where it begins a sequence: colours, an alphabet, a link or a title.
fn undo_control(hay: &[u8], at: usize) -> Option<Undone> {
    let sequence = match hay.get(at..hay.len().min(at + MAX_SEQUENCE))? {
        [ESCAPE, b'[', rest @ ..] => colours_end(rest).map(|end| end + 2),
        [ESCAPE, b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => command_end(rest).map(|end| end + 2),
        [ESCAPE, b'(' | b')', b'0' | b'A' | b'B', ..] => Some(3),
        _ => None,
    };
    Some(Undone { length: sequence.unwrap_or(1), reads: Reads::AsNothing, encoding: Encoding::LookAlike })
}

/// How long the rest of a sequence is that has any number of digits and signs, and then one letter.
fn colours_end(rest: &[u8]) -> Option<usize> {
    let inner = rest.iter().take_while(|byte| (b'0'..=b'?').contains(*byte)).count();
    rest.get(inner).filter(|byte| (b'@'..=b'~').contains(*byte)).map(|_| inner + 1)
}

/// How long the rest of a sequence is that goes on up to a bell or a terminator.
fn command_end(rest: &[u8]) -> Option<usize> {
    let end = memchr::memchr2(BELL, ESCAPE, rest)?;
    match rest.get(end..)? {
        [BELL, ..] => Some(end + 1),
        [ESCAPE, b'\\', ..] => Some(end + 2),
        _ => None,
    }
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
        // In JSON within JSON only: a rule that knows of quotes knows of one escaped once, and those are everywhere.
        [b'\\', b'"', ..] if at.checked_sub(1).and_then(|at| hay.get(at)) == Some(&b'\\') => {
            Some(Undone { length: 2, reads: Reads::As(b'"'), encoding: Encoding::Escape })
        }
        [b'\\', letter @ (b'n' | b'r' | b't'), ..]
            if breaks_token(hay, at) || begins_something(hay, at + 2) =>
        {
            let byte = if letter == b't' { b'\t' } else { b'\n' };
            Some(Undone { length: 2, reads: Reads::As(byte), encoding: Encoding::Escape })
        }
        // An escape that was escaped once more, as in JSON within JSON.
        [b'\\', b'\\', b'\\' | b'/' | b'x' | b'u' | b'U' | b'n' | b'r' | b't' | b'0'..=b'1', ..] => {
            Some(Undone { length: 2, reads: Reads::As(b'\\'), encoding: Encoding::Escape })
        }
        [b'&', b'#', ..] => undo_entity(rest),
        [b'&', b'q', b'u', b'o', b't', b';', ..] => {
            Some(Undone { length: 6, reads: Reads::As(b'"'), encoding: Encoding::Entity })
        }
        _ => None,
    }
}

/// Whether a line end that is written as an escape of two characters stands within a token. Most stand in sentences.
fn breaks_token(hay: &[u8], at: usize) -> bool {
    let touches = |at: Option<usize>| at.and_then(|at| hay.get(at)).is_some_and(|byte| is_token(*byte));
    touches(at.checked_sub(1)) && touches(at.checked_add(2))
}

/// Whether something begins here that may ask for a border before it: a token, or a name and its value. Most words do not.
fn begins_something(hay: &[u8], at: usize) -> bool {
    let rest = hay.get(at..).unwrap_or_default();
    let length = rest.iter().take(SHORTEST).take_while(|byte| is_token(**byte)).count();
    let (run, behind) = rest.split_at_checked(length).unwrap_or_default();
    length == SHORTEST || run.contains(&b'=') || (length > 0 && behind.first() == Some(&b':'))
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
    // Two controls of one character begin what `ESC [` and `ESC ]` begin.
    let rest = hay.get(at + length..hay.len().min(at + MAX_SEQUENCE)).unwrap_or_default();
    let sequence = match character {
        '\u{9b}' => colours_end(rest),
        '\u{9d}' => command_end(rest),
        _ => None,
    };
    let length = length + sequence.unwrap_or(0);
    Some(Undone { length, reads: reads(character)?, encoding: Encoding::LookAlike })
}

/// How a code point reads; nothing for those that are neither ASCII nor pretend to be.
fn stands_for(code: u32) -> Option<Reads> {
    let character = char::from_u32(code)?;
    let ascii = u8::try_from(character).ok().filter(u8::is_ascii);
    ascii.map(Reads::As).or_else(|| reads(character))
}

/// The neighbourhoods of the places, put together where they touch.
fn regions(hay: &[u8], places: &[Place]) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for at in places.iter().filter(|place| place.is_disguise(hay)).map(|place| place.at as usize) {
        let floor = regions.last().map_or(0, |last| last.end);
        // What is near it was taken in with the place before.
        if at + NEAR <= floor {
            continue;
        }
        let start = token_start(hay, at, floor);
        match regions.last_mut() {
            Some(last) if start <= last.end => last.end = token_end(hay, at),
            _ => regions.push(start..token_end(hay, at)),
        }
    }
    regions
}

/// Some context, and then as far as there is no white space, but not before `floor`. Begins with that white space, for
/// where a text begins a line does.
fn token_start(hay: &[u8], at: usize, floor: usize) -> usize {
    let from = at.saturating_sub(NEAR).max(floor);
    let far = hay.get(from.saturating_sub(FAR).max(floor)..from).unwrap_or_default();
    let dense = far.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
    from - far.len().min(dense + 1)
}

/// How many bytes there are before white space. Whole blocks without any are passed over at once.
fn until_space(bytes: &[u8]) -> usize {
    let is_dense = |block: &&[u8]| block.iter().copied().fold(u8::MAX, u8::min) > b' ';
    let dense = bytes.chunks_exact(BLOCK).take_while(is_dense).count() * BLOCK;
    let rest = bytes.get(dense..).unwrap_or_default();
    dense + rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).count()
}

fn token_end(hay: &[u8], at: usize) -> usize {
    let from = hay.len().min(at + NEAR);
    let far = hay.get(from..hay.len().min(from + FAR)).unwrap_or_default();
    from + until_space(far)
}

const BLOCK: usize = 128;
const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;
/// As long as the address of a link.
const MAX_SEQUENCE: usize = 2048;
/// No token that asks for a border is shorter.
const SHORTEST: usize = 12;
const NEAR: usize = 160;
const FAR: usize = 4096;

#[cfg(test)]
mod tests;
