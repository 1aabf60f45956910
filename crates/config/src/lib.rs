//! Reads `toolgate.yaml` and records where each value was set.
//!
//! The table in `keys.rs` defines every key. Parsing, defaults, JSON Schema, `toolgate init` and the reference are derived from it.
#![forbid(unsafe_code)]

mod entry;
mod error;
mod fault;
mod key;
mod keys;
pub mod model;
mod overlay;
mod parse;
mod paths;
mod permissions;
mod quantity;
mod read;
mod rules;
mod schema;
mod shape;
#[cfg(test)]
mod testing;
mod text;
mod variables;
mod web;
mod words;

pub use entry::{ConfigEntry, ConfigOrigin};
pub use error::ConfigError;
pub use model::Config;
pub use overlay::{Overrides, config_path};
pub use paths::{guarded_in, secrets_in, state_in};
pub use permissions::Writable;
pub use schema::schema;
pub use text::reference_table;
pub use variables::{OwnNames, own_variables_in};
