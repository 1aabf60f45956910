//! Checks an issuer's settings at start, before the first token.

use std::{sync::Arc, time::Duration};

use http::Uri;

use super::{key::VerificationKey, key_set::KeySet, keyring::Keyring};
use crate::auth::{
    fetch::Fetch,
    settings::{Algorithm, AuthSettingsError, IssuerSettings, KeySettings, is_name_character},
};

/// Rejects issuers with the same `iss` or the same name.
pub(super) fn no_two_alike(issuers: &[IssuerSettings]) -> Result<(), AuthSettingsError> {
    for (index, issuer) in issuers.iter().enumerate() {
        let is_alike = |other: &IssuerSettings| other.name == issuer.name || other.issuer == issuer.issuer;
        if issuers.iter().skip(index + 1).any(is_alike) {
            return Err(AuthSettingsError(format!(
                "issuer `{}` is configured twice; give every issuer its own `name` and `issuer`",
                issuer.name
            )));
        }
    }
    Ok(())
}

pub(super) fn keyring(
    issuer: &IssuerSettings,
    fetch: Option<&Arc<dyn Fetch>>,
) -> Result<Keyring, AuthSettingsError> {
    let say = |why: &str| AuthSettingsError(format!("issuer `{}`: {why}", issuer.name));
    check(issuer).map_err(say)?;
    let keyring = match &issuer.keys {
        KeySettings::Secret(secret) => {
            Keyring::Fixed(Arc::new(KeySet::new(vec![VerificationKey::shared(secret)])))
        }
        KeySettings::Pem(keys) => {
            let keys = keys
                .iter()
                .map(VerificationKey::from_pem)
                .collect::<Result<_, _>>()
                .map_err(|why| say(&why))?;
            Keyring::Fixed(Arc::new(KeySet::new(keys)))
        }
        KeySettings::JwksFile(path) => Keyring::file(path.clone()),
        KeySettings::JwksUrl(url) => {
            check_url(url).map_err(say)?;
            let fetch = fetch.ok_or_else(|| say("there is no way to fetch its keys"))?;
            Keyring::url(url.clone(), issuer.refresh, Arc::clone(fetch))
        }
    };
    if let Keyring::Fixed(keys) = &keyring
        && !keys.all_fit_one_of(issuer.algorithms.iter())
    {
        return Err(say(
            "keys and `algorithms` do not fit each other; `HS…` needs a secret at least as long as its hash, the others a \
             public key of their kind",
        ));
    }
    Ok(keyring)
}

fn check(issuer: &IssuerSettings) -> Result<(), &'static str> {
    let is_name = |name: &str| (1..=64).contains(&name.len()) && name.chars().all(is_name_character);
    if !is_name(&issuer.name) {
        return Err("`name` must be lower-case letters, digits, `-` and `.`, at most 64");
    }
    if issuer.issuer.trim().is_empty() {
        return Err("`issuer` is empty; write the `iss` of its tokens");
    }
    if issuer.audiences.is_empty() || issuer.audiences.iter().any(|audience| audience.trim().is_empty()) {
        return Err("`audiences` is empty; without one, tokens for any other service would be accepted");
    }
    if issuer.algorithms.is_empty() {
        return Err("`algorithms` is empty; list the ones that it signs with");
    }
    if issuer.clock_skew > MAX_SKEW {
        return Err("`clock_skew` is more than ten minutes");
    }
    if !(MIN_REFRESH..=MAX_REFRESH).contains(&issuer.refresh) {
        return Err("keys are fetched again after a minute at the earliest and a day at the latest");
    }
    if issuer.subject_claim.is_empty() {
        return Err("the claim that names the caller is empty; write `sub`");
    }
    if !issuer.required_scopes.iter().all(|scope| is_scope(scope)) {
        return Err("`required_scopes` are single words of ASCII, without quotes and backslashes");
    }
    let is_shared = matches!(issuer.keys, KeySettings::Secret(_));
    if issuer.algorithms.iter().any(|algorithm| is_hmac(*algorithm) != is_shared) {
        return Err("`HS…` algorithms go with a secret, all others with public keys; never mix them");
    }
    Ok(())
}

const fn is_hmac(algorithm: Algorithm) -> bool {
    matches!(algorithm, Algorithm::Hs256 | Algorithm::Hs384 | Algorithm::Hs512)
}

/// A scope token of RFC 6749, 3.3, which needs no escaping in a challenge.
fn is_scope(scope: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    !scope.is_empty() && scope.bytes().all(is_word)
}

/// Keys fetched without TLS could be replaced on the way.
fn check_url(url: &str) -> Result<(), &'static str> {
    let uri: Uri = url.parse().map_err(|_| "the URL of its keys is not a URL")?;
    let authority = uri.authority().ok_or("the URL of its keys names no host")?;
    if authority.as_str().contains('@') {
        return Err("the URL of its keys holds a user or password");
    }
    let is_local = matches!(authority.host(), "localhost" | "127.0.0.1" | "[::1]");
    match uri.scheme_str() {
        Some("https") => Ok(()),
        Some("http") if is_local => Ok(()),
        _ => Err("the URL of its keys must be `https`, or `http` on this machine"),
    }
}

const MAX_SKEW: Duration = Duration::from_mins(10);
const MIN_REFRESH: Duration = Duration::from_mins(1);
const MAX_REFRESH: Duration = Duration::from_hours(24);
