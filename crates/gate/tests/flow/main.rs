//! End-to-end tests of a call, with a fake tool, queue and journal.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails loudly"
)]

mod approvals;
mod cancel;
mod closing;
mod decisions;
mod disk_checks;
mod encoded_secrets;
mod fakes;
mod leaks;
mod listings;
mod outcomes;
mod publishing;
mod records;
mod shapes;
mod swaps;
mod waiting;
mod withheld;
