//! The HTTP front as the network sees it: raw bytes over loopback.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails loudly"
)]

mod answers;
mod client;
mod connections;
mod door;
mod gateway;
mod smuggling;
