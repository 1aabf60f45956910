//! Who comes with this token? Local API tokens: shown once, kept as a hash, revocable, expiring.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError},
    time::{Duration, SystemTime},
};

use rusqlite::{OptionalExtension as _, Row, Transaction, params};
use subtle::ConstantTimeEq as _;
use toolgate_spec::is_deceptive;

use crate::state::{Present, Shared, State, StateError, from_ms, lock, to_ms, unreadable};

#[cfg(test)]
mod tests;
mod text;

pub use text::TokenText;

/// What a new token shall stand for.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// For people; one of its kind among the tokens that are not revoked.
    pub name: String,
    /// Whose calls these are.
    pub subject: String,
    pub permissions: Vec<String>,
    pub role: Role,
    pub expires: Option<SystemTime>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Role {
    /// May call tools.
    Caller,
    /// May also decide approvals and change what is published.
    Admin,
}

impl Role {
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

/// A token as it is kept: without its secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Token {
    pub id: String,
    pub name: String,
    pub subject: String,
    pub permissions: Vec<String>,
    pub role: Role,
    pub created: SystemTime,
    pub expires: Option<SystemTime>,
    /// To the minute.
    pub last_used: Option<SystemTime>,
    pub revoked: Option<SystemTime>,
}

/// Whom a good token stands for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenIdentity {
    pub id: String,
    pub name: String,
    pub subject: String,
    pub permissions: Vec<String>,
    pub role: Role,
}

impl State {
    /// The text is not kept and cannot be had again.
    pub fn create_token(&self, new: NewToken, now: SystemTime) -> Result<(Token, TokenText), StateError> {
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
            let problem =
                format!("there is a token `{}` already; revoke it, or choose another name", new.name);
            return Err(StateError::Invalid(problem));
        }
        let NewToken { name, subject, permissions, role, expires } = new;
        let token = Token {
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

    /// `None`: no token of ours, or a wrong secret, or revoked, or expired; nobody learns which. It is looked up anew unless nobody
    /// has committed anything since, so that a token that any process has revoked is refused from that moment on.
    pub fn verify_token(&self, text: &str, now: SystemTime) -> Result<Option<TokenIdentity>, StateError> {
        // Typing errors and guesses without our checksum never get to the database.
        let Some(parts) = text::parse(text) else {
            return Ok(None);
        };
        let present = self.shared.present()?;
        if let Some(known) = self.shared.known_token(&parts, present)
            && is_live(&known.token, now)
        {
            self.shared.token_was_used(&known.token, now);
            return Ok(Some(known.token.clone().into()));
        }
        let found = self.shared.read(|connection| {
            connection
                .prepare_cached("SELECT * FROM tokens WHERE id = ?1")?
                .query_row([&parts.id], |row| Ok((row.get::<_, [u8; 32]>("secret_hash")?, token(row)?)))
                .optional()
        })?;
        // An unknown id is compared as well, so that it takes as long as a wrong secret.
        let (hash, token) = found.map_or(([0; 32], None), |(hash, token)| (hash, Some(token)));
        let is_same = bool::from(hash.ct_eq(&parts.secret_hash));
        let Some(token) = token.filter(|token| is_same && is_live(token, now)) else {
            return Ok(None);
        };
        self.shared.token_was_used(&token, now);
        if let Some(present) = present {
            self.shared.remember(Known { present, secret_hash: hash, token: token.clone() });
        }
        Ok(Some(token.into()))
    }

    /// Is the token with this id neither revoked nor expired? Asked again and again of callers who stay, so it counts as no use.
    pub fn is_token_good(&self, id: &str, now: SystemTime) -> Result<bool, StateError> {
        let found = self.shared.read(|connection| {
            connection.prepare_cached("SELECT * FROM tokens WHERE id = ?1")?.query_row([id], token).optional()
        })?;
        Ok(found.is_some_and(|token| is_live(&token, now)))
    }

    /// Also those that are revoked or expired; newest first.
    pub fn list_tokens(&self) -> Result<Vec<Token>, StateError> {
        self.shared.note_used_tokens();
        self.shared.read(|connection| {
            connection
                .prepare_cached("SELECT * FROM tokens ORDER BY created DESC, id")?
                .query_map([], token)?
                .collect()
        })
    }

    /// By id or by name. `None`: there is no such token that is not revoked yet.
    pub fn revoke_token(&self, id_or_name: &str, now: SystemTime) -> Result<Option<Token>, StateError> {
        self.shared.write(|transaction| {
            // A name may look like another token's id; the id wins.
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

/// By their ids.
pub(crate) type KnownTokens = HashMap<String, Arc<Known>>;

/// A token as it was found at a moment, by somebody who had its secret.
#[derive(Debug)]
pub(crate) struct Known {
    present: Present,
    secret_hash: [u8; 32],
    token: Token,
}

impl Shared {
    /// Only for whoever has the secret: a wrong one is looked up, so that it takes as long as an unknown id.
    fn known_token(&self, parts: &text::Parts, present: Option<Present>) -> Option<Arc<Known>> {
        let known = self.known_tokens.read().unwrap_or_else(PoisonError::into_inner);
        let known = known.get(&parts.id).filter(|known| Some(known.present) == present)?;
        bool::from(known.secret_hash.ct_eq(&parts.secret_hash)).then(|| Arc::clone(known))
    }

    fn remember(&self, known: Known) {
        let mut all = self.known_tokens.write().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST_KNOWN {
            all.clear();
        }
        all.insert(known.token.id.clone(), Arc::new(known));
    }

    /// Written down by the state's own thread, so that no request waits for it; at most once a minute for a token.
    fn token_was_used(&self, token: &Token, now: SystemTime) {
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
        // Lost where the file cannot be written: it is for people's information, and no reason to stop.
        let _ = self.write(|transaction| {
            let mut update = transaction.prepare_cached("UPDATE tokens SET last_used = ?2 WHERE id = ?1")?;
            used.iter().try_for_each(|(id, at)| update.execute(params![id, at]).map(|_| ()))
        });
    }
}

impl From<Token> for TokenIdentity {
    fn from(token: Token) -> Self {
        let Token { id, name, subject, permissions, role, .. } = token;
        Self { id, name, subject, permissions, role }
    }
}

fn is_live(token: &Token, now: SystemTime) -> bool {
    token.revoked.is_none() && token.expires.is_none_or(|expires| now < expires)
}

/// What has expired gives its name back; what has long been good for nothing is forgotten.
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
        // As the door judges a caller's name: a token that it never lets in helps nobody.
        let is_sound = !text.is_empty() && text.trim() == text && !text.chars().any(is_deceptive);
        if !is_sound || text.len() > MOST_TEXT {
            return Err(StateError::Invalid(format!(
                "the {what} of a token has 1 to {MOST_TEXT} bytes, no space at its ends and no character that nobody sees or that reorders others; write it without them"
            )));
        }
    }
    Ok(())
}

fn token(row: &Row<'_>) -> rusqlite::Result<Token> {
    let permissions: String = row.get("permissions")?;
    let role: String = row.get("role")?;
    let time = |column: &str| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.map(from_ms));
    Ok(Token {
        id: row.get("id")?,
        name: row.get("name")?,
        subject: row.get("subject")?,
        permissions: serde_json::from_str(&permissions)
            .map_err(|_| unreadable("the permissions of a token"))?,
        role: Role::from_name(&role).ok_or_else(|| unreadable("the role of a token"))?,
        created: from_ms(row.get("created")?),
        expires: time("expires")?,
        last_used: time("last_used")?,
        revoked: time("revoked")?,
    })
}

/// How long a revoked token can be looked at.
const KEPT: Duration = Duration::from_hours(30 * 24);
const MINUTE_MS: u128 = 60_000;
const MOST_TEXT: usize = 200;
/// Beyond as many, all are looked up again.
const MOST_KNOWN: usize = 1024;
