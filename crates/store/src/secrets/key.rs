//! The key of the secret store: random, or derived from a passphrase.

use std::fmt;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

/// Zeroed when dropped.
#[derive(Clone)]
pub(crate) struct VaultKey(Zeroizing<[u8; KEY_BYTES]>);

/// Identifies a key without revealing it. A file names its key by this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct KeyId(pub [u8; 16]);

impl VaultKey {
    pub fn random() -> Result<Self, String> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        getrandom::fill(&mut *bytes)
            .map_err(|error| format!("the system returned no random bytes: {error}"))?;
        Ok(Self(bytes))
    }

    /// One line of a key file: 32 bytes in Base64. `None`: another text.
    pub fn from_line(line: &str) -> Option<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        let length = STANDARD.decode_slice(line.trim(), &mut *bytes).ok()?;
        (length == KEY_BYTES).then_some(Self(bytes))
    }

    pub fn to_line(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode(*self.0))
    }

    pub fn derived(passphrase: &str, salt: &[u8; SALT_BYTES], cost: PassphraseCost) -> Result<Self, String> {
        let failed = |error: argon2::Error| format!("the passphrase cannot be used: {error}");
        let params = Params::new(cost.kib, cost.rounds, cost.lanes, Some(KEY_BYTES)).map_err(failed)?;
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
            .hash_password_into(passphrase.as_bytes(), salt, &mut *bytes)
            .map_err(failed)?;
        Ok(Self(bytes))
    }

    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }

    pub fn id(&self) -> KeyId {
        let digest = Sha256::new().chain_update(ID_DOMAIN).chain_update(*self.0).finalize();
        let mut id = [0; 16];
        id.iter_mut().zip(digest).for_each(|(byte, from)| *byte = from);
        KeyId(id)
    }
}

impl From<[u8; KEY_BYTES]> for VaultKey {
    fn from(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }
}

impl KeyId {
    pub fn hex(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Memory, rounds and lanes of Argon2id.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PassphraseCost {
    pub kib: u32,
    pub rounds: u32,
    pub lanes: u32,
}

impl PassphraseCost {
    /// A changed file must not exhaust memory or time before its key is known to be wrong.
    pub fn bounded(self) -> Option<Self> {
        let is_bounded = (8..=MAX_KIB).contains(&self.kib)
            && (1..=MAX_ROUNDS).contains(&self.rounds)
            && (1..=MAX_LANES).contains(&self.lanes);
        is_bounded.then_some(self)
    }
}

impl Default for PassphraseCost {
    /// RFC 9106, second recommendation, with one lane.
    fn default() -> Self {
        Self { kib: 64 << 10, rounds: 3, lanes: 1 }
    }
}

impl fmt::Debug for VaultKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("VaultKey").field(&self.id().hex()).finish()
    }
}

pub(crate) const SALT_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
const ID_DOMAIN: &[u8] = b"toolgate secret store key id\0";
const MAX_KIB: u32 = 1 << 20;
const MAX_ROUNDS: u32 = 16;
const MAX_LANES: u32 = 4;
