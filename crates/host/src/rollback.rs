//! Detects that an older `state.db` was restored, and withdraws the tools and tokens that it brought back.
//!
//! The journals record which tools were unpublished and which tokens were revoked. A state that contradicts them is older. The
//! state stores how far it was compared, so a usual start reads few records.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use toolgate_audit::{TimeRange, read};
use toolgate_gate::{PassStore as _, StoredPass};
use toolgate_spec::project::{WireTarget, wire_name};
use toolgate_store::{StateDb, StateError, StoredToken};

use crate::journals::JournalOwner;

/// Tools and tokens that are valid in the state although the journals record their withdrawal.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StateRollback {
    /// Published tools, by name.
    pub tools: Vec<String>,
    /// Tokens, by name.
    pub tokens: Vec<String>,
}

impl StateRollback {
    pub const fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.tokens.is_empty()
    }

    /// A description for messages.
    pub fn describe(&self) -> String {
        let list = |what: &str, names: &[String]| {
            (!names.is_empty()).then(|| format!("{what} {}", names.join(", ")))
        };
        let parts = [list("unpublished tools:", &self.tools), list("revoked tokens:", &self.tokens)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    pub(crate) fn record(&self) -> Value {
        json!({ "kind": "state.older", "tools": self.tools, "tokens": self.tokens })
    }
}

/// Finds tools and tokens that a restored state brought back, without changing the state.
pub fn find_rollback(folder: &Path, state: &StateDb) -> Result<StateRollback, StateError> {
    Ok(compare(folder, state)?.to_rollback())
}

/// Unpublishes and revokes tools and tokens that a restored state brought back. If there are any, also drops all approvals,
/// because a consumed one may be open again.
pub fn undo_rollback(folder: &Path, state: &StateDb, now: SystemTime) -> Result<StateRollback, StateError> {
    let found = compare(folder, state)?;
    for (id, _) in &found.tools {
        let withdrawn = state.revise(id, &|latest| {
            let latest = latest.ok_or_else(|| "the tool is no longer in the state".to_owned())?;
            Ok(StoredPass { is_published: false, is_withdrawn: true, ..latest })
        });
        withdrawn.map_err(StateError::Invalid)?;
    }
    for token in &found.tokens {
        state.revoke_token(&token.id, now)?;
    }
    let rollback = found.to_rollback();
    if !rollback.is_empty() {
        state.drop_approvals()?;
    }
    Ok(rollback)
}

/// Stores that everything up to now was compared. A running gateway calls it too, so the next start reads few records.
pub fn remember_compared(state: &StateDb, now: SystemTime) -> Result<(), StateError> {
    let is_recent = state
        .compared_until()?
        .is_some_and(|last| now.duration_since(last).is_ok_and(|passed| passed < OFTEN_ENOUGH));
    if is_recent { Ok(()) } else { state.set_compared_until(now) }
}

struct RevivedRows {
    /// Id and name of each tool.
    tools: Vec<(String, String)>,
    tokens: Vec<StoredToken>,
}

impl RevivedRows {
    fn to_rollback(&self) -> StateRollback {
        StateRollback {
            tools: self.tools.iter().map(|(_, name)| name.clone()).collect(),
            tokens: self.tokens.iter().map(|token| token.name.clone()).collect(),
        }
    }
}

fn compare(folder: &Path, state: &StateDb) -> Result<RevivedRows, StateError> {
    // Overlap, because a record and its commit read the clock at different times.
    let since = state.compared_until()?.and_then(|at| at.checked_sub(OVERLAP));
    let view = read_journals(folder, since);
    let mut tools = Vec::new();
    for (id, pass) in state.all_passes()? {
        let Some(name) = pass.name.as_ref().filter(|_| pass.is_published) else { continue };
        let wire = wire_name(name, WireTarget::Mcp);
        let last = view.tools.get(name.as_str()).or_else(|| view.tools.get(wire.as_ref()));
        let is_revived = match last {
            None => false,
            Some(LastPublication::Unpublished) => true,
            Some(LastPublication::Published(digest)) => *digest != pass.record.document_digest,
        };
        if is_revived {
            tools.push((id, name.clone()));
        }
    }
    let is_revived = |token: &StoredToken| {
        let revoked = view.revoked.get(&token.name);
        token.revoked.is_none() && revoked.is_some_and(|at| token.created < *at)
    };
    let tokens = state.list_tokens()?.into_iter().filter(is_revived).collect();
    Ok(RevivedRows { tools, tokens })
}

enum LastPublication {
    Published(String),
    Unpublished,
}

/// The latest publications and revocations of all journals.
#[derive(Default)]
struct JournalView {
    /// By tool name.
    tools: BTreeMap<String, LastPublication>,
    /// By token name: when the last token with this name was revoked.
    revoked: BTreeMap<String, SystemTime>,
}

/// Skips unreadable records. `toolgate audit verify` reports them.
fn read_journals(folder: &Path, since: Option<SystemTime>) -> JournalView {
    let mut records = Vec::new();
    for journal in journals(folder) {
        let Ok(entries) = read(&journal, TimeRange { since, until: None }) else { continue };
        let concerns = |entry: &Value| {
            matches!(
                entry.get("kind").and_then(Value::as_str),
                Some("tool.published" | "tool.unpublished" | "token.revoked")
            )
        };
        records.extend(entries.flatten().filter(|record| concerns(&record.entry)));
    }
    records.sort_by(|one, other| one.time.cmp(&other.time));
    let mut view = JournalView::default();
    for record in records {
        let text = |pointer: &str| record.entry.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        match text("/kind").as_deref() {
            Some("tool.published") => {
                if let (Some(name), Some(digest)) = (text("/tool/name"), text("/tool/digest")) {
                    view.tools.insert(name, LastPublication::Published(digest));
                }
            }
            Some("tool.unpublished") => {
                if let Some(name) = text("/tool/name") {
                    view.tools.insert(name, LastPublication::Unpublished);
                }
            }
            Some("token.revoked") => {
                if let (Some(name), Some(at)) = (text("/token"), record.at()) {
                    view.revoked.insert(name, at);
                }
            }
            _ => {}
        }
    }
    view
}

fn journals(folder: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_journal = |name: &str| name.starts_with(JournalOwner::Gateway.folder());
    below.filter(|entry| is_journal(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).collect()
}

const OVERLAP: Duration = Duration::from_mins(1);
const OFTEN_ENOUGH: Duration = Duration::from_mins(10);
