//! Tests of the journal on real directories: detection, recovery and proofs.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails loudly"
)]

mod appending;
mod crash;
mod documents;
mod full_disk;
mod listing;
mod opening;
mod reading;
mod receipts;
mod support;
mod tampering;
