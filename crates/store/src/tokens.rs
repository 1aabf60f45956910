//! Local API tokens: shown once, stored as a hash, revocable, with an expiry.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::{Duration, SystemTime},
};

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use subtle::ConstantTimeEq as _;
use toolgate_spec::is_deceptive;

use crate::state::{SharedState, StateDb, StateError, StateVersion, from_ms, lock, to_ms, unreadable};

#[cfg(test)]
mod tests;
mod text;

pub use text::TokenText;

/// The settings of a new token.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// For people; unique among the tokens that are not revoked.
    pub name: String,
    /// The caller that the token authenticates.
    pub subject: String,
    pub permissions: Vec<String>,
    pub role: TokenRole,
    pub expires: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum TokenRole {
    /// May call tools.
    Caller,
    /// May also decide approvals and publish tools.
    Admin,
}

impl TokenRole {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Admin => "admin",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Caller, Self::Admin].into_iter().find(|role| role.name() == name)
    }
}

/// A stored token, without its secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredToken {
    pub id: String,
    pub name: String,
    pub subject: String,
    pub permissions: Vec<String>,
    pub role: TokenRole,
    pub created: SystemTime,
    pub expires: Option<SystemTime>,
    /// Accurate to a minute.
    pub last_used: Option<SystemTime>,
    pub revoked: Option<SystemTime>,
}

/// The caller that a valid token authenticates.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerifiedToken {
    pub id: String,
    pub name: String,
    pub subject: String,
    pub permissions: Vec<String>,
    pub role: TokenRole,
}

impl StateDb {
    /// The returned text is not stored and cannot be shown again.
    pub fn create_token(
        &self,
        new: NewToken,
        now: SystemTime,
    ) -> Result<(StoredToken, TokenText), StateError> {
        check_new(&new)?;
        let (text, parts) = TokenText::random().map_err(StateError::NoRandomness)?;
        let is_new = self.shared.write(|transaction| {
            tidy(transaction, now)?;
            let is_taken = transaction
                .prepare_cached("SELECT 1 FROM tokens WHERE name = ?1 AND revoked IS NULL")?
                .exists([&new.name])?;
            if is_taken {
                return Ok(false);
            }
            transaction.execute(
                "INSERT INTO tokens (id, name, secret_hash, subject, permissions, role, created, expires)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                params![
                    parts.id,
                    new.name,
                    parts.secret_hash,
                    new.subject,
                    serde_json::json!(new.permissions).to_string(),
                    new.role.name(),
                    to_ms(now),
                    new.expires.map(to_ms),
                ],
            )?;
            Ok(true)
        })?;
        if !is_new {
            let problem = format!("a token named `{}` exists; revoke it, or choose another name", new.name);
            return Err(StateError::Invalid(problem));
        }
        let NewToken { name, subject, permissions, role, expires } = new;
        let token = StoredToken {
            id: parts.id,
            name,
            subject,
            permissions,
            role,
            created: from_ms(to_ms(now)),
            expires: expires.map(|time| from_ms(to_ms(time))),
            last_used: None,
            revoked: None,
        };
        Ok((token, text))
    }

    /// Returns `None` for an unknown, wrong, revoked or expired token, without saying which. Uses the cache only if no process
    /// has committed since it was filled, so a revocation takes effect at once.
    pub fn verify_token(&self, text: &str, now: SystemTime) -> Result<Option<VerifiedToken>, StateError> {
        // Typing errors and guesses fail the checksum and never reach the database.
        let Some(parts) = text::parse(text) else {
            return Ok(None);
        };
        let version = self.shared.version()?;
        if let Some(cached) = self.shared.cached_token(&parts, version)
            && is_live(&cached.token, now)
        {
            self.shared.token_was_used(&cached.token, now);
            return Ok(Some(cached.token.clone().into()));
        }
        let found = self.shared.read(|connection| {
            connection
                .prepare_cached("SELECT * FROM tokens WHERE id = ?1")?
                .query_row([&parts.id], |row| Ok((row.get::<_, [u8; 32]>("secret_hash")?, token(row)?)))
                .optional()
        })?;
        // Compare for an unknown id too: it must take as long as a wrong secret.
        let (hash, token) = found.map_or(([0; 32], None), |(hash, token)| (hash, Some(token)));
        let is_same = bool::from(hash.ct_eq(&parts.secret_hash));
        let Some(token) = token.filter(|token| is_same && is_live(token, now)) else {
            return Ok(None);
        };
        self.shared.token_was_used(&token, now);
        if let Some(version) = version {
            self.shared.remember(CachedToken { version, secret_hash: hash, token: token.clone() });
        }
        Ok(Some(token.into()))
    }

    /// Checks that the token is neither revoked nor expired. Long-lived connections call this repeatedly, so it does not count
    /// as a use.
    pub fn is_token_good(&self, id: &str, now: SystemTime) -> Result<bool, StateError> {
        let found = self.shared.read(|connection| {
            connection.prepare_cached("SELECT * FROM tokens WHERE id = ?1")?.query_row([id], token).optional()
        })?;
        Ok(found.is_some_and(|token| is_live(&token, now)))
    }

    /// All tokens, newest first, including revoked and expired ones.
    pub fn list_tokens(&self) -> Result<Vec<StoredToken>, StateError> {
        self.shared.note_used_tokens();
        self.shared.read(|connection| {
            connection
                .prepare_cached("SELECT * FROM tokens ORDER BY created DESC, id")?
                .query_map([], token)?
                .collect()
        })
    }

    /// By id or name. `None`: no such token, or it is already revoked.
    pub fn revoke_token(&self, id_or_name: &str, now: SystemTime) -> Result<Option<StoredToken>, StateError> {
        self.shared.write(|transaction| {
            // A name may equal another token's id; the id wins.
            transaction
                .prepare_cached(
                    "UPDATE tokens SET revoked = ?2 WHERE id = (SELECT id FROM tokens
                     WHERE revoked IS NULL AND (id = ?1 OR name = ?1) ORDER BY id = ?1 DESC LIMIT 1) RETURNING *",
                )?
                .query_row(params![id_or_name, to_ms(now)], token)
                .optional()
        })
    }
}

/// By token id.
pub(crate) type TokenCache = HashMap<String, Arc<CachedToken>>;

/// A cached token, with the version at which it was read.
#[derive(Debug)]
pub(crate) struct CachedToken {
    version: StateVersion,
    secret_hash: [u8; 32],
    token: StoredToken,
}

impl SharedState {
    /// Requires the correct secret. A wrong one goes to the database, so it takes as long as an unknown id.
    fn cached_token(&self, parts: &text::Parts, version: Option<StateVersion>) -> Option<Arc<CachedToken>> {
        let cached = self.token_cache.read().unwrap_or_else(PoisonError::into_inner);
        let cached = cached.get(&parts.id).filter(|cached| Some(cached.version) == version)?;
        bool::from(cached.secret_hash.ct_eq(&parts.secret_hash)).then(|| Arc::clone(cached))
    }

    fn remember(&self, cached: CachedToken) {
        let mut all = self.token_cache.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_CACHED {
            all.clear();
        }
        all.insert(cached.token.id.clone(), Arc::new(cached));
    }

    /// Queues the use for the background thread, so requests do not wait for the disk. At most once a minute per token.
    fn token_was_used(&self, token: &StoredToken, now: SystemTime) {
        let is_recent = token
            .last_used
            .is_some_and(|last| now.duration_since(last).is_ok_and(|passed| passed.as_millis() < MINUTE_MS));
        if !is_recent {
            lock(&self.used_tokens).insert(token.id.clone(), to_ms(now));
        }
    }

    pub(crate) fn note_used_tokens(&self) {
        let used = std::mem::take(&mut *lock(&self.used_tokens));
        if used.is_empty() {
            return;
        }
        // Ignore a failure: the time of last use is only informational.
        let _ = self.write(|transaction| {
            let mut update = transaction.prepare_cached("UPDATE tokens SET last_used = ?2 WHERE id = ?1")?;
            used.iter().try_for_each(|(id, at)| update.execute(params![id, at]).map(|_| ()))
        });
    }
}

impl From<StoredToken> for VerifiedToken {
    fn from(token: StoredToken) -> Self {
        let StoredToken { id, name, subject, permissions, role, .. } = token;
        Self { id, name, subject, permissions, role }
    }
}

fn is_live(token: &StoredToken, now: SystemTime) -> bool {
    token.revoked.is_none() && token.expires.is_none_or(|expires| now < expires)
}

/// Revokes expired tokens, which frees their names, and deletes those revoked long ago.
fn tidy(transaction: &Transaction<'_>, now: SystemTime) -> rusqlite::Result<()> {
    let now_ms = to_ms(now);
    transaction
        .execute("UPDATE tokens SET revoked = ?1 WHERE revoked IS NULL AND expires <= ?1", [now_ms])?;
    let too_old = to_ms(now.checked_sub(KEPT).unwrap_or(SystemTime::UNIX_EPOCH));
    transaction.execute("DELETE FROM tokens WHERE revoked < ?1", [too_old])?;
    Ok(())
}

fn check_new(new: &NewToken) -> Result<(), StateError> {
    for (what, text) in [("name", &new.name), ("subject", &new.subject)] {
        // The same rule as for callers' names at login: another token would never be accepted.
        let is_valid = !text.is_empty() && text.trim() == text && !text.chars().any(is_deceptive);
        if !is_valid || text.len() > MAX_TEXT_BYTES {
            return Err(StateError::Invalid(format!(
                "the {what} of a token must have 1 to {MAX_TEXT_BYTES} bytes, without surrounding spaces, invisible or reordering characters"
            )));
        }
    }
    Ok(())
}

fn token(row: &Row<'_>) -> rusqlite::Result<StoredToken> {
    let permissions: String = row.get("permissions")?;
    let role: String = row.get("role")?;
    let time = |column: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(from_ms));
    Ok(StoredToken {
        id: row.get("id")?,
        name: row.get("name")?,
        subject: row.get("subject")?,
        permissions: serde_json::from_str(&permissions)
            .map_err(|_| unreadable("the permissions of a token"))?,
        role: TokenRole::from_name(&role).ok_or_else(|| unreadable("the role of a token"))?,
        created: from_ms(row.get("created")?),
        expires: time("expires")?,
        last_used: time("last_used")?,
        revoked: time("revoked")?,
    })
}

/// How long a revoked token stays listed.
const KEPT: Duration = Duration::from_hours(30 * 24);
const MINUTE_MS: u128 = 60_000;
const MAX_TEXT_BYTES: usize = 200;
/// The cache is cleared when it has this many entries.
const MAX_CACHED: usize = 1024;
