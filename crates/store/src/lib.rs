//! Persistent data: workspace files and their changes, approvals, tokens, passes, the gateway's keys and the secret store.
//!
//! `StateDb` is one SQLite file that all processes of this installation share; the rest are functions on files. This crate
//! only stores data. It implements the gate's traits, and the gate decides about calls.
#![forbid(unsafe_code)]

mod approvals;
mod compared;
mod passes;
mod private;
mod read;
mod secret;
mod secrets;
mod state;
mod tokens;
mod walk;
mod watch;
mod write;

pub use passes::PassChanges;
pub use read::{ReadError, read_bounded};
pub use secret::{SecretError, secret_bytes};
pub use secrets::{
    CommandSecrets, FileSecrets, KeyOrigin, KeyPlace, ListedSecret, PassphraseSource, SecretScope,
    SecretVault, StoredSecret, VaultError, VaultKeySettings, VaultMark, is_vault_of,
};
pub use state::{ApprovalLimits, StateDb, StateError};
pub use tokens::{NewToken, StoredToken, TokenRole, TokenText, VerifiedToken};
pub use walk::{WalkError, Walked, walk, walk_one};
pub use watch::{FileChanges, FileWatch, WatchError};
pub use write::{write_atomic, write_atomic_no_follow};
