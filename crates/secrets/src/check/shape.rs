//! Distinguishes random keys from names, fillers and parts of binary files in base64.

use std::ops::Range;

use base64::Engine as _;

use super::{STANDARD_ENGINE, entropy, without_first_words};

/// Upper-case letters, lower-case letters and digits, as in a long random token, but not a name made of words and numbers.
pub(super) fn is_random(secret: &[u8]) -> bool {
    let body = without_first_words(secret);
    let has = |kind: fn(&u8) -> bool| body.iter().any(kind);
    let has_all = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    has_all && entropy(body) > 2.5 && !is_slug(body)
}

/// `Bill-1234-of-2020`: every part is a word or a number.
fn is_slug(text: &[u8]) -> bool {
    let is_word = |part: &[u8]| {
        part.iter().all(u8::is_ascii_digit)
            || part.iter().all(u8::is_ascii_uppercase)
            || part.get(1..).is_some_and(|rest| rest.iter().all(u8::is_ascii_lowercase))
    };
    text.iter().any(|byte| matches!(byte, b'-' | b'_'))
        && text.split(|byte| matches!(byte, b'-' | b'_')).all(is_word)
}

/// `sk_live_xxxxxxxxxxxxxxxx`, `A3-XXXXXX-XXXXXX-XXXXX`: a prefix and one repeated character. A real key that is padded with a
/// repeated character has more other characters than a prefix.
pub(super) fn is_filler(secret: &[u8]) -> bool {
    let mut counts = [0_usize; 256];
    let mut signs = 0;
    for byte in secret {
        if !byte.is_ascii_alphanumeric() && *byte != b'*' {
            signs += 1;
        } else if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let most = counts.iter().max().copied().unwrap_or(0);
    secret.is_empty() || most >= FILLER && secret.len() - signs - most <= LONGEST_PREFIX
}

/// 44 bytes in base64, then at least forty characters. The bytes are 16 zeroes, an application number (8) and a digest (20). Their
/// base64 ends with `=`, so the two parts can be separated.
pub(super) fn is_twitter_bearer(token: &[u8]) -> bool {
    // The zero bytes of an image match at every position. This rejects them quickly.
    if memchr::memchr2(b'%', b'=', token).is_none() {
        return false;
    }
    let mut head = Vec::with_capacity(60);
    let mut rest = token;
    while head.len() < 60 {
        rest = match rest {
            [b'%', b'2', b'B' | b'b', rest @ ..] => put(&mut head, b'+', rest),
            [b'%', b'2', b'F' | b'f', rest @ ..] => put(&mut head, b'/', rest),
            [b'%', b'3', b'D' | b'd', rest @ ..] => put(&mut head, b'=', rest),
            [byte, rest @ ..] => put(&mut head, *byte, rest),
            [] => return false,
        };
    }
    let tail = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let bytes = STANDARD_ENGINE.decode(&head).unwrap_or_default();
    bytes.len() == 44
        && bytes.starts_with(&[0; 16])
        && tail >= 40
        && bytes.get(24..).is_some_and(|digest| entropy(digest) > 3.0)
}

fn put<'a>(head: &mut Vec<u8>, byte: u8, rest: &'a [u8]) -> &'a [u8] {
    head.push(byte);
    rest
}

/// Whether it is a separate token and not part of longer base64, which continues before it or contains zeroes. Checks only the
/// beginning, because other text may be joined to the end.
pub(super) fn is_apart(hay: &[u8], span: &Range<usize>) -> bool {
    let goes_on = hay.get(..span.start).is_some_and(|before| matches!(before.last(), Some(b'+' | b'/')));
    let head = hay.get(span.start..span.end.min(span.start + HEAD)).unwrap_or_default();
    !goes_on && !head.windows(ZEROES.len()).any(|part| part == ZEROES)
}

const FILLER: usize = 10;
/// Long enough for `vercel_blob_rw_` and similar prefixes.
const LONGEST_PREFIX: usize = 16;
/// The number of bytes that are checked.
const HEAD: usize = 84;
const ZEROES: &[u8] = b"AAAAA";
