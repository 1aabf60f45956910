//! One file for each command; each has `run`.

pub mod check;
pub mod completions;
pub mod diff;
pub mod explain;
pub mod export;
pub mod import;
pub mod man;
pub mod new;
pub mod resolve;
pub mod run;
pub mod schema;
pub mod test;
