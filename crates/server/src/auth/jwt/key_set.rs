//! A bounded set of keys, from a JWKS (RFC 7517) or from settings.

use serde_json::Value;

use super::{json, key::VerificationKey};
use crate::auth::settings::Algorithm;

#[derive(Debug)]
pub(super) struct KeySet(Vec<VerificationKey>);

impl KeySet {
    pub(super) fn new(keys: Vec<VerificationKey>) -> Self {
        Self(keys)
    }

    /// Skips unsupported keys, as RFC 7517 requires. A set without a usable key is an error.
    pub(super) fn from_jwks(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() > MAX_JWKS_BYTES {
            return Err(format!("the key set has more than {MAX_JWKS_BYTES} bytes"));
        }
        let document = json::object(bytes).ok_or("the key set is not a JSON object with unique names")?;
        let listed =
            document.get("keys").and_then(Value::as_array).ok_or("the key set has no list `keys`")?;
        if listed.len() > MAX_KEYS {
            return Err(format!("the key set has more than {MAX_KEYS} keys"));
        }
        let keys: Vec<VerificationKey> = listed
            .iter()
            .filter_map(Value::as_object)
            .filter_map(|jwk| VerificationKey::from_jwk(jwk).ok())
            .collect();
        if keys.is_empty() {
            return Err("the key set has no key that can verify a token".into());
        }
        Ok(Self(keys))
    }

    /// Returns `None` if no key fits, or too many do.
    pub(super) fn candidates(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
    ) -> Option<Vec<&VerificationKey>> {
        let fitting = || self.0.iter().filter(|key| key.fits(algorithm));
        let chosen: Vec<&VerificationKey> = match kid {
            None => fitting().collect(),
            Some(_) if fitting().any(|key| key.kid() == kid) => {
                fitting().filter(|key| key.kid() == kid).collect()
            }
            Some(_) => fitting().filter(|key| key.kid().is_none()).collect(),
        };
        (!chosen.is_empty() && chosen.len() <= MAX_TRIES).then_some(chosen)
    }

    pub(super) fn all_fit_one_of<'a>(
        &self,
        mut algorithms: impl Iterator<Item = &'a Algorithm> + Clone,
    ) -> bool {
        self.0.iter().all(|key| algorithms.clone().any(|algorithm| key.fits(*algorithm)))
            && algorithms.all(|algorithm| self.0.iter().any(|key| key.fits(*algorithm)))
    }
}

pub(super) const MAX_JWKS_BYTES: usize = 256 * 1024;
const MAX_KEYS: usize = 64;
/// Each try costs a signature check that a stranger can ask for.
const MAX_TRIES: usize = 8;
