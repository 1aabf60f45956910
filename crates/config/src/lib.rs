//! What does `toolgate.yaml` say, and where does each value come from?
//!
//! One table, `keys.rs`, names every key; reading, defaults, schema, `toolgate init` and the reference are derived from it.
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

pub use entry::{Entry, Origin};
pub use error::ConfigError;
pub use model::Config;
pub use overlay::{Overrides, config_path};
pub use paths::{guarded_in, state_in};
pub use permissions::Writable;
pub use schema::schema;
pub use text::reference_table;
pub use variables::{OwnNames, own_variables_in};
