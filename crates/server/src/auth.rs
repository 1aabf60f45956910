//! Authentication: tokens of this gateway, JWTs of configured issuers, and optionally a caller without a token.

mod active;
mod bearer;
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

pub(crate) use self::{active::ActiveAuth, metadata::ResourceMetadata, throttle::counted_as};
pub use self::{
    challenge::Challenge,
    fetch::Fetch,
    identity::{AuthIdentity, How, Role},
    settings::{
        Algorithm, Anonymous, AuthSettings, AuthSettingsError, IssuerSettings, KeySettings, Local, PemKey,
        Secret, ThrottleSettings, issuer_name,
    },
    standing::CallerStanding,
    tokens::{TokenIdentity, TokenVerifier},
};

/// Authenticates each request. Caches issuer keys and counts failures, but keeps no tokens.
pub struct Authenticator {
    active: RwLock<Arc<ActiveAuth>>,
    throttle: Throttle,
}

/// Valid settings that are not active yet.
#[derive(Debug)]
pub struct PreparedAuth(Arc<ActiveAuth>);

impl Authenticator {
    pub fn new(settings: AuthSettings) -> Result<Self, AuthSettingsError> {
        let throttle = Throttle::new(settings.throttle);
        Ok(Self { active: RwLock::new(Arc::new(ActiveAuth::new(settings, None)?)), throttle })
    }

    /// Checks new settings; `replace` activates them. Unchanged issuers keep their keys, and failure counts stay.
    pub fn prepare(&self, settings: AuthSettings) -> Result<PreparedAuth, AuthSettingsError> {
        ActiveAuth::new(settings, Some(&self.active())).map(Arc::new).map(PreparedAuth)
    }

    /// Activates the settings, also for open streams and running calls.
    pub fn replace(&self, prepared: PreparedAuth) {
        *self.active.write().unwrap_or_else(PoisonError::into_inner) = prepared.0;
    }

    /// Authenticates by the `Authorization` header only.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<AuthIdentity, Challenge> {
        let active = self.active();
        match bearer::presented(headers)? {
            None => active.without_token(),
            Some(token) => active.verify(token, now).await,
        }
    }

    /// As `authenticate`, for a token from elsewhere than a header.
    pub async fn verify(&self, token: &str, now: SystemTime) -> Result<AuthIdentity, Challenge> {
        self.active().verify(token, now).await
    }

    /// As `authenticate`, and limits failed attempts per address.
    pub async fn admit(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<AuthIdentity, Challenge> {
        let active = self.active();
        let token = bearer::presented(headers).inspect_err(|_| self.throttle.failed(peer, now))?;
        // Clients without a token ask for the challenge. That is not a failed attempt.
        let Some(token) = token else { return active.without_token() };
        // A valid token always passes, because many clients may share a proxy's address. 256 bits cannot be guessed.
        let wrong = match active.verify(token, now).await {
            Err(wrong) if !matches!(wrong.code, DoorCode::Unavailable | DoorCode::InsufficientScope) => wrong,
            other => return other,
        };
        let wait = self.throttle.wait(peer, now);
        self.throttle.failed(peer, now);
        Err(wait.map_or(wrong, |wait| {
            Challenge::new(DoorCode::RateLimited, "too many wrong tokens came from this address").after(wait)
        }))
    }

    /// The active settings. Take them before authenticating: changes during authentication then count as changes.
    pub(crate) fn active(&self) -> Arc<ActiveAuth> {
        Arc::clone(&self.active.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the caller's authentication is still valid. This needs no token; tokens are not kept.
    pub(crate) fn still_lets_in(&self, identity: &AuthIdentity, then: &ActiveAuth, now: SystemTime) -> bool {
        self.active().still_lets_in(identity, then, now)
    }

    /// `None` without issuers, because the document names authorization servers.
    pub(crate) fn metadata(&self) -> Option<ResourceMetadata> {
        ResourceMetadata::of(self.active().jwt.issuers())
    }
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("active", &self.active()).finish_non_exhaustive()
    }
}
