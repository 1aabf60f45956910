//! QuickJS-ng compiled to WebAssembly, with the helper prelude already loaded.
//!
//! The build script compiles the C sources to WebAssembly, runs the initialisation with the prelude in `js/`, takes a
//! snapshot of the memory and compiles that ahead of time. This crate loads the result.

#[expect(dead_code, reason = "the build script needs the rest")]
mod config;
mod loader;
mod op;

use std::fmt;

pub use config::{MAX_LINEAR_MEMORY, WASM_STACK};
pub use op::Op;
use wasmtime::{Config, Engine, Module};

/// The engine's settings. The worker adds the memory allocation strategy.
pub fn config() -> Config {
    let mut config = config::config();
    loader::in_place(&mut config);
    config
}

/// Returns the compiled engine as a module of `engine`, whose settings must come from [`config`].
pub fn load(engine: &Engine) -> Result<Module, LoadError> {
    loader::load(engine)
}

/// The SHA-256 of the snapshot. It identifies the engine and prelude of a call.
pub const SNAPSHOT_DIGEST: &str = env!("TOOLGATE_SNAPSHOT_DIGEST");

/// The linear memory of an instance that has not run anything, for comparison. It is part of the program file and takes
/// no extra memory.
pub fn snapshot_memory() -> &'static [u8] {
    include_bytes!(concat!(env!("OUT_DIR"), "/engine.memory"))
}

/// The size of the snapshot's linear memory.
pub fn snapshot_bytes() -> usize {
    snapshot_memory().len()
}

/// The embedded engine does not match this program or processor.
#[derive(Debug)]
pub struct LoadError(String);

impl fmt::Display for LoadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "the embedded JavaScript engine does not load: {}; build it on this machine",
            self.0
        )
    }
}

impl std::error::Error for LoadError {}
