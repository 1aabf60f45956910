//! MCP and the admin API from outside: raw HTTP over loopback and lines over pipes, with a gate whose tools are fakes.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails loudly"
)]

mod admin;
mod approvals;
mod calls;
mod client;
mod direct;
mod eras;
mod fakes;
mod ids;
mod listing;
mod malformed;
mod sessions;
mod stdio;
mod streams;
mod world;
