//! What outlives a process: workspace files and their changes, approvals, tokens, passes, the gateway's own secrets.
//!
//! `State` is one SQLite file, shared by every process of this installation; the rest are functions on files. Nothing
//! here decides anything about a call: the traits of the gate say what is kept, and this crate keeps it.
#![forbid(unsafe_code)]

mod approvals;
mod compared;
mod passes;
mod private;
mod read;
mod secret;
mod state;
mod tokens;
mod walk;
mod watch;
mod write;

pub use passes::PassChanges;
pub use read::{ReadError, read_bounded};
pub use secret::{SecretError, secret_bytes};
pub use state::{Limits, State, StateError};
pub use tokens::{NewToken, Role, Token, TokenIdentity, TokenText};
pub use walk::{WalkError, Walked, walk, walk_one};
pub use watch::{Changes, Watch, WatchError};
pub use write::{write_atomic, write_atomic_no_follow};
