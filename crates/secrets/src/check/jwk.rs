//! Recognises members of a JSON Web Key. One of its members is `kty`, the type of the key, in any order.

use std::ops::Range;

use memchr::memmem;

/// `value` is between quotes. Reads its object in both directions, and ignores neighbouring objects.
pub(super) fn is_member(hay: &[u8], value: &Range<usize>) -> bool {
    let before = hay.get(value.start.saturating_sub(REACH)..value.start).unwrap_or_default();
    let behind = hay.get(value.end..hay.len().min(value.end + REACH)).unwrap_or_default();
    // Searching the word is far cheaper than parsing, and usually it is absent.
    if !names_kind(before) && !names_kind(behind) {
        return false;
    }
    // Skip the quotes of the value itself.
    let before = before.strip_suffix(b"\"").or_else(|| before.strip_suffix(b"'")).unwrap_or(before);
    let quote = behind.iter().position(|byte| *byte != b'\\').map_or(0, |at| at + 1);
    let behind = behind.get(quote..).unwrap_or_default();
    let own_before = before.len() - members(before.iter().rev(), b'}');
    let own_behind = members(behind.iter(), b'{');
    before.get(own_before..).is_some_and(names_kind) || behind.get(..own_behind).is_some_and(names_kind)
}

/// Whether one of the members is `"kty": …`, also escaped in a string: `\"kty\"`.
fn names_kind(members: &[u8]) -> bool {
    memmem::find_iter(members, b"kty").any(|at| {
        let opens = members.get(..at).is_some_and(|text| text.ends_with(b"\"") || text.ends_with(b"'"));
        let behind = members.get(at + 3..).unwrap_or_default();
        let sign = behind.iter().find(|byte| !matches!(byte, b'\\' | b'"' | b'\'' | b' '));
        opens && sign == Some(&b':')
    })
}

/// The length of the object in this direction. `opens` is the bracket that begins an inner object.
fn members<'a>(bytes: impl Iterator<Item = &'a u8>, opens: u8) -> usize {
    let (mut depth, mut quote, mut length) = (0_usize, None, 0);
    for byte in bytes {
        match (quote, byte) {
            (Some(open), byte) if open == byte => quote = None,
            (None, b'"' | b'\'') => quote = Some(byte),
            (None, b'{' | b'}') if *byte == opens => depth += 1,
            (None, b'{' | b'}') => match depth.checked_sub(1) {
                Some(outer) => depth = outer,
                None => return length,
            },
            _ => {}
        }
        length += 1;
    }
    length
}

/// Enough for all members of a key of 4,096 bits.
const REACH: usize = 4096;
