//! Who was let in, and who was shut out again? Nobody gets a token without a record; shutting out does not wait for one.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolgate_store::{NewToken, StateDb, StateError, StoredToken, TokenText};

use crate::{Failure, gateway, terminal::visible};

/// A token that is good for nothing any more.
#[derive(Debug)]
pub struct Revoked {
    pub token: StoredToken,
    /// Why the journal does not say so.
    unrecorded: Option<Failure>,
}

impl Revoked {
    /// For whoever needs the record too.
    pub fn recorded(self) -> Result<StoredToken, Failure> {
        match self.unrecorded {
            None => Ok(self.token),
            Some(problem) => Err(Failure::new(format!(
                "`{}` is revoked, but the journal has no record of it: {problem}",
                visible(&self.token.name)
            ))),
        }
    }
}

/// Makes a token and has `note` write it down. Nobody is told the token before that, and what cannot be written down is
/// good for nothing: what the journal says was made, was.
pub fn create(
    state: &StateDb,
    new: NewToken,
    note: impl FnOnce(&Value) -> Result<(), Failure>,
) -> Result<TokenText, Failure> {
    let (token, text) = state.create_token(new, SystemTime::now()).map_err(|error| told(&error))?;
    let noted = note(&json!({
        "kind": "token.created", "token": token.name, "subject": token.subject, "permissions": token.permissions,
        "role": token.role.name(), "by": gateway::operator(),
    }));
    noted.inspect_err(|_| {
        // Where this fails too, its text goes with us.
        let _ = state.revoke_token(&token.id, SystemTime::now());
    })?;
    Ok(text)
}

/// Takes a token back, and then has `note` write it down: a journal that cannot be written keeps nobody's token good. `None`:
/// there is none to take back, and nothing was written.
pub fn revoke(
    state: &StateDb,
    id_or_name: &str,
    note: impl FnOnce(&Value) -> Result<(), Failure>,
) -> Result<Option<Revoked>, Failure> {
    let revoked = state.revoke_token(id_or_name, SystemTime::now()).map_err(|error| told(&error))?;
    Ok(revoked.map(|token| {
        let entry = json!({ "kind": "token.revoked", "token": token.name, "by": gateway::operator() });
        Revoked { unrecorded: note(&entry).err(), token }
    }))
}

fn told(error: &StateError) -> Failure {
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

    /// Whoever took it could fill the disk of the journal, too.
    #[test]
    fn a_stolen_token_is_shut_out_also_without_a_record() {
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
        assert!(revoke(&state, "laptop", full).unwrap().is_none(), "nothing to take back, nothing to write");
    }

    #[test]
    fn only_a_token_that_was_made_is_recorded_and_only_one_with_a_record_is_good() {
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
