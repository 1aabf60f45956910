//! Who was let in, and who was shut out again? No token comes or goes without a record.

use std::time::SystemTime;

use serde_json::{Value, json};
use toolgate_store::{NewToken, State, StateError, Token, TokenText};

use crate::{Failure, gateway, terminal::visible};

/// Makes a token, after `note` has written it down.
pub fn create(
    state: &State,
    new: NewToken,
    note: impl FnOnce(&Value) -> Result<(), Failure>,
) -> Result<TokenText, Failure> {
    note(&json!({
        "kind": "token.created", "token": new.name, "subject": new.subject, "permissions": new.permissions,
        "role": new.role.name(), "by": gateway::operator(),
    }))?;
    Ok(state.create_token(new, SystemTime::now()).map_err(|error| told(&error))?.1)
}

/// Takes a token back, after `note` has written it down. `None`: there is none to take back, and nothing was written.
pub fn revoke(
    state: &State,
    id_or_name: &str,
    note: impl FnOnce(&Value) -> Result<(), Failure>,
) -> Result<Option<Token>, Failure> {
    let is_meant =
        |token: &Token| token.revoked.is_none() && (token.id == id_or_name || token.name == id_or_name);
    if !state.list_tokens().map_err(|error| told(&error))?.iter().any(is_meant) {
        return Ok(None);
    }
    note(&json!({ "kind": "token.revoked", "token": id_or_name, "by": gateway::operator() }))?;
    state.revoke_token(id_or_name, SystemTime::now()).map_err(|error| told(&error))
}

fn told(error: &StateError) -> Failure {
    Failure::new(visible(&error.to_string()))
}
