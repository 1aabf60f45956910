//! Finds the positions where a disguise may begin.

use crate::blocks::{BLOCK, ByteBlock, each_position, is_one_of};

/// The kind of disguise that may begin with a byte.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum DisguiseKind {
    /// An escape, percent-encoding or an entity.
    Escape,
    /// A control character without layout effect: a terminal shows nothing for it.
    Control,
    /// A character of the look-alike table.
    Character,
}

/// Calls `each` with every such position, in order.
pub(super) fn disguise_positions(hay: &[u8], mut each: impl FnMut(usize, DisguiseKind)) {
    each_position(hay, odd_bytes, |at| {
        if let Some(byte) = hay.get(at) {
            each(at, odd_byte(*byte));
        }
    });
}

/// One for each odd byte. `next` is the same block shifted by one byte: `&` is frequent in some languages and begins an
/// entity only before two bytes.
fn odd_bytes(block: &ByteBlock, next: &ByteBlock) -> ByteBlock {
    let mut odd = [0; BLOCK];
    for ((odd, byte), next) in odd.iter_mut().zip(block).zip(next) {
        let is_entity = is_one_of(*byte, [b'&']) & is_one_of(*next, *b"#q");
        let lays_out = is_one_of(*byte, *b"\t\n\r");
        let is_control = (u8::from(*byte < b' ') & !lays_out) | is_one_of(*byte, [0x7f]);
        *odd = is_one_of(*byte, *b"%\\") | is_entity | is_control;
    }
    if !block.is_ascii() {
        for (odd, byte) in odd.iter_mut().zip(block) {
            *odd |= is_one_of(*byte, LEADS);
        }
    }
    odd
}

fn odd_byte(byte: u8) -> DisguiseKind {
    match byte {
        b'%' | b'\\' | b'&' => DisguiseKind::Escape,
        _ if byte.is_ascii() => DisguiseKind::Control,
        _ => DisguiseKind::Character,
    }
}

/// The lead bytes of all characters in the table; most scripts use other ones.
const LEADS: [u8; 11] = [0xc2, 0xcc, 0xcd, 0xd8, 0xe1, 0xe2, 0xe3, 0xea, 0xef, 0xf0, 0xf3];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The same, byte by byte.
    fn one_by_one(hay: &[u8]) -> Vec<usize> {
        let is_odd = |at: &usize| match hay.get(*at..).unwrap_or_default() {
            [b'%' | b'\\', ..] | [b'&', b'#' | b'q', ..] => true,
            [b'\t' | b'\n' | b'\r', ..] | [] => false,
            [byte, ..] => byte.is_ascii_control() || LEADS.contains(byte),
        };
        (0..hay.len()).filter(is_odd).collect()
    }

    #[track_caller]
    fn check(hay: &[u8]) {
        let mut places = Vec::new();
        disguise_positions(hay, |at, _| places.push(at));
        assert_eq!(places, one_by_one(hay), "{hay:?}");
    }

    #[test]
    fn every_byte_is_found_at_every_position() {
        for byte in 0..=u8::MAX {
            for length in [1, 63, 64, 65, 128, 129] {
                for at in [0, 1, 62, 63, 64, 127, 128].into_iter().filter(|at| *at < length) {
                    let mut hay = vec![b'#'; length];
                    hay[at] = byte;
                    check(&hay);
                }
            }
        }
        check(b"");
    }

    proptest! {
        #[test]
        fn any_mixture_is_found(hay in prop::collection::vec(prop::sample::select(&b"%\\&#qa \n\r\t\x0b\x7f\0\xc2\xe2\xbf"[..]), 0..300)) {
            check(&hay);
        }
    }
}
