//! Undoes disguises: escapes, entities, percent-encoding, look-alikes and control characters.
//!
//! Only the text around a disguise is decoded. Text without any is skipped in blocks.

use std::ops::Range;

use self::positions::{DisguiseKind, disguise_positions};
use crate::{
    encoded::byte_of_hex,
    finding::Encoding,
    look_alikes::{Appearance, appearance},
    split_tokens::is_token,
    view::{TextView, short},
};

mod positions;

/// Buffers that are reused between texts. A text full of percent signs needs large ones.
#[derive(Default)]
pub(crate) struct UnfoldBuffers {
    places: Vec<DisguisePlace>,
    view: TextView,
}

/// Calls `each` with the decoded form of every region that contains a disguise.
pub(crate) fn unfold(hay: &[u8], room: &mut UnfoldBuffers, mut each: impl FnMut(&TextView)) {
    let UnfoldBuffers { places, view } = room;
    places.clear();
    disguise_positions(hay, |at, odd| {
        let undone = match odd {
            DisguiseKind::Escape => undo_escape(hay, at),
            DisguiseKind::Control => undo_control(hay, at),
            DisguiseKind::Character => undo_character(hay, at),
        };
        places.extend(undone.map(|Undone { length, appearance, encoding }| DisguisePlace {
            at: short(at),
            length: short(length),
            appearance,
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

/// A disguised character and its position. Small, because there may be very many.
#[derive(Clone, Copy)]
struct DisguisePlace {
    at: u32,
    length: u32,
    appearance: Appearance,
    encoding: Encoding,
}

#[derive(Clone, Copy)]
struct Undone {
    length: usize,
    appearance: Appearance,
    encoding: Encoding,
}

impl DisguisePlace {
    /// Spaces are not part of tokens, and `%20` is common, like `\"` in JSON. They are decoded only next to another
    /// disguise, or if they hide the boundary of a token behind them.
    fn is_disguise(&self, hay: &[u8]) -> bool {
        match self.appearance {
            _ if self.encoding == Encoding::LookAlike => true,
            Appearance::Ascii(b' ') => begins_something(hay, self.at as usize + self.length as usize),
            Appearance::Ascii(b'"') => hay.get(self.at as usize + 1) != Some(&b'"'),
            _ => true,
        }
    }
}

/// Writes the decoded region. Returns the places behind it.
fn render<'p>(
    hay: &[u8],
    region: &Range<usize>,
    places: &'p [DisguisePlace],
    view: &mut TextView,
) -> &'p [DisguisePlace] {
    let mut at = region.start;
    let mut rest = places;
    while let [place, others @ ..] = rest {
        let from = place.at as usize;
        if from >= region.end {
            break;
        }
        rest = others;
        // A place inside another one was decoded with it.
        if from < at {
            continue;
        }
        if at < from {
            view.keep(hay.get(at..from).unwrap_or_default(), at);
        }
        let original = from..from + place.length as usize;
        match place.appearance {
            Appearance::Ascii(byte) => view.replace(&original, &[byte], place.encoding),
            Appearance::Invisible => view.replace(&original, &[], place.encoding),
        }
        at = original.end;
    }
    if at < region.end {
        view.keep(hay.get(at..region.end).unwrap_or_default(), at);
    }
    rest
}

/// Matches a control character and the sequence that it begins: colours, a character set, a link or a title.
fn undo_control(hay: &[u8], at: usize) -> Option<Undone> {
    let sequence = match hay.get(at..hay.len().min(at + MAX_SEQUENCE))? {
        [ESCAPE, b'[', rest @ ..] => colours_end(rest).map(|end| end + 2),
        [ESCAPE, b']' | b'P' | b'X' | b'^' | b'_', rest @ ..] => command_end(rest).map(|end| end + 2),
        [ESCAPE, b'(' | b')', b'0' | b'A' | b'B', ..] => Some(3),
        _ => None,
    };
    Some(Undone {
        length: sequence.unwrap_or(1),
        appearance: Appearance::Invisible,
        encoding: Encoding::LookAlike,
    })
}

/// The rest of a sequence of digits and signs, followed by one letter.
fn colours_end(rest: &[u8]) -> Option<usize> {
    let inner = rest.iter().take_while(|byte| (b'0'..=b'?').contains(*byte)).count();
    rest.get(inner).filter(|byte| (b'@'..=b'~').contains(*byte)).map(|_| inner + 1)
}

/// The rest of a sequence that ends with a bell or a terminator.
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
            Some(Undone { length: 3, appearance: Appearance::Ascii(byte), encoding: Encoding::Url })
        }
        [b'\\', b'/', ..] => {
            Some(Undone { length: 2, appearance: Appearance::Ascii(b'/'), encoding: Encoding::Escape })
        }
        [b'\\', b'x', high, low, ..] => {
            let byte = byte_of_hex([high, low])?;
            Some(Undone { length: 4, appearance: Appearance::Ascii(byte), encoding: Encoding::Escape })
        }
        [b'\\', b'u' | b'U', ..] => undo_unicode(rest),
        [b'\\', a @ b'0'..=b'1', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] => {
            let byte = (a - b'0') << 6 | (b - b'0') << 3 | (c - b'0');
            Some(Undone { length: 4, appearance: Appearance::Ascii(byte), encoding: Encoding::Escape })
        }
        // In JSON within JSON only: rules handle quotes that are escaped once, and those are common.
        [b'\\', b'"', ..] if at.checked_sub(1).and_then(|at| hay.get(at)) == Some(&b'\\') => {
            Some(Undone { length: 2, appearance: Appearance::Ascii(b'"'), encoding: Encoding::Escape })
        }
        [b'\\', letter @ (b'n' | b'r' | b't'), ..]
            if breaks_token(hay, at) || begins_something(hay, at + 2) =>
        {
            let byte = if letter == b't' { b'\t' } else { b'\n' };
            Some(Undone { length: 2, appearance: Appearance::Ascii(byte), encoding: Encoding::Escape })
        }
        // An escape that is escaped again, as in JSON within JSON.
        [b'\\', b'\\', b'\\' | b'/' | b'x' | b'u' | b'U' | b'n' | b'r' | b't' | b'0'..=b'1', ..] => {
            Some(Undone { length: 2, appearance: Appearance::Ascii(b'\\'), encoding: Encoding::Escape })
        }
        [b'&', b'#', ..] => undo_entity(rest),
        [b'&', b'q', b'u', b'o', b't', b';', ..] => {
            Some(Undone { length: 6, appearance: Appearance::Ascii(b'"'), encoding: Encoding::Entity })
        }
        _ => None,
    }
}

/// Whether an escaped line end is inside a token. Most are in sentences.
fn breaks_token(hay: &[u8], at: usize) -> bool {
    let touches = |at: Option<usize>| at.and_then(|at| hay.get(at)).is_some_and(|byte| is_token(*byte));
    touches(at.checked_sub(1)) && touches(at.checked_add(2))
}

/// Whether a token, or a name with a value, begins here and may need a boundary before it. Most words do not.
fn begins_something(hay: &[u8], at: usize) -> bool {
    let rest = hay.get(at..).unwrap_or_default();
    let length = rest.iter().take(SHORTEST).take_while(|byte| is_token(**byte)).count();
    let (run, behind) = rest.split_at_checked(length).unwrap_or_default();
    length == SHORTEST || run.contains(&b'=') || (length > 0 && behind.first() == Some(&b':'))
}

/// `\u002d`, `\u{2d}`, `\U0000002d`, and surrogate pairs of the first kind.
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
    stands_for(code).map(|appearance| Undone { length, appearance, encoding: Encoding::Escape })
}

fn undo_entity(rest: &[u8]) -> Option<Undone> {
    let (radix, from) = if matches!(rest.get(2), Some(b'x' | b'X')) { (16, 3) } else { (10, 2) };
    let number = rest.get(from..rest.len().min(from + 7))?;
    let count = number.iter().take_while(|byte| char::from(**byte).is_digit(radix)).count();
    let text = std::str::from_utf8(number.get(..count)?).ok()?;
    let appearance = stands_for(u32::from_str_radix(text, radix).ok()?)?;
    let closing = usize::from(rest.get(from + count) == Some(&b';'));
    Some(Undone { length: from + count + closing, appearance, encoding: Encoding::Entity })
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
    // Two single-character controls begin the same sequences as `ESC [` and `ESC ]`.
    let rest = hay.get(at + length..hay.len().min(at + MAX_SEQUENCE)).unwrap_or_default();
    let sequence = match character {
        '\u{9b}' => colours_end(rest),
        '\u{9d}' => command_end(rest),
        _ => None,
    };
    let length = length + sequence.unwrap_or(0);
    Some(Undone { length, appearance: appearance(character)?, encoding: Encoding::LookAlike })
}

/// The reading of a code point; `None` if it is neither ASCII nor imitates it.
fn stands_for(code: u32) -> Option<Appearance> {
    let character = char::from_u32(code)?;
    let ascii = u8::try_from(character).ok().filter(u8::is_ascii);
    ascii.map(Appearance::Ascii).or_else(|| appearance(character))
}

/// The regions around the places, merged if they touch.
fn regions(hay: &[u8], places: &[DisguisePlace]) -> Vec<Range<usize>> {
    let mut regions: Vec<Range<usize>> = Vec::new();
    for at in places.iter().filter(|place| place.is_disguise(hay)).map(|place| place.at as usize) {
        let floor = regions.last().map_or(0, |last| last.end);
        // The region of the previous place already covers it.
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

/// Some context, then back to the previous white space, but not before `floor`. Includes that white space; otherwise
/// the region would appear to begin a line.
fn token_start(hay: &[u8], at: usize, floor: usize) -> usize {
    let from = at.saturating_sub(NEAR).max(floor);
    let far = hay.get(from.saturating_sub(FAR).max(floor)..from).unwrap_or_default();
    let dense = far.iter().rev().take_while(|byte| !byte.is_ascii_whitespace()).count();
    from - far.len().min(dense + 1)
}

/// The number of bytes before the next white space. Blocks without any are skipped at once.
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
/// Long enough for the URL of a link.
const MAX_SEQUENCE: usize = 2048;
/// Tokens that need a boundary are never shorter.
const SHORTEST: usize = 12;
const NEAR: usize = 160;
const FAR: usize = 4096;

#[cfg(test)]
mod tests;
