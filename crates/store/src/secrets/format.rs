//! The file format of the secret store: a plain header and one XChaCha20-Poly1305 message with everything else.
//!
//! The header is authenticated with the message, and the message holds all entries. No entry can be changed, removed, renamed or
//! replaced by an older one alone. The file reveals the kind of its key and its size in steps of 4 KiB.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chacha20poly1305::{AeadInOut as _, Key, KeyInit as _, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::{
    content::{SecretEntry, SecretScope, VaultContent},
    key::{KeyId, PassphraseCost, SALT_BYTES, VaultKey},
};

/// A file that was parsed but not decrypted. Everything in it is untrusted until `open` succeeds.
#[derive(Clone, Debug)]
pub(crate) struct SealedVault {
    pub lock: VaultLock,
    nonce: [u8; NONCE_BYTES],
    /// The header, which the message authenticates.
    header: Vec<u8>,
    message: Vec<u8>,
}

/// The key that opens a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct VaultLock {
    pub id: KeyId,
    pub kind: LockKind,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum LockKind {
    /// 32 random bytes that are kept elsewhere.
    Stored,
    /// Derived from a passphrase with Argon2id.
    Passphrase { salt: [u8; SALT_BYTES], cost: PassphraseCost },
}

impl SealedVault {
    /// `None`: not a file of this format and version.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let [kind] = take(&mut rest)?;
        let id = KeyId(take(&mut rest)?);
        let kind = match kind {
            STORED => LockKind::Stored,
            PASSPHRASE => {
                let salt = take(&mut rest)?;
                let mut number = || take(&mut rest).map(u32::from_le_bytes);
                let cost = PassphraseCost { kib: number()?, rounds: number()?, lanes: number()? };
                LockKind::Passphrase { salt, cost: cost.bounded()? }
            }
            _ => return None,
        };
        let nonce = take(&mut rest)?;
        let header = bytes.get(..bytes.len().checked_sub(rest.len())?)?.to_vec();
        Some(Self { lock: VaultLock { id, kind }, nonce, header, message: rest.to_vec() })
    }

    /// `None`: another key, or the file was changed.
    pub fn open(&self, key: &VaultKey) -> Option<VaultContent> {
        let mut plain = Zeroizing::new(self.message.clone());
        cipher(key).decrypt_in_place(&XNonce::from(self.nonce), &self.header, &mut *plain).ok()?;
        read(&plain)
    }

    /// Encrypts with a fresh nonce. 192 random bits do not repeat.
    pub fn seal(content: &VaultContent, lock: &VaultLock, key: &VaultKey) -> Result<Vec<u8>, String> {
        let mut nonce = [0; NONCE_BYTES];
        getrandom::fill(&mut nonce)
            .map_err(|error| format!("the system returned no random bytes: {error}"))?;
        let mut file = MAGIC.to_vec();
        match &lock.kind {
            LockKind::Stored => {
                file.push(STORED);
                file.extend(lock.id.0);
            }
            LockKind::Passphrase { salt, cost } => {
                file.push(PASSPHRASE);
                file.extend(lock.id.0);
                file.extend(salt);
                for number in [cost.kib, cost.rounds, cost.lanes] {
                    file.extend(number.to_le_bytes());
                }
            }
        }
        file.extend(nonce);
        let mut message = write(content)?;
        cipher(key)
            .encrypt_in_place(&XNonce::from(nonce), &file, &mut *message)
            .map_err(|_| "the secrets could not be encrypted".to_owned())?;
        file.extend(message.iter());
        if file.len() > MAX_FILE_BYTES {
            return Err(format!("the secret store would be larger than {} MiB", MAX_FILE_BYTES >> 20));
        }
        Ok(file)
    }
}

fn cipher(key: &VaultKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&Key::from(*key.bytes()))
}

/// The decrypted message. Texts are borrowed and values are Base64, so reading makes no copy that stays in memory.
#[derive(Deserialize, Serialize)]
struct PlainVault<'p> {
    generation: u64,
    #[serde(borrow)]
    secrets: Vec<PlainEntry<'p>>,
}

#[derive(Deserialize, Serialize)]
struct PlainEntry<'p> {
    name: &'p str,
    value: &'p str,
    tools: Vec<String>,
    upstreams: Vec<String>,
    set_ms: i64,
}

fn read(plain: &[u8]) -> Option<VaultContent> {
    let vault: PlainVault<'_> = serde_json::from_slice(plain).ok()?;
    let mut content = VaultContent { generation: vault.generation, ..VaultContent::default() };
    for entry in vault.secrets {
        let mut value = Zeroizing::new(Vec::with_capacity(entry.value.len()));
        STANDARD.decode_vec(entry.value, &mut value).ok()?;
        let value = Zeroizing::new(std::str::from_utf8(&value).ok()?.to_owned());
        let scope = SecretScope { tools: entry.tools, upstreams: entry.upstreams };
        let stored = SecretEntry { value, scope, set_ms: entry.set_ms };
        content.entries.insert(entry.name.to_owned(), stored);
    }
    Some(content)
}

/// Reserves room for padding and tag, because a growing buffer would leave a copy behind.
fn write(content: &VaultContent) -> Result<Zeroizing<Vec<u8>>, String> {
    let values: Vec<Zeroizing<String>> = content
        .entries
        .values()
        .map(|entry| Zeroizing::new(STANDARD.encode(entry.value.as_bytes())))
        .collect();
    let secrets = content.entries.iter().zip(&values).map(|((name, entry), value)| PlainEntry {
        name,
        value,
        tools: entry.scope.tools.clone(),
        upstreams: entry.scope.upstreams.clone(),
        set_ms: entry.set_ms,
    });
    let plain = PlainVault { generation: content.generation, secrets: secrets.collect() };
    let mut counter = LengthCounter(0);
    let failed = |error: serde_json::Error| format!("the secrets could not be written: {error}");
    serde_json::to_writer(&mut counter, &plain).map_err(failed)?;
    let padded = counter.0.next_multiple_of(PADDING);
    let mut message = Zeroizing::new(Vec::with_capacity(padded.saturating_add(TAG_BYTES)));
    serde_json::to_writer(&mut *message, &plain).map_err(failed)?;
    // Spaces after a JSON value mean nothing. They hide the lengths of the values.
    message.resize(padded, b' ');
    Ok(message)
}

struct LengthCounter(usize);

impl std::io::Write for LengthCounter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(*first)
}

/// Also the version of the format.
const MAGIC: &[u8] = b"toolgate-secrets-1\n";
const STORED: u8 = 0;
const PASSPHRASE: u8 = 1;
const NONCE_BYTES: usize = 24;
const TAG_BYTES: usize = 16;
const PADDING: usize = 4 << 10;

pub(crate) const MAX_FILE_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests;
