//! Tests command tools from the manifest to the result, with a recording launcher instead of the jail.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails loudly"
)]

mod argv;
mod catalog;
mod containers;
mod embedding;
mod environment;
mod hanging;
mod hostile_git;
mod loading;
mod outcomes;
mod properties;
mod quarantine;
mod refusals;
mod searches;
mod shipped;
mod stand_ins;
mod view;
mod world;
