//! The call from end to end, with a tool, a queue and a journal that tests can look into.
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
mod disguises;
mod fakes;
mod leaks;
mod listings;
mod looking;
mod outcomes;
mod publishing;
mod records;
mod shapes;
mod swaps;
mod voices;
mod waiting;
mod withheld;
