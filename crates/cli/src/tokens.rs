//! Creates and revokes access tokens, with journal records.
//!
//! A token is valid only if its creation was recorded. A revocation is effective even if it cannot be recorded.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolgate_store::{NewToken, StateDb, StateError, StoredToken, TokenText};

use crate::{Failure, gateway, terminal::visible};

/// A token that is no longer valid.
#[derive(Debug)]
pub struct Revoked {
    pub token: StoredToken,
    /// Why the revocation could not be recorded.
    unrecorded: Option<Failure>,
}

impl Revoked {
    /// Fails if the revocation was not recorded.
    pub fn recorded(self) -> Result<StoredToken, Failure> {
        match self.unrecorded {
            None => Ok(self.token),
            Some(problem) => Err(Failure::new(format!(
                "the token `{}` is revoked, but the journal could not record it: {problem}",
                visible(&self.token.name)
            ))),
        }
    }
}

/// Creates a token and records it with `note`. Revokes the token if it cannot be recorded, and returns its text only
/// after the record is written.
pub fn create(
    state: &StateDb,
    new: NewToken,
    note: impl FnOnce(&Value) -> Result<(), Failure>,
) -> Result<TokenText, Failure> {
    let (token, text) = state.create_token(new, SystemTime::now()).map_err(|error| state_failure(&error))?;
    let noted = note(&json!({
        "kind": "token.created", "token": token.name, "subject": token.subject, "permissions": token.permissions,
        "role": token.role.name(), "by": gateway::operator(),
    }));
    noted.inspect_err(|_| {
        // If this fails too, the token's text is never returned.
        let _ = state.revoke_token(&token.id, SystemTime::now());
    })?;
    Ok(text)
}

/// Revokes a token, then records it with `note`, so a full disk cannot keep a stolen token valid. Returns `None` and
/// records nothing if there is no such token.
pub fn revoke(
    state: &StateDb,
    id_or_name: &str,
    note: impl FnOnce(&Value) -> Result<(), Failure>,
) -> Result<Option<Revoked>, Failure> {
    let revoked = state.revoke_token(id_or_name, SystemTime::now()).map_err(|error| state_failure(&error))?;
    Ok(revoked.map(|token| {
        let entry = json!({ "kind": "token.revoked", "token": token.name, "by": gateway::operator() });
        Revoked { unrecorded: note(&entry).err(), token }
    }))
}

fn state_failure(error: &StateError) -> Failure {
    Failure::new(visible(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use toolgate_store::{ApprovalLimits, TokenRole};

    use super::*;

    fn new(name: &str) -> NewToken {
        NewToken {
            name: name.to_owned(),
            subject: "local".to_owned(),
            permissions: Vec::new(),
            role: TokenRole::Caller,
            expires: None,
        }
    }

    fn full(_: &Value) -> Result<(), Failure> {
        Err(Failure::new("no space left on device"))
    }

    fn state(folder: &tempfile::TempDir) -> StateDb {
        let limits = ApprovalLimits { max_pending: 1, max_pending_per_caller: 1 };
        StateDb::open(&folder.path().join("state/state.db"), limits).unwrap()
    }

    /// A thief could also fill the journal's disk.
    #[test]
    fn token_is_revoked_even_if_the_journal_is_full() {
        let folder = tempfile::tempdir().unwrap();
        let state = state(&folder);
        for can_note in [true, false] {
            let (_, text) = state.create_token(new("laptop"), SystemTime::now()).unwrap();
            let mut noted = Vec::new();
            let note = |entry: &Value| {
                noted.push((entry["kind"].clone(), entry["token"].clone()));
                if can_note { Ok(()) } else { full(entry) }
            };
            let revoked = revoke(&state, "laptop", note).unwrap().unwrap();
            assert_eq!(noted, [("token.revoked".into(), "laptop".into())]);
            assert_eq!(state.verify_token(text.as_str(), SystemTime::now()).unwrap(), None, "{can_note}");
            assert_eq!(revoked.recorded().is_ok(), can_note);
        }
        assert!(revoke(&state, "laptop", full).unwrap().is_none(), "no token, no record");
    }

    #[test]
    fn token_is_valid_only_with_a_record() {
        let folder = tempfile::tempdir().unwrap();
        let state = state(&folder);
        assert!(create(&state, new("laptop"), full).is_err());
        assert!(state.list_tokens().unwrap().iter().all(|token| token.revoked.is_some()));
        let mut noted = 0;
        for (is_made, new) in [(true, new("laptop")), (false, new("laptop")), (false, new("la\u{202e}ptop"))]
        {
            let made = create(&state, new, |_| {
                noted += 1;
                Ok(())
            });
            assert_eq!(made.is_ok(), is_made);
        }
        assert_eq!(noted, 1);
    }
}
