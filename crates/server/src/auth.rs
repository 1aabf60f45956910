//! Who is at the door? Local tokens, signed tokens of configured issuers, and, where somebody insists, nobody in particular.

mod bearer;
mod believed;
mod challenge;
mod fetch;
mod identity;
mod jwt;
mod metadata;
mod settings;
mod standing;
#[cfg(test)]
mod tests;
mod throttle;
mod tokens;

use std::{
    fmt,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
    time::SystemTime,
};

use http::HeaderMap;

use self::throttle::Throttle;
use crate::http::DoorCode;

pub(crate) use self::{believed::Believed, metadata::ResourceMetadata, throttle::counted_as};
pub use self::{
    challenge::Challenge,
    fetch::Fetch,
    identity::{How, Identity, Role},
    settings::{
        Algorithm, Anonymous, AuthSettings, AuthSettingsError, IssuerSettings, KeySettings, Local, PemKey,
        Secret, ThrottleSettings, issuer_name,
    },
    standing::CallerStanding,
    tokens::{TokenIdentity, TokenVerifier},
};

/// Answers for every request anew; keeps keys and counts failures, never tokens.
pub struct Authenticator {
    believed: RwLock<Arc<Believed>>,
    throttle: Throttle,
}

/// Settings that were found sound and are not in force yet.
#[derive(Debug)]
pub struct Prepared(Arc<Believed>);

impl Authenticator {
    pub fn new(settings: AuthSettings) -> Result<Self, AuthSettingsError> {
        let throttle = Throttle::new(settings.throttle);
        Ok(Self { believed: RwLock::new(Arc::new(Believed::new(settings, None)?)), throttle })
    }

    /// Other settings, to be put in force by `replace`. Issuers that stay as they are keep their keys; how often an address may
    /// be wrong, and was, stays.
    pub fn prepare(&self, settings: AuthSettings) -> Result<Prepared, AuthSettingsError> {
        Believed::new(settings, Some(&self.believed())).map(Arc::new).map(Prepared)
    }

    /// From now on, also for what is open: who would not be let in as they were is not kept in.
    pub fn replace(&self, prepared: Prepared) {
        *self.believed.write().unwrap_or_else(PoisonError::into_inner) = prepared.0;
    }

    /// What these headers prove. The query, the body and every other header count for nothing.
    pub async fn authenticate(&self, headers: &HeaderMap, now: SystemTime) -> Result<Identity, Challenge> {
        let believed = self.believed();
        match bearer::presented(headers)? {
            None => believed.without_token(),
            Some(token) => believed.verify(token, now).await,
        }
    }

    /// As `authenticate`, for a token that did not come in a header.
    pub async fn verify(&self, token: &str, now: SystemTime) -> Result<Identity, Challenge> {
        self.believed().verify(token, now).await
    }

    /// As `authenticate`, for an address that may be wrong only so often.
    pub async fn admit(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<Identity, Challenge> {
        let believed = self.believed();
        let token = bearer::presented(headers).inspect_err(|_| self.throttle.failed(peer, now))?;
        // To come without a token is how a client asks for the challenge; it guesses nothing.
        let Some(token) = token else { return believed.without_token() };
        // A good token passes however many wrong ones came from the same address, which may be a proxy's: nobody guesses
        // 256 bits. Whoever is wrong too often no longer learns that.
        let wrong = match believed.verify(token, now).await {
            Err(wrong) if !matches!(wrong.code, DoorCode::Unavailable | DoorCode::InsufficientScope) => wrong,
            other => return other,
        };
        let wait = self.throttle.wait(peer, now);
        self.throttle.failed(peer, now);
        Err(wait.map_or(wrong, |wait| {
            Challenge::new(DoorCode::RateLimited, "too many wrong tokens came from this address").after(wait)
        }))
    }

    /// The settings of this moment. Whoever wants to know later whether a caller may stay takes them before asking who it is:
    /// then settings that change in between count as changed.
    pub(crate) fn believed(&self) -> Arc<Believed> {
        Arc::clone(&self.believed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Is what a caller was let in by still good? The token itself is not needed, and nobody has kept it.
    pub(crate) fn still_lets_in(&self, identity: &Identity, then: &Believed, now: SystemTime) -> bool {
        self.believed().still_lets_in(identity, then, now)
    }

    /// `None` without issuers: there is no authorization server to point to.
    pub(crate) fn metadata(&self) -> Option<ResourceMetadata> {
        ResourceMetadata::of(self.believed().jwt.issuers())
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("believed", &self.believed()).finish_non_exhaustive()
    }
}
