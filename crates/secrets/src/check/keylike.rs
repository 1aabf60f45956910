//! Tells a random key from names, paths, addresses, versions and placeholders.
//!
//! The measure is the *noise*: characters that belong neither to a word nor to a number between signs.

use super::{entropy, placeholder::is_placeholder};

/// Whether the value looks generated: long enough, random, and not made of words and numbers.
pub(super) fn is_key(value: &[u8]) -> bool {
    let letters_and_digits = value.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    (MIN_KEY..=MAX_KEY).contains(&value.len())
        && (value.len() >= MIN_LETTERS || value.iter().any(u8::is_ascii_digit))
        && value.iter().all(|byte| byte.is_ascii_graphic() && !b"\"'`<>\\()[]{}".contains(byte))
        && !is_pair(value)
        && entropy(value) >= MIN_ENTROPY
        && !is_other(value)
        && !is_placeholder(value)
        && letters_and_digits * 4 >= value.len() * 3
        && (is_uuid(value) || is_noisy(noise(value), letters_and_digits))
}

fn is_noisy(noise: usize, of: usize) -> bool {
    noise >= MIN_NOISE && noise * 5 >= of * 2
}

/// An address, a path, a digest, an email, a public key, a reference to something else.
fn is_other(value: &[u8]) -> bool {
    let has = |part: &[u8]| memchr::memmem::find(value, part).is_some();
    let is_path = match value {
        [b'/' | b'~', rest @ ..] | [b'.', b'/', rest @ ..] => rest.contains(&b'/'),
        _ => false,
    };
    let lower: Vec<u8> = value.iter().take(8).map(u8::to_ascii_lowercase).collect();
    let is_digest = DIGESTS.iter().any(|prefix| lower.starts_with(prefix));
    let is_email = memchr::memchr(b'@', value)
        .is_some_and(|at| value.get(at..).is_some_and(|host| host.contains(&b'.')));
    has(b"://")
        || has(b"::")
        || has(b"->")
        || is_path
        || is_digest
        || is_email
        || is_alphabet(value)
        || PUBLIC_KEYS.iter().any(|head| value.starts_with(head))
}

/// `name=value` within the value: another name applies to the secret. Reads only the beginning of the value.
pub(super) fn is_pair(value: &[u8]) -> bool {
    let head = value.get(..value.len().min(MAX_PAIR_NAME)).unwrap_or(value);
    let Some(at) = memchr::memchr(b'=', head) else { return false };
    let (name, behind) = value.split_at(at);
    let is_name = noise(name) == 0 || name.to_ascii_lowercase().ends_with(b"key");
    is_name && behind.iter().any(|byte| *byte != b'=')
}

/// Whether a value can be a token: no blanks, quotes or brackets as in code, and no sign twice in a row as in a mask.
pub(super) fn has_token_alphabet(value: &[u8]) -> bool {
    let is_code = |byte: &u8| !byte.is_ascii_graphic() || b"()[]{}<>;\"'`\\".contains(byte);
    let is_mask = |pair: &[u8; 2]| pair[0] == pair[1] && b"*#?!@$%^&".contains(&pair[0]);
    !value.iter().any(is_code) && !value.array_windows().any(is_mask)
}

/// Whether one character alone is of another kind than the rest: a `?` in a token, a `g` among hexadecimal digits, a
/// capital among small letters.
///
/// A generator that uses a kind of character uses it again. In 24 characters, a kind that makes up a quarter of the alphabet
/// occurs at most once with a chance below 1 %. Such a value is a key with a wrong character, or it was not generated.
pub(super) fn has_stray(value: &[u8]) -> bool {
    let is_single =
        |text: &[u8], kind: fn(&u8) -> bool| text.iter().filter(|byte| kind(byte)).take(2).count() == 1;
    // A prefix such as `0x`, `sk_` or `acme_live_` has letters of another kind.
    let head = value.get(..value.len().min(MAX_NAMED_PREFIX)).unwrap_or_default();
    let sign = head.iter().rposition(|byte| matches!(byte, b'_' | b'-' | b'.' | b':'));
    let body = value.get(sign.map_or(MAX_PREFIX, |sign| MAX_PREFIX.max(sign + 1))..).unwrap_or_default();
    let kinds: [fn(&u8) -> bool; 3] = [u8::is_ascii_uppercase, u8::is_ascii_lowercase, |byte| {
        byte.is_ascii_alphabetic() && !byte.is_ascii_hexdigit()
    }];
    value.len() >= MIN_EVEN
        && is_single(value, |byte| !byte.is_ascii_alphanumeric() && !TOKEN_SIGNS.contains(byte))
        || body.len() >= MIN_EVEN && kinds.into_iter().any(|kind| is_single(body, kind))
}

/// Whether a generated value can have this length: whole bytes in hexadecimal digits or in base64, or an even number of
/// characters. A key that lost one character cannot.
pub(super) fn has_key_length(value: &[u8]) -> bool {
    value.len().is_multiple_of(2) || UNPADDED.contains(&value.len())
}

/// `ABCDEFGHIJ`, `0123456789`: the alphabet itself, as encoders have it.
fn is_alphabet(value: &[u8]) -> bool {
    let runs = value.array_windows().filter(|[a, b]| a.checked_add(1) == Some(*b)).count();
    let is_once = |(at, byte): (usize, &u8)| !value.iter().skip(at + 1).any(|other| other == byte);
    runs * 10 >= value.len() * 9 && value.iter().enumerate().all(is_once)
}

/// 8, 4, 4, 4 and 12 letters and digits.
fn is_uuid(value: &[u8]) -> bool {
    let lengths: Vec<usize> = value.split(|byte| *byte == b'-').map(<[u8]>::len).collect();
    lengths == [8, 4, 4, 4, 12] && value.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

/// How many letters and digits belong to no word and no number.
pub(crate) fn noise(value: &[u8]) -> usize {
    value.split(|byte| !byte.is_ascii_alphanumeric()).map(noise_of_part).sum()
}

fn noise_of_part(part: &[u8]) -> usize {
    let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == part.len() {
        return if digits >= LONG_NUMBER { digits } else { 0 };
    }
    let words = word_lengths(part);
    if digits == 0 {
        // Letters alone count as noise unless they can be pronounced.
        return if part.len() < LONG_WORD || words * 3 >= part.len() { 0 } else { part.len() - words };
    }
    // Words have no digits inside; a part that changes often between letters and digits is random.
    let changes = part.array_windows().filter(|[a, b]| a.is_ascii_digit() != b.is_ascii_digit()).count();
    let is_random = changes >= MIN_CHANGES || changes + 1 == MIN_CHANGES && words == 0;
    if is_random && part.len() >= MIN_CHANGING {
        return part.len();
    }
    let letters_first = part.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let digits_first = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_numbered = letters_first > 0 && letters_first + digits == part.len() && digits <= 4;
    let is_unit = digits_first == digits && part.len() - digits <= 4 && digits <= 8;
    let is_name = words == letters_first || letters_first <= 4;
    if is_numbered && is_name || is_unit && part.len() <= 8 || part.len() <= 3 {
        return 0;
    }
    part.len() - words
}

/// How many letters of a part belong to words, as in `camelCase` or `HTTPServer`.
fn word_lengths(part: &[u8]) -> usize {
    let (mut total, mut start) = (0, 0);
    let mut previous = b' ';
    for (at, byte) in part.iter().enumerate() {
        let next_is_small = part.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        let begins = byte.is_ascii_uppercase()
            && (previous.is_ascii_lowercase() || previous.is_ascii_uppercase() && next_is_small)
            || byte.is_ascii_digit() != previous.is_ascii_digit();
        if begins {
            total += word_length(part.get(start..at).unwrap_or_default());
            start = at;
        }
        previous = *byte;
    }
    total + word_length(part.get(start..).unwrap_or_default())
}

/// Its length, if it can be pronounced; nothing otherwise.
fn word_length(word: &[u8]) -> usize {
    if !word.first().is_some_and(u8::is_ascii_alphabetic) {
        return 0;
    }
    let is_vowel = |byte: &u8| matches!(byte.to_ascii_lowercase(), b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let longest = word.split(is_vowel).map(<[u8]>::len).max().unwrap_or(0);
    let vowels = word.iter().filter(|byte| is_vowel(byte) && !matches!(byte, b'y' | b'Y')).count();
    let is_word = word.len() >= 4 && vowels * 6 >= word.len() && longest <= 4;
    if is_word { word.len() } else { 0 }
}

pub(super) const MIN_KEY: usize = 11;
/// A key of letters alone is longer than a word.
pub(super) const MIN_LETTERS: usize = 20;
const MAX_KEY: usize = 2000;
/// The longest name in `name=value`.
const MAX_PAIR_NAME: usize = 25;
/// Changes between letters and digits within one part.
const MIN_CHANGES: usize = 4;
const MIN_CHANGING: usize = 11;
const MIN_ENTROPY: f64 = 2.7;
const MIN_NOISE: usize = 8;
/// Shorter ones are times and ids.
const LONG_NUMBER: usize = 20;
const LONG_WORD: usize = 16;
/// The longest prefix of a token that does not count, without a sign behind it and with one.
const MAX_PREFIX: usize = 4;
const MAX_NAMED_PREFIX: usize = 12;
const MIN_EVEN: usize = 24;
/// The signs of tokens: RFC 6750, `id:token`, `id|token` and `%3D`.
const TOKEN_SIGNS: &[u8] = b"-._~+/=:|%";
/// The lengths of 20 and 32 bytes in base64 without padding.
const UNPADDED: &[usize] = &[27, 43];
/// How public keys begin, of SSH and in base64.
const PUBLIC_KEYS: &[&[u8]] = &[
    b"AAAAB3NzaC1",
    b"AAAAC3NzaC1",
    b"AAAAE2VjZHNh",
    b"MFkwEwYHKoZIzj0",
    b"MIIBIjANBgkqh",
    b"MIICIjANBgkqh",
    b"MIGfMA0GCSqGSIb3",
    b"MCowBQYDK2V",
];
const DIGESTS: &[&[u8]] = &[
    b"sha1-",
    b"sha1:",
    b"sha256-",
    b"sha256:",
    b"sha384-",
    b"sha384:",
    b"sha512-",
    b"sha512:",
    b"md5-",
    b"md5:",
    b"arn:",
    b"urn:",
    b"data:",
    b"projects",
];

#[cfg(test)]
mod tests {
    use super::{has_key_length, has_stray, is_key};

    #[track_caller]
    fn check(values: &[&str], expect: bool) {
        for value in values {
            assert_eq!(is_key(value.as_bytes()), expect, "{value}");
        }
    }

    #[test]
    fn generated_values_are_keys() {
        check(
            &[
                "Zf3D0LXCM3EIMbgJpUNnkRtOfOueHznB",
                "dafa7817-e246-48f3-91a7-e87653d587b8",
                "951bc382db9cfee29c68634761dd6e19",
                "abcdef1234567890",
                "3fea6af1349166ea",
                "live_q7Zk2mVx9TbLw4Rs8NyPd3Hc",
                "0tZn+7QQCxphpHwTm7/dC3LpP5JGIbYl3PK8Sy81R+P2",
                "AbCd1234EfGh5678IjKl9012",
                "yzmil2yrmu5qfd09",
                "z9y8x7w6v5u",
                "q7Zk2mVx=9TbLw4Rs8NyPd3Hc",
            ],
            true,
        );
    }

    #[test]
    fn names_paths_and_versions_are_not_keys() {
        check(
            &[
                "base64EncodedString2",
                "rc0.15.0_20231217_1420-SNAPSHOT",
                "text-embedding-3-small-v2",
                "https://auth1.internal/token/1a2b3c4d5e6f7a8b",
                "PBKDF2PasswordHasher",
                "/run/secrets/3f9a8b7c6d5e4f3a2b1c/db",
                "sha256-3f9a8b7c6d5e4f3a2b1c3f9a8b7c6d5e",
                "getHTTPSProxyURLForXMLDocument",
                "kubernetes.io/service-account-token",
                "application_secret_key_v2",
                "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
                "ann7f3k9x2q@mail.internal",
                "std::collections::HashMap2b3c",
                "shorter2026",
                "token=4f9c1e7ab2d863f05c9e7ab2d8",
                "2026-01-02T03:04:05.678Z",
                "xxxxxxxxxxxxxxxxxxxxxxxx",
                "YOUR_API_KEY_HERE_1234",
                "system.serviceaccount.v1beta1",
                "id-Gost28147-89-None-KeyMeshing",
            ],
            false,
        );
    }

    #[test]
    fn one_character_of_another_kind_is_a_stray() {
        for value in [
            "MpDWS14xuMP2E1FM?ufXKajIsodvYiuGT9lWll8g",
            "5488620aa9073q09f1a16e2b1dc357b6",
            "81a1411a7e276fd88819df3137eJ406e0f281f8a",
            "LY027C40U2KNNZLFO1wEU3XQZ13LW515",
        ] {
            assert!(has_stray(value.as_bytes()), "{value}");
        }
        for value in [
            "Zf3D0LXCM3EIMbgJpUNnkRtOfOueHznB",
            "dafa7817-e246-48f3-91a7-e87653d587b8",
            "951bc382db9cfee29c68634761dd6e19",
            "0x951bc382db9cfee29c68634761dd6e19",
            "sk_951bc382db9cfee29c68634761dd6e19",
            "relay_951bc382db9cfee29c68634761dd6e19",
            "acme_live_951bc382db9cfee29c68634761dd6e19",
            "aB3$dE5fG7hI9jK1lM2n",
            "q7Zk!mVx9#bLw4Rs$NyPd3Hc&Yt5",
            "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw",
        ] {
            assert!(!has_stray(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn a_key_that_lost_a_character_has_an_odd_length() {
        assert!(has_key_length(&[b'a'; 32]) && has_key_length(&[b'a'; 43]));
        assert!(!has_key_length(&[b'a'; 31]) && !has_key_length(&[b'a'; 39]));
    }
}
