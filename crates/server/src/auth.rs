//! Who is at the door? Local tokens, signed tokens of configured issuers, and, where somebody insists, nobody in particular.

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

use std::{collections::BTreeSet, fmt, net::IpAddr, sync::Arc, time::SystemTime};

use http::HeaderMap;
use toolgate_policy::Caller;

use self::{
    identity::{Namespace, is_sound_subject, subject},
    jwt::JwtVerifier,
    throttle::Throttle,
    tokens::TOKEN_PREFIX,
};
use crate::http::DoorCode;

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
pub(crate) use self::{metadata::ResourceMetadata, throttle::counted_as};

/// Answers for every request anew; keeps keys and counts failures, never tokens.
pub struct Authenticator {
    tokens: Option<Arc<dyn TokenVerifier>>,
    jwt: JwtVerifier,
    /// Whoever comes without a token.
    tokenless: Option<Identity>,
    throttle: Throttle,
}

impl Authenticator {
    pub fn new(settings: AuthSettings) -> Result<Self, AuthSettingsError> {
        let jwt = JwtVerifier::new(settings.issuers, settings.fetch.as_ref())?;
        let tokenless = tokenless(settings.danger_anonymous, settings.danger_local)?;
        Ok(Self { tokens: settings.tokens, jwt, tokenless, throttle: Throttle::new(settings.throttle) })
    }

    /// What these headers prove. The query, the body and every other header count for nothing.
    pub async fn authenticate(&self, headers: &HeaderMap, now: SystemTime) -> Result<Identity, Challenge> {
        match bearer::presented(headers)? {
            None => self.without_token(),
            Some(token) => self.verify(token, now).await,
        }
    }

    /// As `authenticate`, for an address that may be wrong only so often.
    pub async fn admit(
        &self,
        peer: IpAddr,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Result<Identity, Challenge> {
        let token = bearer::presented(headers).inspect_err(|_| self.throttle.failed(peer, now))?;
        // To come without a token is how a client asks for the challenge; it guesses nothing.
        let Some(token) = token else { return self.without_token() };
        // A good token passes however many wrong ones came from the same address, which may be a proxy's: nobody guesses
        // 256 bits. Whoever is wrong too often no longer learns that.
        let wrong = match self.verify(token, now).await {
            Err(wrong) if !matches!(wrong.code, DoorCode::Unavailable | DoorCode::InsufficientScope) => wrong,
            other => return other,
        };
        let wait = self.throttle.wait(peer, now);
        self.throttle.failed(peer, now);
        Err(wait.map_or(wrong, |wait| {
            Challenge::new(DoorCode::RateLimited, "too many wrong tokens came from this address").after(wait)
        }))
    }

    /// Is what a caller was let in by still good? The token itself is not needed, and nobody has kept it.
    pub(crate) fn still_lets_in(&self, how: &How, expires: Option<SystemTime>, now: SystemTime) -> bool {
        let is_over = expires.is_some_and(|expires| expires <= now);
        let is_known = match how {
            How::Token { id } => {
                // A store that cannot tell lets nobody in, and keeps nobody in.
                self.tokens.as_ref().is_some_and(|tokens| tokens.is_good(id, now).unwrap_or(false))
            }
            // A signed token cannot be taken back, and who needed none has none to lose.
            How::Jwt { .. } | How::Anonymous | How::Local => true,
        };
        is_known && !is_over
    }

    /// `None` without issuers: there is no authorization server to point to.
    pub(crate) fn metadata(&self) -> Option<ResourceMetadata> {
        ResourceMetadata::of(self.jwt.issuers())
    }

    async fn verify(&self, token: &str, now: SystemTime) -> Result<Identity, Challenge> {
        if token.starts_with(TOKEN_PREFIX) {
            self.verify_local(token, now)
        } else {
            self.jwt.verify(token, now).await
        }
    }

    fn verify_local(&self, token: &str, now: SystemTime) -> Result<Identity, Challenge> {
        // One text for every reason: who guesses must not learn which half of a guess was right.
        let invalid = || Challenge::new(DoorCode::TokenInvalid, "the token is not valid");
        let tokens = self.tokens.as_ref().ok_or_else(invalid)?;
        let found = tokens.verify(token, now).map_err(|why| {
            Challenge::new(DoorCode::Unavailable, "tokens cannot be verified at the moment; try again later")
                .said_to_operator(format!("the token store cannot tell: {why}"))
        })?;
        found.and_then(|known| known.into_identity(now)).ok_or_else(invalid)
    }

    fn without_token(&self) -> Result<Identity, Challenge> {
        self.tokenless.clone().ok_or_else(|| {
            Challenge::new(
                DoorCode::TokenMissing,
                "send `Authorization: Bearer` with a token of this gateway or its issuer",
            )
        })
    }
}

/// One of the two at most: which of them a request without a token comes from must not be a matter of order.
fn tokenless(
    anonymous: Option<Anonymous>,
    local: Option<Local>,
) -> Result<Option<Identity>, AuthSettingsError> {
    match (anonymous, local) {
        (None, None) => Ok(None),
        (Some(anonymous), None) => nobody_in_particular(anonymous).map(Some),
        (None, Some(local)) if is_sound_subject(&local.name) => {
            Ok(Some(Identity::local(&local.name, local.permissions, Role::Caller)))
        }
        (None, Some(_)) => Err(AuthSettingsError("the local caller needs a name that can be read".into())),
        (Some(_), Some(_)) => Err(AuthSettingsError(
            "who comes without a token cannot be both the local caller and the anonymous one".into(),
        )),
    }
}

fn nobody_in_particular(anonymous: Anonymous) -> Result<Identity, AuthSettingsError> {
    if !is_sound_subject(&anonymous.name) {
        return Err(AuthSettingsError("the anonymous caller needs a name that can be read".into()));
    }
    let permissions: BTreeSet<String> = anonymous.permissions;
    let caller = Caller::new(subject(Namespace::Anonymous, &anonymous.name), permissions);
    Ok(Identity { caller, role: Role::Caller, how: How::Anonymous, expires: None })
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator")
            .field("tokens", &self.tokens.is_some())
            .field("jwt", &self.jwt)
            .field("tokenless", &self.tokenless)
            .finish_non_exhaustive()
    }
}
