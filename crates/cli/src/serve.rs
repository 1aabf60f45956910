//! What `serve` prints.

pub mod calls;
pub mod local;
pub mod log;
