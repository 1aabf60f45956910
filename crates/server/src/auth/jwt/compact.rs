//! Parses header and claims of a token in compact form (RFC 7515), before verification.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::{JwtError, json};
use crate::auth::settings::Algorithm;

/// Parsed, not verified.
pub(super) struct Unverified<'t> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// The signed bytes.
    pub(super) message: &'t str,
    pub(super) signature: &'t str,
}

pub(super) fn read(token: &str) -> Result<Unverified<'_>, JwtError> {
    let (message, signature) = token.rsplit_once('.').ok_or(JwtError::Shape)?;
    let (header, claims) = message.split_once('.').ok_or(JwtError::Shape)?;
    // Five parts are an encrypted token. An empty signature amounts to `none`.
    if claims.contains('.') || signature.is_empty() {
        return Err(JwtError::Shape);
    }
    let header = json::object(&decode(header)?).ok_or(JwtError::Shape)?;
    let claims = json::object(&decode(claims)?).ok_or(JwtError::Shape)?;
    let algorithm = algorithm(&header)?;
    Ok(Unverified { algorithm, kid: kid(&header)?, claims, message, signature })
}

fn decode(part: &str) -> Result<Vec<u8>, JwtError> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Shape)
}

/// Ignores keys and URLs in the header (`jwk`, `jku`, `x5u`, `x5c`): keys come from the issuer's settings only.
fn algorithm(header: &Map<String, Value>) -> Result<Algorithm, JwtError> {
    // No extensions are supported, so critical ones are rejected (RFC 7515, 4.1.11).
    if header.contains_key("crit") || header.contains_key("b64") {
        return Err(JwtError::Critical);
    }
    if header.contains_key("cty") || header.contains_key("enc") || header.contains_key("zip") {
        return Err(JwtError::Nested);
    }
    // A token made for another purpose must not serve as an access token (RFC 8725, 3.11).
    if let Some(kind) = header.get("typ") {
        let kind = kind.as_str().ok_or(JwtError::Kind)?.to_ascii_lowercase();
        if !ACCESS_TOKEN_TYPES.contains(&kind.as_str()) {
            return Err(JwtError::Kind);
        }
    }
    header.get("alg").and_then(Value::as_str).and_then(Algorithm::from_name).ok_or(JwtError::Algorithm)
}

fn kid(header: &Map<String, Value>) -> Result<Option<String>, JwtError> {
    match header.get("kid") {
        None => Ok(None),
        Some(Value::String(kid)) if kid.len() <= MAX_KID_BYTES => Ok(Some(kid.clone())),
        Some(_) => Err(JwtError::Shape),
    }
}

const ACCESS_TOKEN_TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];
const MAX_KID_BYTES: usize = 256;
