//! What `serve` prints.

pub mod calls;
pub mod log;
