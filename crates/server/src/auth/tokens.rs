//! Tokens of this gateway: the interface to the store that keeps them.

use std::{collections::BTreeSet, time::SystemTime};

use toolgate_policy::Caller;

use crate::auth::identity::{AuthIdentity, How, Namespace, Role, is_sound_subject, subject};

/// Verifies tokens. The store keeps only hashes and compares them in constant time.
pub trait TokenVerifier: Send + Sync {
    /// Returns `Ok(None)` for unknown, revoked, expired and malformed tokens, and `Err` if the store fails.
    fn verify(&self, presented: &str, now: SystemTime) -> Result<Option<TokenIdentity>, String>;

    /// Whether the token with this public id is neither revoked nor expired.
    fn is_good(&self, id: &str, now: SystemTime) -> Result<bool, String>;
}

/// A valid token, as stored.
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
    /// Returns `None` for an expired token or a deceptive subject, which the store should not return.
    pub(crate) fn into_identity(self, now: SystemTime) -> Option<AuthIdentity> {
        let is_over = self.expires.is_some_and(|expires| expires <= now);
        if is_over || !is_sound_subject(&self.subject) {
            return None;
        }
        Some(AuthIdentity {
            caller: Caller::new(subject(Namespace::Token, &self.subject), self.permissions),
            role: self.role,
            how: How::Token { id: self.id },
            expires: self.expires,
        })
    }
}

/// Prefix of tokens of this gateway. It separates them from JWTs before verification.
pub(crate) const TOKEN_PREFIX: &str = "tg_";
