//! What names a value without showing it: SHA-256 over its canonical JSON.

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// `sha256:` and 64 digits.
pub fn of<T: Serialize>(value: &T) -> String {
    // RFC 8785 has a form for everything that `Value` can hold.
    let text = toolgate_audit::canonical(value).unwrap_or_default();
    format!("sha256:{}", hex(&Sha256::digest(text)))
}

pub fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 15));
    }
    text
}
