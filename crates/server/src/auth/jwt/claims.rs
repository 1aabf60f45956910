//! Checks the claims of a token with a valid signature.

use std::{
    collections::BTreeSet,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Map, Value};
use toolgate_policy::Caller;

use super::JwtError;
use crate::auth::{
    identity::{AuthIdentity, How, Namespace, Role, is_sound_subject, subject},
    settings::IssuerSettings,
};

pub(super) fn identity(
    claims: &Map<String, Value>,
    issuer: &IssuerSettings,
    now: SystemTime,
) -> Result<AuthIdentity, JwtError> {
    if claims.get("iss").and_then(Value::as_str) != Some(&issuer.issuer) {
        return Err(JwtError::Issuer);
    }
    if !is_for_us(claims.get("aud"), &issuer.audiences) {
        return Err(JwtError::Audience);
    }
    let expires = check_times(claims, issuer.clock_skew, now)?;
    let caller = caller(claims, issuer).ok_or(JwtError::Subject)?;
    let permissions = permissions(claims, issuer.permissions_claim.as_deref())?;
    let is_admin = issuer.admin_permission.as_ref().is_some_and(|needed| permissions.contains(needed));
    Ok(AuthIdentity {
        caller: Caller::new(caller, permissions),
        role: if is_admin { Role::Admin } else { Role::Caller },
        how: How::Jwt { issuer: issuer.name.clone() },
        expires: Some(expires),
    })
}

/// The caller that a token of this issuer names.
pub(super) fn caller(claims: &Map<String, Value>, issuer: &IssuerSettings) -> Option<String> {
    let name = claims.get(&issuer.subject_claim).and_then(Value::as_str);
    let name = name.filter(|name| is_sound_subject(name))?;
    Some(subject(Namespace::Jwt { issuer: &issuer.name }, name))
}

/// A string or a list of strings (RFC 7519, 4.1.3). Other lists are rejected.
fn is_for_us(audience: Option<&Value>, ours: &BTreeSet<String>) -> bool {
    match audience {
        Some(Value::String(one)) => ours.contains(one),
        Some(Value::Array(list)) => {
            list.iter().all(Value::is_string)
                && list.iter().filter_map(Value::as_str).any(|one| ours.contains(one))
        }
        _ => false,
    }
}

/// Requires `exp`, and rejects `nbf` and `iat` in the future. Returns when the token expires.
fn check_times(claims: &Map<String, Value>, skew: Duration, now: SystemTime) -> Result<SystemTime, JwtError> {
    let expires = instant(claims, "exp")?.ok_or(JwtError::Expiry)?.checked_add(skew);
    let expires = expires.filter(|expires| *expires > now).ok_or(JwtError::Expired)?;
    for name in ["nbf", "iat"] {
        let is_ahead = instant(claims, name)?
            .is_some_and(|start| now.checked_add(skew).is_none_or(|latest| start > latest));
        if is_ahead {
            return Err(JwtError::NotYet);
        }
    }
    Ok(expires)
}

/// Seconds since 1970, with or without a fraction; text, negative numbers and the year 10000 are not times.
fn instant(claims: &Map<String, Value>, name: &str) -> Result<Option<SystemTime>, JwtError> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    let seconds =
        value.as_f64().filter(|seconds| (0.0..MAX_SECONDS).contains(seconds)).ok_or(JwtError::Time)?;
    Ok(Some(UNIX_EPOCH + Duration::from_secs_f64(seconds)))
}

fn permissions(claims: &Map<String, Value>, claim: Option<&str>) -> Result<BTreeSet<String>, JwtError> {
    let mut found = BTreeSet::new();
    for value in [claims.get("scope"), claim.and_then(|claim| at(claims, claim))].into_iter().flatten() {
        match value {
            Value::String(text) => found.extend(text.split_ascii_whitespace().map(str::to_owned)),
            Value::Array(list) => {
                for item in list {
                    found.insert(item.as_str().ok_or(JwtError::Permissions)?.to_owned());
                }
            }
            _ => return Err(JwtError::Permissions),
        }
    }
    let is_sound = found.len() <= MAX_PERMISSIONS
        && found
            .iter()
            .all(|permission| permission.len() <= MAX_PERMISSION_BYTES && is_sound_subject(permission));
    if is_sound { Ok(found) } else { Err(JwtError::Permissions) }
}

fn at<'c>(claims: &'c Map<String, Value>, claim: &str) -> Option<&'c Value> {
    let Some(pointer) = claim.strip_prefix('/') else { return claims.get(claim) };
    let mut parts = pointer.split('/').map(|part| part.replace("~1", "/").replace("~0", "~"));
    let first = claims.get(&parts.next()?)?;
    parts.try_fold(first, |value, part| value.as_object()?.get(&part))
}

/// The first second of the year 10000.
const MAX_SECONDS: f64 = 253_402_300_800.0;
const MAX_PERMISSIONS: usize = 256;
const MAX_PERMISSION_BYTES: usize = 128;
