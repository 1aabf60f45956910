//! What does a token say of itself before anything is verified? Header and claims of the compact form (RFC 7515).

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use super::{Flaw, json};
use crate::auth::settings::Algorithm;

/// Parsed, not believed.
pub(super) struct Unverified<'t> {
    pub(super) algorithm: Algorithm,
    pub(super) kid: Option<String>,
    pub(super) claims: Map<String, Value>,
    /// The bytes that the signature is over.
    pub(super) message: &'t str,
    pub(super) signature: &'t str,
}

pub(super) fn read(token: &str) -> Result<Unverified<'_>, Flaw> {
    let (message, signature) = token.rsplit_once('.').ok_or(Flaw::Shape)?;
    let (header, claims) = message.split_once('.').ok_or(Flaw::Shape)?;
    // Five parts are an encrypted token, and a signature that is missing is `none` by another name.
    if claims.contains('.') || signature.is_empty() {
        return Err(Flaw::Shape);
    }
    let header = json::object(&decode(header)?).ok_or(Flaw::Shape)?;
    let claims = json::object(&decode(claims)?).ok_or(Flaw::Shape)?;
    let algorithm = algorithm(&header)?;
    Ok(Unverified { algorithm, kid: kid(&header)?, claims, message, signature })
}

fn decode(part: &str) -> Result<Vec<u8>, Flaw> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Flaw::Shape)
}

/// Keys and addresses that a token brings along (`jwk`, `jku`, `x5u`, `x5c`) are not even looked at: a key comes from the
/// configuration of the issuer or from nowhere.
fn algorithm(header: &Map<String, Value>) -> Result<Algorithm, Flaw> {
    // We understand no extension, so whatever is critical is not understood (RFC 7515, 4.1.11).
    if header.contains_key("crit") || header.contains_key("b64") {
        return Err(Flaw::Critical);
    }
    if header.contains_key("cty") || header.contains_key("enc") || header.contains_key("zip") {
        return Err(Flaw::Nested);
    }
    // A token made for another purpose must not serve as an access token (RFC 8725, 3.11).
    if let Some(kind) = header.get("typ") {
        let kind = kind.as_str().ok_or(Flaw::Kind)?.to_ascii_lowercase();
        if !ACCESS_TOKEN_TYPES.contains(&kind.as_str()) {
            return Err(Flaw::Kind);
        }
    }
    header.get("alg").and_then(Value::as_str).and_then(Algorithm::from_name).ok_or(Flaw::Algorithm)
}

fn kid(header: &Map<String, Value>) -> Result<Option<String>, Flaw> {
    match header.get("kid") {
        None => Ok(None),
        Some(Value::String(kid)) if kid.len() <= MAX_KID_BYTES => Ok(Some(kid.clone())),
        Some(_) => Err(Flaw::Shape),
    }
}

const ACCESS_TOKEN_TYPES: [&str; 3] = ["jwt", "at+jwt", "application/at+jwt"];
const MAX_KID_BYTES: usize = 256;
