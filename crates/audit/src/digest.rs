//! SHA-256 digests, and positions of records.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordDigest([u8; 32]);

/// A record's number and digest. The digest covers all records before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RecordPosition {
    pub seq: u64,
    pub hash: RecordDigest,
}

impl RecordPosition {
    /// Before the first record.
    pub(crate) const START: Self = Self { seq: 0, hash: RecordDigest([0; 32]) };
}

/// `42:sha256:…`, the form that people copy.
impl fmt::Display for RecordPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.seq, self.hash)
    }
}

impl FromStr for RecordPosition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a journal position; write it as `42:sha256:…`");
        let (seq, hash) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self { seq: seq.parse().map_err(|_| wrong())?, hash: hash.parse()? })
    }
}

impl RecordDigest {
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    pub(crate) fn finish(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The 64 digits without the prefix.
    pub(crate) fn hex(&self) -> [u8; 64] {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&[hex_digit(byte >> 4), hex_digit(byte & 0x0f)]);
        }
        text
    }

    /// Exactly 64 lower-case digits.
    pub(crate) fn from_hex(text: &[u8]) -> Option<Self> {
        if text.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            *byte = hex_value(*high)? << 4 | hex_value(*low)?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for RecordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        f.write_str(&String::from_utf8_lossy(&self.hex()))
    }
}

impl fmt::Debug for RecordDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for RecordDigest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.strip_prefix(PREFIX).and_then(|hex| Self::from_hex(hex.as_bytes())).ok_or_else(|| {
            format!("`{text}` is not a digest; write `sha256:` and 64 lower-case hexadecimal digits")
        })
    }
}

impl Serialize for RecordDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RecordDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

fn hex_digit(nibble: u8) -> u8 {
    if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 }
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

const PREFIX: &str = "sha256:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_has_one_spelling() {
        let digest = RecordDigest::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest.to_string(), text);
        assert_eq!(text.parse(), Ok(digest));
        let position = RecordPosition { seq: 42, hash: digest };
        assert_eq!(position.to_string(), format!("42:{text}"));
        assert_eq!(position.to_string().parse(), Ok(position));
        for other in ["42", text, "-1:sha256:00", ":"] {
            assert!(other.parse::<RecordPosition>().is_err(), "{other}");
        }
        for other in [&text.to_uppercase(), &text[7..], &text[..70], &format!("{text}0"), "sha256:é"] {
            assert!(other.parse::<RecordDigest>().is_err(), "{other}");
        }
    }
}
