//! The real binary on real folders, as a user meets it.
#![forbid(unsafe_code)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    clippy::unwrap_used,
    reason = "a test may fail"
)]

mod bench;
mod check;
mod diff;
mod docs;
mod formats;
mod help;
mod import_export;
mod malformed;
mod many_files;
mod new;
mod resolve;
