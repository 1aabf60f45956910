//! Hexadecimal text and short SHA-256 digests.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// A prefix of the SHA-256.
pub fn digest<const LENGTH: usize>(bytes: &[u8]) -> [u8; LENGTH] {
    let digest = Sha256::digest(bytes);
    let mut beginning = [0; LENGTH];
    beginning.iter_mut().zip(digest.iter()).for_each(|(to, from)| *to = *from);
    beginning
}
