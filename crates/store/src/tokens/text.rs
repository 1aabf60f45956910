//! The format of a token: `tg_`, 22 characters of id, 43 of secret, 6 of checksum; 74 in total.
//!
//! Prefix and checksum let secret scanners detect a leaked token offline. The secret is 256 random bits. A plain SHA-256 is
//! therefore enough: slow hashes only protect secrets that can be guessed.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// The whole token, for its user. Debug output hides it.
#[derive(Clone, Eq, PartialEq)]
pub struct TokenText(String);

impl TokenText {
    pub(super) fn random() -> Result<(Self, Parts), getrandom::Error> {
        let (mut id, mut secret) = ([0; 16], [0; 32]);
        getrandom::fill(&mut id)?;
        getrandom::fill(&mut secret)?;
        let (id, secret) = (URL_SAFE_NO_PAD.encode(id), URL_SAFE_NO_PAD.encode(secret));
        let unsigned = format!("{PREFIX}{id}{secret}");
        let checksum = checksum(&unsigned);
        Ok((Self(unsigned + &checksum), Parts::of(&id, &secret)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenText(…)")
    }
}

pub(super) struct Parts {
    /// Not secret; the key of the database row.
    pub(super) id: String,
    pub(super) secret_hash: [u8; 32],
}

impl Parts {
    fn of(id: &str, secret: &str) -> Self {
        Self { id: id.to_owned(), secret_hash: Sha256::digest(secret).into() }
    }
}

/// `None` for a text that we cannot have created.
pub(super) fn parse(text: &str) -> Option<Parts> {
    if text.len() != UNSIGNED + CHECKSUM || !text.bytes().all(is_of_alphabet) {
        return None;
    }
    let (unsigned, given) = text.split_at_checked(UNSIGNED)?;
    let (id, secret) = unsigned.strip_prefix(PREFIX)?.split_at_checked(ID)?;
    // A plain comparison is enough: everyone can compute the checksum, so its timing reveals nothing.
    (checksum(unsigned) == given).then(|| Parts::of(id, secret))
}

fn is_of_alphabet(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

pub(super) fn checksum(unsigned: &str) -> String {
    let mut text = URL_SAFE_NO_PAD.encode(Sha256::digest(unsigned));
    text.truncate(CHECKSUM);
    text
}

const PREFIX: &str = "tg_";
const ID: usize = 22;
const SECRET: usize = 43;
const CHECKSUM: usize = 6;
pub(super) const UNSIGNED: usize = PREFIX.len() + ID + SECRET;
