//! What names a value without showing it: SHA-256 over its canonical JSON.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// `sha256:` and 64 digits.
pub fn of<T: Serialize>(value: &T) -> String {
    // RFC 8785 has a form for everything that `Value` can hold.
    let text = serde_json_canonicalizer::to_vec(value).unwrap_or_default();
    format!("sha256:{}", hex(&Sha256::digest(text)))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
