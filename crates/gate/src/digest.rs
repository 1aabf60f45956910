//! Digests of values, as SHA-256 over their canonical JSON, and the length of their JSON.

use std::io;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// `sha256:` and 64 hexadecimal digits.
pub fn of<T: Serialize>(value: &T) -> String {
    // Cannot fail: RFC 8785 covers every `Value`.
    let text = toolgate_audit::canonical(value).unwrap_or_default();
    let digest = Sha256::digest(text);
    let mut name = String::with_capacity(PREFIX.len() + 2 * digest.len());
    name.push_str(PREFIX);
    put_hex(&digest, &mut name);
    name
}

/// The length of a value's JSON.
pub fn json_bytes<T: Serialize>(value: &T) -> usize {
    let mut count = ByteCount(0);
    serde_json::to_writer(&mut count, value).map_or(usize::MAX, |()| count.0)
}

struct ByteCount(usize);

impl io::Write for ByteCount {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    put_hex(bytes, &mut text);
    text
}

fn put_hex(bytes: &[u8], text: &mut String) {
    let digit = |nibble: u8| char::from(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
}

const PREFIX: &str = "sha256:";
