//! Hashes, signatures, encryption and key derivation from audited libraries, with limits on the work.

use aes_gcm::{
    AesGcm, KeyInit,
    aead::{Aead, AeadCore, Payload, consts::U12},
    aes::{Aes128, Aes192, Aes256},
};
use hkdf::Hkdf;
use hmac::{EagerHash, Hmac, Mac};
use serde::Deserialize;
use sha2::{Digest, Sha256, Sha384, Sha512};

use super::{HelperAnswer, HelperError};

/// Text: the number of bytes.
pub fn random(text: &str) -> Result<HelperAnswer, HelperError> {
    let count = text.parse().ok().filter(|count| *count <= MAX_RANDOM);
    let Some(count) = count else {
        let message = format!("at most {MAX_RANDOM} random bytes per call");
        return Err(HelperError::invalid("crypto.getRandomValues", "too-many-bytes", message));
    };
    let mut bytes = vec![0; count];
    if getrandom::fill(&mut bytes).is_err() {
        let message = "the system has no random bytes; try again";
        return Err(HelperError::runtime("crypto.getRandomValues", "no-randomness", message));
    }
    Ok(HelperAnswer::Bytes(bytes))
}

/// Text: the algorithm. Bytes: the data.
pub fn digest(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    Ok(HelperAnswer::Bytes(match Hash::named(text, "crypto.subtle.digest")? {
        Hash::Sha256 => Sha256::digest(bytes).to_vec(),
        Hash::Sha384 => Sha384::digest(bytes).to_vec(),
        Hash::Sha512 => Sha512::digest(bytes).to_vec(),
    }))
}

/// Text: `{hash, keyLength}`. Bytes: the key and the data.
pub fn hmac_sign(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    const HELPER: &str = "crypto.subtle.sign";
    let asked: HmacQuestion = question(HELPER, text)?;
    let (key, data) = part(HELPER, bytes, asked.key_length)?;
    let signature = match Hash::named(&asked.hash, HELPER)? {
        Hash::Sha256 => mac::<Sha256>(key, data)?.finalize().into_bytes().to_vec(),
        Hash::Sha384 => mac::<Sha384>(key, data)?.finalize().into_bytes().to_vec(),
        Hash::Sha512 => mac::<Sha512>(key, data)?.finalize().into_bytes().to_vec(),
    };
    Ok(HelperAnswer::Bytes(signature))
}

/// Text: `{hash, keyLength, signatureLength}`. Bytes: the key, the signature and the data. Compares in constant time.
pub fn hmac_verify(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    const HELPER: &str = "crypto.subtle.verify";
    let asked: HmacQuestion = question(HELPER, text)?;
    let (key, rest) = part(HELPER, bytes, asked.key_length)?;
    let (signature, data) = part(HELPER, rest, asked.signature_length)?;
    let matches = match Hash::named(&asked.hash, HELPER)? {
        Hash::Sha256 => mac::<Sha256>(key, data)?.verify_slice(signature).is_ok(),
        Hash::Sha384 => mac::<Sha384>(key, data)?.verify_slice(signature).is_ok(),
        Hash::Sha512 => mac::<Sha512>(key, data)?.verify_slice(signature).is_ok(),
    };
    Ok(HelperAnswer::Json(matches.to_string()))
}

fn mac<D: EagerHash>(key: &[u8], data: &[u8]) -> Result<Hmac<D>, HelperError> {
    let mac = <Hmac<D> as KeyInit>::new_from_slice(key).map_err(|_| {
        HelperError::invalid("crypto.subtle.importKey", "invalid-key", "HMAC does not accept this key")
    })?;
    Ok(mac.chain_update(data))
}

/// Text: `{keyLength, ivLength, aadLength}`. Bytes: key, initialisation vector, additional data, plaintext.
pub fn aes_gcm_encrypt(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    let input = AesGcmInput::read("crypto.subtle.encrypt", text, bytes)?;
    let sealed = match input.key.len() {
        16 => input.seal::<AesGcm<Aes128, U12>>(),
        24 => input.seal::<AesGcm<Aes192, U12>>(),
        _ => input.seal::<AesGcm<Aes256, U12>>(),
    };
    sealed.map(HelperAnswer::Bytes).ok_or_else(|| {
        let message = "encryption failed: the key has 16, 24 or 32 bytes and the data less than 64 GiB";
        HelperError::invalid("crypto.subtle.encrypt", "encryption-failed", message)
    })
}

/// Like `aes_gcm_encrypt`, with the ciphertext and its tag.
pub fn aes_gcm_decrypt(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    let input = AesGcmInput::read("crypto.subtle.decrypt", text, bytes)?;
    let opened = match input.key.len() {
        16 => input.open::<AesGcm<Aes128, U12>>(),
        24 => input.open::<AesGcm<Aes192, U12>>(),
        _ => input.open::<AesGcm<Aes256, U12>>(),
    };
    // One message for every cause, because details would help an attacker.
    opened.map(HelperAnswer::Bytes).ok_or_else(|| {
        let message =
            "decryption failed: wrong key, initialisation vector or additional data, or changed ciphertext";
        HelperError::runtime("crypto.subtle.decrypt", "decryption-failed", message)
    })
}

struct AesGcmInput<'bytes> {
    key: &'bytes [u8],
    iv: &'bytes [u8; 12],
    payload: Payload<'bytes, 'bytes>,
}

impl<'bytes> AesGcmInput<'bytes> {
    fn read(helper: &str, text: &str, bytes: &'bytes [u8]) -> Result<Self, HelperError> {
        let asked: AesGcmQuestion = question(helper, text)?;
        let (key, rest) = part(helper, bytes, asked.key)?;
        let (iv, rest) = part(helper, rest, asked.iv)?;
        let (aad, msg) = part(helper, rest, asked.aad)?;
        let iv = iv.try_into().map_err(|_| {
            HelperError::invalid(
                helper,
                "invalid-iv",
                format!("`iv` has {} bytes; AES-GCM needs 12", iv.len()),
            )
        })?;
        Ok(Self { key, iv, payload: Payload { msg, aad } })
    }

    fn seal<C: KeyInit + Aead + AeadCore<NonceSize = U12>>(self) -> Option<Vec<u8>> {
        C::new_from_slice(self.key).ok()?.encrypt(self.iv.into(), self.payload).ok()
    }

    fn open<C: KeyInit + Aead + AeadCore<NonceSize = U12>>(self) -> Option<Vec<u8>> {
        C::new_from_slice(self.key).ok()?.decrypt(self.iv.into(), self.payload).ok()
    }
}

/// Text: `{hash, keyLength, saltLength, length}`. Bytes: key, salt, info.
pub fn hkdf(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    let asked: HkdfQuestion = question(DERIVE, text)?;
    let hash = Hash::named(&asked.hash, DERIVE)?;
    let (key, rest) = part(DERIVE, bytes, asked.key_length)?;
    let (salt, info) = part(DERIVE, rest, asked.salt_length)?;
    let longest = hash.size() * 255;
    if asked.length > longest {
        return Err(too_long("HKDF", longest));
    }
    if info.len() > MAX_INFO {
        let message = format!("`info` has more than {MAX_INFO} bytes; hash it first");
        return Err(HelperError::invalid(DERIVE, "info-too-long", message));
    }
    let mut derived = vec![0; asked.length];
    let expanded = match hash {
        Hash::Sha256 => Hkdf::<Sha256>::new(Some(salt), key).expand(info, &mut derived),
        Hash::Sha384 => Hkdf::<Sha384>::new(Some(salt), key).expand(info, &mut derived),
        Hash::Sha512 => Hkdf::<Sha512>::new(Some(salt), key).expand(info, &mut derived),
    };
    expanded.map(|()| HelperAnswer::Bytes(derived)).map_err(|_| too_long("HKDF", longest))
}

/// Text: `{hash, keyLength, iterations, length}`. Bytes: password, salt.
pub fn pbkdf2(text: &str, bytes: &[u8]) -> Result<HelperAnswer, HelperError> {
    let asked: Pbkdf2Question = question(DERIVE, text)?;
    let hash = Hash::named(&asked.hash, DERIVE)?;
    let (password, salt) = part(DERIVE, bytes, asked.key_length)?;
    if asked.iterations == 0 || asked.iterations > MAX_ITERATIONS {
        let message = format!("`iterations` is {}; use 1 to {MAX_ITERATIONS}", asked.iterations);
        return Err(HelperError::invalid(DERIVE, "invalid-iterations", message));
    }
    if asked.length > MAX_FROM_PASSWORD {
        return Err(too_long("PBKDF2", MAX_FROM_PASSWORD));
    }
    // Every block of the hash's size needs all iterations, and they cannot be interrupted.
    let blocks = asked.length.div_ceil(hash.size()) as u64;
    if u64::from(asked.iterations).saturating_mul(blocks) > MAX_ROUNDS {
        let message = format!(
            "too much work: each of {blocks} hash blocks needs all iterations; request fewer bits or iterations"
        );
        return Err(HelperError::invalid(DERIVE, "too-much-work", message));
    }
    let mut derived = vec![0; asked.length];
    match hash {
        Hash::Sha256 => pbkdf2::pbkdf2_hmac::<Sha256>(password, salt, asked.iterations, &mut derived),
        Hash::Sha384 => pbkdf2::pbkdf2_hmac::<Sha384>(password, salt, asked.iterations, &mut derived),
        Hash::Sha512 => pbkdf2::pbkdf2_hmac::<Sha512>(password, salt, asked.iterations, &mut derived),
    }
    Ok(HelperAnswer::Bytes(derived))
}

fn too_long(algorithm: &str, longest: usize) -> HelperError {
    let message = format!("{algorithm} derives at most {} bits with this hash", longest * 8);
    HelperError::invalid(DERIVE, "invalid-length", message)
}

#[derive(Clone, Copy)]
enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    fn named(name: &str, helper: &str) -> Result<Self, HelperError> {
        match name {
            "SHA-256" => Ok(Self::Sha256),
            "SHA-384" => Ok(Self::Sha384),
            "SHA-512" => Ok(Self::Sha512),
            _ => {
                let message = "unsupported hash; use `SHA-256`, `SHA-384` or `SHA-512`";
                Err(HelperError::invalid(helper, "unsupported-algorithm", message))
            }
        }
    }

    const fn size(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HmacQuestion {
    hash: String,
    key_length: usize,
    #[serde(default)]
    signature_length: usize,
}

/// The length of each part.
#[derive(Deserialize)]
struct AesGcmQuestion {
    #[serde(rename = "keyLength")]
    key: usize,
    #[serde(rename = "ivLength")]
    iv: usize,
    #[serde(rename = "aadLength")]
    aad: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HkdfQuestion {
    hash: String,
    key_length: usize,
    salt_length: usize,
    length: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pbkdf2Question {
    hash: String,
    key_length: usize,
    iterations: u32,
    length: usize,
}

fn question<'text, T: Deserialize<'text>>(helper: &str, text: &'text str) -> Result<T, HelperError> {
    serde_json::from_str(text).map_err(|error| {
        HelperError::invalid(helper, "invalid-arguments", format!("invalid parameters: {error}"))
    })
}

/// Splits off a part. The guest states its length, which may be wrong.
fn part<'bytes>(
    helper: &str,
    bytes: &'bytes [u8],
    length: usize,
) -> Result<(&'bytes [u8], &'bytes [u8]), HelperError> {
    bytes
        .split_at_checked(length)
        .ok_or_else(|| HelperError::invalid(helper, "invalid-arguments", "a part is longer than the data"))
}

const DERIVE: &str = "crypto.subtle.deriveBits";
const MAX_RANDOM: usize = 65_536;
const MAX_ITERATIONS: u32 = 1_000_000;
/// Two blocks with the most iterations take about a second.
const MAX_ROUNDS: u64 = 2_000_000;
const MAX_FROM_PASSWORD: usize = 512;
/// It is hashed once for each of up to 255 blocks.
const MAX_INFO: usize = 8_192;

#[cfg(test)]
mod tests;
