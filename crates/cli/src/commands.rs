//! One file for each command; each has `run`.

pub mod check;
pub mod completions;
pub mod explain;
pub mod man;
pub mod new;
pub mod schema;
