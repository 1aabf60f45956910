//! Recognises random data that is not secret: a digest, a commit, or the data of an image.
//!
//! An attacker can write `sha256:` or `;base64,` before a key, so the name alone does not suffice.

use super::decode;

pub(super) fn begins_at(hay: &[u8], start: usize) -> bool {
    let before = hay.get(start.saturating_sub(LONGEST_NAME)..start).unwrap_or_default();
    // Reads a bounded part, because a text can contain many such names.
    let value = hay.get(start..hay.len().min(start + LONGEST_VALUE)).unwrap_or_default();
    if before.ends_with(b"base64,") {
        return is_image(value);
    }
    is_commit(before, value) || DIGESTS.iter().any(|digest| digest.is_named(before, value))
}

/// `acme/action@…`, `repository#…`, `commit …`, with the exact length of a commit.
fn is_commit(before: &[u8], value: &[u8]) -> bool {
    let hex = value.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let goes_on = value.get(hex).is_some_and(|byte| is_base64(*byte));
    let is_named = [&b"@"[..], b"#", b"commit ", b"commit/"].iter().any(|name| before.ends_with(name));
    is_named && hex == 40 && !goes_on
}

struct NamedDigest {
    name: &'static [u8],
    bytes: usize,
}

impl NamedDigest {
    /// `sha256:…`, or `sha512-…`, whose name consists of letters of base64 and may be a part of the value.
    fn is_named(&self, before: &[u8], value: &[u8]) -> bool {
        let is_before = before.strip_suffix(b":").or_else(|| before.strip_suffix(b"-"));
        let body = if is_before.is_some_and(|name| name.ends_with(self.name)) {
            Some(value)
        } else {
            value.strip_prefix(self.name).and_then(|rest| rest.strip_prefix(b"-"))
        };
        body.is_some_and(|body| self.is_as_long_as(body))
    }

    /// In hex or in base64, padded or not, and nothing after it.
    fn is_as_long_as(&self, body: &[u8]) -> bool {
        let in_hex = body.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let in_base64 = body.iter().take_while(|byte| is_base64(**byte)).count();
        if in_hex == in_base64 && in_hex == self.bytes * 2 {
            return true;
        }
        let padding = body.iter().skip(in_base64).take_while(|byte| **byte == b'=').count();
        let needed = (self.bytes * 8).div_ceil(6);
        in_base64 == needed && (padding == 0 || needed + padding == needed.next_multiple_of(4))
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

/// Whether the data begins like an image, a font or a drawing.
fn is_image(value: &[u8]) -> bool {
    let head = value.get(..HEAD).and_then(decode).unwrap_or_default();
    IMAGES.iter().any(|(at, magic)| head.get(*at..).is_some_and(|rest| rest.starts_with(magic)))
}

const DIGESTS: [NamedDigest; 4] = [
    NamedDigest { name: b"sha1", bytes: 20 },
    NamedDigest { name: b"sha256", bytes: 32 },
    NamedDigest { name: b"sha384", bytes: 48 },
    NamedDigest { name: b"sha512", bytes: 64 },
];
/// The length of `sha512:` and of `base64,`.
const LONGEST_NAME: usize = 7;
/// `sha512-` and 128 digits, plus a few bytes to see their end.
const LONGEST_VALUE: usize = 160;
/// The length of the longest beginning below.
const HEAD: usize = 24;
const IMAGES: &[(usize, &[u8])] = &[
    (0, b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"),
    (0, b"\xff\xd8\xff"),
    (0, b"GIF87a"),
    (0, b"GIF89a"),
    (8, b"WEBP"),
    (4, b"ftypavif"),
    (0, b"\0\0\x01\0"),
    (0, b"<svg "),
    (0, b"<?xml "),
    (0, b"wOFF"),
    (0, b"wOF2"),
];

#[cfg(test)]
mod tests {
    use base64::{Engine as _, prelude::BASE64_STANDARD};

    use super::*;

    #[track_caller]
    fn check(text: &str, expect: bool) {
        let marked = text.find('|').unwrap();
        assert_eq!(begins_at(text.replace('|', "").as_bytes(), marked), expect, "{text}");
    }

    #[test]
    fn a_digest_has_its_length() {
        let hex = |digits: usize| "9f".repeat(digits / 2);
        check(&format!("sha256:|{}", hex(64)), true);
        check(&format!("sha256:|{} more", hex(64)), true);
        check(&format!("sha1:|{}\"", hex(40)), true);
        check(&format!("sha512-|{}", hex(128)), true);
        check(&format!("|sha384-{}", "Ab3+".repeat(16)), true);
        check(&format!("|sha512-{}==,", "Z".repeat(86)), true);
        check(&format!("|sha512-{}", "Z".repeat(86)), true);
        for (name, digits) in
            [("sha256:|", 40), ("sha256:|", 66), ("sha1:|", 64), ("sha512:|", 64), ("md5:|", 40)]
        {
            check(&format!("{name}{}", hex(digits)), false);
        }
        check(&format!("sha256:|{}_secret", hex(64)), false);
        check(&format!("|sha256{}", "Ab3+".repeat(16)), false);
        check(&format!("|sha512-{}", "Z".repeat(64)), false);
        check(&format!("|sha512-{}=", "Z".repeat(86)), false);
        check(&format!("|{}", hex(64)), false);
        check("sha256:|", false);
        check(&format!("sha512:|{}", hex(10_000)), false);
        check(&format!("|sha512-{}{}", "Z".repeat(86), "=".repeat(10_000)), false);
    }

    #[test]
    fn a_commit_is_named_as_one() {
        let commit = "9f".repeat(20);
        for before in ["aws/get-secrets@|", "token.git#|", "a token for commit |", "token/commit/|"] {
            check(&format!("{before}{commit}"), true);
            check(&format!("{before}{commit}\""), true);
            check(&format!("{before}{commit}9f"), false);
            check(&format!("{before}{commit}_x"), false);
        }
        check(&format!("token |{commit}"), false);
    }

    #[test]
    fn an_image_begins_like_one() {
        let data = |bytes: &[u8]| {
            let rest = [7_u8; 40];
            format!("data:image/png;base64,|{}", BASE64_STANDARD.encode([bytes, &rest].concat()))
        };
        check(&data(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0"), true);
        check(&data(b"\xff\xd8\xff\xe0\0\x10JFIF"), true);
        check(&data(b"RIFF\x10\0\0\0WEBPVP8 "), true);
        check(&data(b"<svg xmlns="), true);
        check(&data(b"\x89PNG"), false);
        check(&data(b"a key of nobody's"), false);
        check("base64,|iVBO", false);
        check("base64,|", false);
    }
}
