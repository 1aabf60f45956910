//! What shares a process with untrusted JavaScript: Wasmtime, pure helpers, and one socket.
#![forbid(unsafe_code)]

mod effects;
mod helpers;
mod machine;
mod serve;

pub use machine::{EffectPort, LinkLost, Machine};
pub use serve::run_if_worker;
