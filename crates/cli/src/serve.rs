//! What `serve` prints.

pub mod log;
