//! Keys that verify signatures. The type of a key limits its algorithms, so a public key is never used as a secret.

use std::fmt;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm as Alg, DecodingKey, crypto, jwk::Jwk};
use serde_json::{Map, Value};

use crate::auth::settings::{Algorithm, PemKey, Secret};

pub(super) struct VerificationKey {
    kind: KeyKind,
    /// INVARIANT: made by the constructor of `kind`, so it holds that kind of key and no other.
    decoding: DecodingKey,
    kid: Option<String>,
    /// The only algorithm that the key may be used with.
    only: Option<Algorithm>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum KeyKind {
    /// With its length in bytes.
    Shared(usize),
    Rsa,
    P256,
    P384,
    Ed25519,
}

impl VerificationKey {
    pub(super) fn shared(secret: &Secret) -> Self {
        let kind = KeyKind::Shared(secret.bytes().len());
        Self { kind, decoding: DecodingKey::from_secret(secret.bytes()), kid: None, only: None }
    }

    pub(super) fn from_pem(pem: &PemKey) -> Result<Self, String> {
        let bytes = pem.pem.as_bytes();
        let is_public = ["-----BEGIN PUBLIC KEY-----", "-----BEGIN RSA PUBLIC KEY-----"]
            .iter()
            .any(|line| pem.pem.trim_start().starts_with(line));
        if !is_public {
            return Err("a PEM key must be a `PUBLIC KEY` or `RSA PUBLIC KEY`".into());
        }
        let decoding = DecodingKey::from_rsa_pem(bytes)
            .or_else(|_| DecodingKey::from_ec_pem(bytes))
            .or_else(|_| DecodingKey::from_ed_pem(bytes))
            .and_then(|key| Jwk::from_decoding_key(&key, None))
            .map_err(|_| "the PEM key is not an RSA, P-256, P-384 or Ed25519 public key".to_owned())?;
        let Ok(Value::Object(members)) = serde_json::to_value(decoding) else {
            return Err("the PEM key cannot be read".into());
        };
        let mut key = Self::from_jwk(&members)?;
        key.kid.clone_from(&pem.kid);
        Ok(key)
    }

    /// One key of a JWKS (RFC 7517). Rejects secrets and private keys.
    pub(super) fn from_jwk(jwk: &Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        if text("use").is_some_and(|usage| usage != "sig") || !allows_verifying(jwk) {
            return Err("the key is not for signatures".into());
        }
        if jwk.contains_key("d") {
            return Err("this is a private key; replace it and publish the public key".into());
        }
        let only = match text("alg") {
            None => None,
            Some(name) => Some(Algorithm::from_name(name).ok_or("the key is for an unknown algorithm")?),
        };
        let (kind, decoding) = match (text("kty"), text("crv")) {
            (Some("RSA"), _) => (KeyKind::Rsa, rsa(&member(jwk, "n")?, &member(jwk, "e")?)?),
            (Some("EC"), Some("P-256")) => (KeyKind::P256, point(jwk, 32)?),
            (Some("EC"), Some("P-384")) => (KeyKind::P384, point(jwk, 48)?),
            (Some("OKP"), Some("Ed25519")) => (KeyKind::Ed25519, edwards(jwk)?),
            _ => return Err("the key is not an RSA, P-256, P-384 or Ed25519 public key".into()),
        };
        let key = Self { kind, decoding, kid: text("kid").map(str::to_owned), only };
        key.is_usable()?;
        Ok(key)
    }

    pub(super) fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    pub(super) fn fits(&self, algorithm: Algorithm) -> bool {
        self.only.is_none_or(|only| only == algorithm) && kind_fits(self.kind, algorithm)
    }

    pub(super) fn verifies(&self, algorithm: Algorithm, message: &str, signature: &str) -> bool {
        self.fits(algorithm)
            && matches!(
                crypto::verify(signature, message.as_bytes(), &self.decoding, alg(algorithm)),
                Ok(true)
            )
    }

    /// Creates a verifier once, which rejects points that are not on the curve.
    fn is_usable(&self) -> Result<(), String> {
        let any = Algorithm::ALL.into_iter().find(|algorithm| kind_fits(self.kind, *algorithm));
        let Some(any) = any else { return Err("no algorithm fits the key".into()) };
        crypto::verify("", &[], &self.decoding, alg(any)).map(|_| ()).map_err(|_| "the key is invalid".into())
    }
}

impl fmt::Debug for VerificationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerificationKey")
            .field("kind", &self.kind)
            .field("kid", &self.kid)
            .finish_non_exhaustive()
    }
}

/// The check against algorithm confusion.
const fn kind_fits(kind: KeyKind, algorithm: Algorithm) -> bool {
    use Algorithm::{EdDsa, Es256, Es384, Hs256, Hs384, Hs512, Ps256, Ps384, Ps512, Rs256, Rs384, Rs512};
    match kind {
        // A secret shorter than the hash can be guessed from one token (RFC 7518, 3.2).
        KeyKind::Shared(bytes) => match algorithm {
            Hs256 => bytes >= 32,
            Hs384 => bytes >= 48,
            Hs512 => bytes >= 64,
            _ => false,
        },
        KeyKind::Rsa => matches!(algorithm, Rs256 | Rs384 | Rs512 | Ps256 | Ps384 | Ps512),
        KeyKind::P256 => matches!(algorithm, Es256),
        KeyKind::P384 => matches!(algorithm, Es384),
        KeyKind::Ed25519 => matches!(algorithm, EdDsa),
    }
}

fn allows_verifying(jwk: &Map<String, Value>) -> bool {
    let Some(operations) = jwk.get("key_ops") else { return true };
    operations.as_array().is_some_and(|list| list.iter().any(|operation| operation == "verify"))
}

fn member(jwk: &Map<String, Value>, name: &str) -> Result<Vec<u8>, String> {
    let text = jwk.get(name).and_then(Value::as_str).ok_or_else(|| format!("the key lacks `{name}`"))?;
    URL_SAFE_NO_PAD.decode(text).map_err(|_| format!("`{name}` of the key is not base64url"))
}

fn rsa(modulus: &[u8], exponent: &[u8]) -> Result<DecodingKey, String> {
    let first = modulus.iter().position(|byte| *byte != 0).unwrap_or(modulus.len());
    let modulus = modulus.get(first..).unwrap_or_default();
    if !(MIN_RSA_BYTES..=MAX_RSA_BYTES).contains(&modulus.len()) {
        return Err("an RSA key must have 2048 to 4096 bits".into());
    }
    let is_sound = exponent.len() <= 4
        && exponent.last().is_some_and(|byte| byte % 2 == 1)
        && exponent.iter().fold(0_u64, |value, byte| value << 8 | u64::from(*byte)) >= 3;
    if !is_sound {
        return Err("the exponent of the RSA key is invalid".into());
    }
    Ok(DecodingKey::from_rsa_raw_components(modulus, exponent))
}

fn point(jwk: &Map<String, Value>, bytes: usize) -> Result<DecodingKey, String> {
    let (x, y) = (member(jwk, "x")?, member(jwk, "y")?);
    if x.len() != bytes || y.len() != bytes {
        return Err("a coordinate of the key has the wrong length".into());
    }
    DecodingKey::from_ec_components(&URL_SAFE_NO_PAD.encode(x), &URL_SAFE_NO_PAD.encode(y))
        .map_err(|_| "the key is invalid".into())
}

fn edwards(jwk: &Map<String, Value>) -> Result<DecodingKey, String> {
    let x = member(jwk, "x")?;
    // The library takes 32 bytes without checking the length.
    if x.len() != 32 {
        return Err("an Ed25519 key has 32 bytes".into());
    }
    Ok(DecodingKey::from_ed_der(&x))
}

const fn alg(algorithm: Algorithm) -> Alg {
    match algorithm {
        Algorithm::Hs256 => Alg::HS256,
        Algorithm::Hs384 => Alg::HS384,
        Algorithm::Hs512 => Alg::HS512,
        Algorithm::Rs256 => Alg::RS256,
        Algorithm::Rs384 => Alg::RS384,
        Algorithm::Rs512 => Alg::RS512,
        Algorithm::Ps256 => Alg::PS256,
        Algorithm::Ps384 => Alg::PS384,
        Algorithm::Ps512 => Alg::PS512,
        Algorithm::Es256 => Alg::ES256,
        Algorithm::Es384 => Alg::ES384,
        Algorithm::EdDsa => Alg::EdDSA,
    }
}

const MIN_RSA_BYTES: usize = 256;
const MAX_RSA_BYTES: usize = 512;
