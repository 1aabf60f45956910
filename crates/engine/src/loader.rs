//! Is the embedded code ours? Then it becomes a module.
#![expect(
    unsafe_code,
    reason = "loading compiled code is trusting it; this file is where the trust is checked"
)]

use wasmtime::{Engine, Module};

use crate::{COMPILED, LoadError};

/// The compiled engine as a module of `engine`.
pub fn load(engine: &Engine) -> Result<Module, LoadError> {
    // SAFETY: `deserialize` requires bytes that `Engine::precompile_module` made and nobody altered. `COMPILED` is put
    // into this binary by our own build script, from the same wasmtime version, and lies in read-only memory. Wasmtime
    // itself refuses code made with other settings or for another processor.
    unsafe { Module::deserialize(engine, COMPILED) }.map_err(|error| LoadError(format!("{error:#}")))
}
