//! The worker process for untrusted JavaScript: Wasmtime, pure helpers and one socket to the gateway.
#![forbid(unsafe_code)]

mod effects;
mod helpers;
mod machine;
mod serve;

pub use machine::{EffectPort, LinkLost, ScriptMachine};
pub use serve::run_if_worker;
