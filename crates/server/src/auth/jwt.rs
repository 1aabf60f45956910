//! Verifies JWTs (RFC 7519) with the settings and keys of the issuer named in `iss`.

mod claims;
mod compact;
mod json;
mod key;
mod key_set;
mod keyring;
mod settings_check;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::SystemTime};

use serde_json::Value;

use self::{
    compact::Unverified,
    key_set::KeySet,
    keyring::{Keyring, Need},
};
use crate::{
    auth::{
        challenge::Challenge,
        fetch::Fetch,
        identity::AuthIdentity,
        settings::{AuthSettingsError, IssuerSettings},
    },
    http::DoorCode,
};

#[derive(Debug)]
pub(crate) struct JwtVerifier(Vec<Arc<Issuer>>);

#[derive(Debug)]
struct Issuer {
    settings: IssuerSettings,
    keyring: Keyring,
}

impl JwtVerifier {
    pub(crate) fn new(
        issuers: Vec<IssuerSettings>,
        fetch: Option<&Arc<dyn Fetch>>,
    ) -> Result<Self, AuthSettingsError> {
        Self(Vec::new()).followed_by(issuers, fetch)
    }

    /// Applies new settings. Unchanged issuers keep their cached keys.
    pub(crate) fn followed_by(
        &self,
        issuers: Vec<IssuerSettings>,
        fetch: Option<&Arc<dyn Fetch>>,
    ) -> Result<Self, AuthSettingsError> {
        settings_check::no_two_alike(&issuers)?;
        let compiled = issuers.into_iter().map(|settings| {
            if let Some(known) = self.0.iter().find(|known| known.settings == settings) {
                return Ok(Arc::clone(known));
            }
            let keyring = settings_check::keyring(&settings, fetch)?;
            Ok(Arc::new(Issuer { settings, keyring }))
        });
        Ok(Self(compiled.collect::<Result<_, AuthSettingsError>>()?))
    }

    pub(crate) fn issuers(&self) -> impl Iterator<Item = &IssuerSettings> {
        self.0.iter().map(|issuer| &issuer.settings)
    }

    /// Whether the issuer has the same settings as in `then`.
    pub(crate) fn believes_as(&self, then: &Self, name: &str) -> bool {
        let named = |issuers: &Self| issuers.0.iter().find(|issuer| issuer.settings.name == name).cloned();
        matches!((named(self), named(then)), (Some(now), Some(then)) if Arc::ptr_eq(&now, &then))
    }

    pub(crate) async fn verify(&self, token: &str, now: SystemTime) -> Result<AuthIdentity, Challenge> {
        let unverified = compact::read(token).map_err(|flaw| flaw.challenge(None))?;
        let named = unverified.claims.get("iss").and_then(Value::as_str);
        let issuer = self
            .0
            .iter()
            .find(|issuer| Some(issuer.settings.issuer.as_str()) == named)
            .ok_or_else(|| JwtError::Issuer.challenge(None))?;
        issuer.verify(&unverified, now).await
    }
}

impl Issuer {
    async fn verify(&self, token: &Unverified<'_>, now: SystemTime) -> Result<AuthIdentity, Challenge> {
        let name = Some(self.settings.name.as_str());
        if !self.settings.algorithms.contains(&token.algorithm) {
            return Err(JwtError::Algorithm.challenge(name));
        }
        let is_signed = self.is_signed(token, now).await.map_err(|why| self.unavailable(&why))?;
        if !is_signed {
            return Err(JwtError::Signature.challenge(name));
        }
        let identity = claims::identity(&token.claims, &self.settings, now).map_err(|flaw| {
            let challenge = flaw.challenge(name);
            // Only time has passed since the issuer said who it is.
            match claims::caller(&token.claims, &self.settings).filter(|_| flaw == JwtError::Expired) {
                Some(caller) => challenge.of_caller(&caller),
                None => challenge,
            }
        })?;
        self.check_scopes(&identity)?;
        Ok(identity)
    }

    /// The token is valid but lacks a scope. The challenge names the required ones (RFC 6750, 3.1).
    fn check_scopes(&self, identity: &AuthIdentity) -> Result<(), Challenge> {
        let required = &self.settings.required_scopes;
        if required.is_subset(&identity.caller.permissions) {
            return Ok(());
        }
        let needed: Vec<&str> = required.iter().map(String::as_str).collect();
        Err(Challenge::insufficient_scope(
            "the token lacks a required scope; get one with all required scopes",
        )
        .needing(needed.join(" "))
        .of_caller(&identity.caller.subject)
        .said_to_operator(format!("issuer `{}`: the token lacks a required scope", self.settings.name)))
    }

    async fn is_signed(&self, token: &Unverified<'_>, now: SystemTime) -> Result<bool, String> {
        let known = self.keyring.keys(Need::Known, now).await?;
        if let Some(verified) = try_keys(&known, token) {
            return Ok(verified);
        }
        let refreshed = self.keyring.keys(Need::Unknown, now).await?;
        Ok(try_keys(&refreshed, token).unwrap_or(false))
    }

    fn unavailable(&self, why: &str) -> Challenge {
        Challenge::new(DoorCode::Unavailable, "the keys to verify the token are unavailable; try again later")
            .said_to_operator(format!("no keys of issuer `{}`: {why}", self.settings.name))
    }
}

/// Returns `None` if no key of the set can have signed the token.
fn try_keys(keys: &KeySet, token: &Unverified<'_>) -> Option<bool> {
    let candidates = keys.candidates(token.kid.as_deref(), token.algorithm)?;
    Some(candidates.iter().any(|key| key.verifies(token.algorithm, token.message, token.signature)))
}

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum JwtError {
    Shape,
    Critical,
    Nested,
    Kind,
    Algorithm,
    Issuer,
    Signature,
    Audience,
    Expiry,
    Expired,
    NotYet,
    Time,
    Subject,
    Permissions,
}

impl JwtError {
    fn challenge(self, issuer: Option<&str>) -> Challenge {
        let code = if self == Self::Expired { DoorCode::TokenExpired } else { DoorCode::TokenInvalid };
        let said = self.detail();
        let to_operator = match issuer {
            Some(issuer) => format!("issuer `{issuer}`: {said}"),
            None => said.to_owned(),
        };
        Challenge::new(code, said).said_to_operator(to_operator)
    }

    const fn detail(self) -> &'static str {
        match self {
            Self::Shape => "the token is not a signed token in compact form",
            Self::Critical => "the token depends on an extension that is not understood",
            Self::Nested => "the token holds another token or is encrypted; send a plain signed one",
            Self::Kind => "the token was made for another purpose than access",
            Self::Algorithm => "the token is not signed with an algorithm that its issuer is configured for",
            Self::Issuer => "the token is not from an issuer that is trusted here",
            Self::Signature => "the token's signature does not verify",
            Self::Audience => {
                "the token is for another audience; ask the issuer for one with this resource as `aud`"
            }
            Self::Expiry => "the token has no `exp`; only tokens that expire are accepted",
            Self::Expired => "the token has expired; get a new one",
            Self::NotYet => "the token is not valid yet; check the clocks",
            Self::Time => "a time in the token is not a number of seconds",
            Self::Subject => "the token has no usable `sub`",
            Self::Permissions => "the permissions in the token are neither text nor a list of texts",
        }
    }
}
