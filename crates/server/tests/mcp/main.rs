//! MCP and the admin API from outside: raw HTTP over loopback and lines over pipes, with a gate whose tools are fakes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test says so by panicking"
)]

mod admin;
mod approvals;
mod calls;
mod client;
mod eras;
mod fakes;
mod listing;
mod sessions;
mod stdio;
mod world;
