//! Whom are the settings of this moment ready to believe? Swapped whole when they change.

use std::{collections::BTreeSet, fmt, sync::Arc, time::SystemTime};

use toolgate_policy::Caller;

use super::{
    challenge::Challenge,
    identity::{How, Identity, Namespace, Role, is_sound_subject, subject},
    jwt::JwtVerifier,
    settings::{Anonymous, AuthSettings, AuthSettingsError, Local},
    tokens::{TOKEN_PREFIX, TokenVerifier},
};
use crate::http::DoorCode;

pub(crate) struct Believed {
    pub(super) tokens: Option<Arc<dyn TokenVerifier>>,
    pub(super) jwt: JwtVerifier,
    /// Whoever comes without a token.
    tokenless: Option<Identity>,
}

impl Believed {
    /// What stays as it was before keeps what it has learnt, such as the keys of an issuer.
    pub(super) fn new(settings: AuthSettings, before: Option<&Self>) -> Result<Self, AuthSettingsError> {
        let fetch = settings.fetch.as_ref();
        Ok(Self {
            jwt: match before {
                None => JwtVerifier::new(settings.issuers, fetch)?,
                Some(before) => before.jwt.followed_by(settings.issuers, fetch)?,
            },
            tokenless: tokenless(settings.danger_anonymous, settings.danger_local)?,
            tokens: settings.tokens,
        })
    }

    pub(super) async fn verify(&self, token: &str, now: SystemTime) -> Result<Identity, Challenge> {
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

    pub(super) fn without_token(&self) -> Result<Identity, Challenge> {
        self.tokenless.clone().ok_or_else(|| {
            Challenge::new(
                DoorCode::TokenMissing,
                "send `Authorization: Bearer` with a token of this gateway or its issuer",
            )
        })
    }

    /// Would somebody who was let in by the settings of `then` still be?
    pub(super) fn still_lets_in(&self, identity: &Identity, then: &Self, now: SystemTime) -> bool {
        let is_over = identity.expires.is_some_and(|expires| expires <= now);
        let is_known = match &identity.how {
            How::Token { id } => {
                // A store that cannot tell lets nobody in, and keeps nobody in.
                self.tokens.as_ref().is_some_and(|tokens| tokens.is_good(id, now).unwrap_or(false))
            }
            // A signed token cannot be taken back. It is not kept either, so that nobody can say what other settings would
            // make of it.
            How::Jwt { issuer } => self.jwt.believes_as(&then.jwt, issuer),
            How::Anonymous | How::Local => self.tokenless.as_ref() == Some(identity),
        };
        is_known && !is_over
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

impl fmt::Debug for Believed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Believed")
            .field("tokens", &self.tokens.is_some())
            .field("jwt", &self.jwt)
            .field("tokenless", &self.tokenless)
            .finish()
    }
}
