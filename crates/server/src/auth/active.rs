//! The active authentication settings, replaced as a whole when they change.

use std::{collections::BTreeSet, fmt, sync::Arc, time::SystemTime};

use toolgate_policy::Caller;

use super::{
    challenge::Challenge,
    identity::{AuthIdentity, How, Namespace, Role, is_sound_subject, subject},
    jwt::JwtVerifier,
    settings::{Anonymous, AuthSettings, AuthSettingsError, Local},
    tokens::{TOKEN_PREFIX, TokenVerifier},
};
use crate::http::DoorCode;

pub(crate) struct ActiveAuth {
    pub(super) tokens: Option<Arc<dyn TokenVerifier>>,
    pub(super) jwt: JwtVerifier,
    /// The caller of requests without a token.
    tokenless: Option<AuthIdentity>,
}

impl ActiveAuth {
    /// Unchanged issuers keep their cached keys.
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

    pub(super) async fn verify(&self, token: &str, now: SystemTime) -> Result<AuthIdentity, Challenge> {
        if token.starts_with(TOKEN_PREFIX) {
            self.verify_local(token, now)
        } else {
            self.jwt.verify(token, now).await
        }
    }

    fn verify_local(&self, token: &str, now: SystemTime) -> Result<AuthIdentity, Challenge> {
        // One text for every reason, so a guess reveals nothing.
        let invalid = || Challenge::new(DoorCode::TokenInvalid, "the token is not valid");
        let tokens = self.tokens.as_ref().ok_or_else(invalid)?;
        let found = tokens.verify(token, now).map_err(|why| {
            Challenge::new(DoorCode::Unavailable, "tokens cannot be verified at the moment; try again later")
                .said_to_operator(format!("the token store failed: {why}"))
        })?;
        found.and_then(|known| known.into_identity(now)).ok_or_else(invalid)
    }

    pub(super) fn without_token(&self) -> Result<AuthIdentity, Challenge> {
        self.tokenless.clone().ok_or_else(|| {
            Challenge::new(
                DoorCode::TokenMissing,
                "send `Authorization: Bearer` with a token of this gateway or its issuer",
            )
        })
    }

    /// Whether a caller authenticated under the settings `then` would still be accepted.
    pub(super) fn still_lets_in(&self, identity: &AuthIdentity, then: &Self, now: SystemTime) -> bool {
        let is_over = identity.expires.is_some_and(|expires| expires <= now);
        let is_known = match &identity.how {
            How::Token { id } => {
                // If the store fails, the token counts as invalid.
                self.tokens.as_ref().is_some_and(|tokens| tokens.is_good(id, now).unwrap_or(false))
            }
            // JWTs cannot be revoked and are not kept. The issuer's settings must therefore be unchanged.
            How::Jwt { issuer } => self.jwt.believes_as(&then.jwt, issuer),
            How::Anonymous | How::Local => self.tokenless.as_ref() == Some(identity),
        };
        is_known && !is_over
    }
}

/// At most one of the two may be configured.
fn tokenless(
    anonymous: Option<Anonymous>,
    local: Option<Local>,
) -> Result<Option<AuthIdentity>, AuthSettingsError> {
    match (anonymous, local) {
        (None, None) => Ok(None),
        (Some(anonymous), None) => anonymous_identity(anonymous).map(Some),
        (None, Some(local)) if is_sound_subject(&local.name) => {
            Ok(Some(AuthIdentity::local(&local.name, local.permissions, Role::Caller)))
        }
        (None, Some(_)) => Err(AuthSettingsError("the local caller needs a readable name".into())),
        (Some(_), Some(_)) => Err(AuthSettingsError(
            "configure either a local or an anonymous caller for requests without a token, not both".into(),
        )),
    }
}

fn anonymous_identity(anonymous: Anonymous) -> Result<AuthIdentity, AuthSettingsError> {
    if !is_sound_subject(&anonymous.name) {
        return Err(AuthSettingsError("the anonymous caller needs a readable name".into()));
    }
    let permissions: BTreeSet<String> = anonymous.permissions;
    let caller = Caller::new(subject(Namespace::Anonymous, &anonymous.name), permissions);
    Ok(AuthIdentity { caller, role: Role::Caller, how: How::Anonymous, expires: None })
}

impl fmt::Debug for ActiveAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveAuth")
            .field("tokens", &self.tokens.is_some())
            .field("jwt", &self.jwt)
            .field("tokenless", &self.tokenless)
            .finish()
    }
}
