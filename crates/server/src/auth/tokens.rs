//! Tokens of our own: what the door asks of the store that keeps them.

use std::{collections::BTreeSet, time::SystemTime};

use toolgate_policy::Caller;

use crate::auth::identity::{How, Identity, Namespace, Role, is_sound_subject, subject};

/// Whose is this token? The store keeps only hashes and compares them in constant time.
pub trait TokenVerifier: Send + Sync {
    /// `Ok(None)` alike for tokens that are unknown, revoked, expired or misshapen; `Err` where the store cannot tell.
    fn verify(&self, presented: &str, now: SystemTime) -> Result<Option<TokenIdentity>, String>;

    /// Is the token with this public id still neither revoked nor expired? For callers who were let in by it.
    fn is_good(&self, id: &str, now: SystemTime) -> Result<bool, String>;
}

/// What the store knows of a good token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenIdentity {
    /// Public: appears in the journal, proves nothing.
    pub id: String,
    pub subject: String,
    pub permissions: BTreeSet<String>,
    pub role: Role,
    pub expires: Option<SystemTime>,
}

impl TokenIdentity {
    /// `None` where the store hands out what it should never have kept; the door then stays shut.
    pub(crate) fn into_identity(self, now: SystemTime) -> Option<Identity> {
        let is_over = self.expires.is_some_and(|expires| expires <= now);
        if is_over || !is_sound_subject(&self.subject) {
            return None;
        }
        Some(Identity {
            caller: Caller::new(subject(Namespace::Token, &self.subject), self.permissions),
            role: self.role,
            how: How::Token { id: self.id },
            expires: self.expires,
        })
    }
}

/// Tokens of our own start with this, so that a token's kind is known before anything verifies it.
pub(crate) const TOKEN_PREFIX: &str = "tg_";
