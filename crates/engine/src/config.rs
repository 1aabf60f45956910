//! How is the engine compiled and run? Shared with the build script: compiled code only loads under equal settings.

use wasmtime::Config;

/// The settings that change the compiled code.
pub fn config() -> Config {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.epoch_interruption(true);
    config.memory_init_cow(true);
    config.max_wasm_stack(WASM_STACK);
    config.wasm_backtrace_max_frames(None);
    config
}

/// JavaScript's own stack, in the linear memory. It must run out before `WASM_STACK` does, so that deep recursion is
/// a RangeError and not a trap.
pub const SCRIPT_STACK: usize = 256 << 10;

/// The native stack that WebAssembly may use; a good deal less than the worker's main thread has.
pub const WASM_STACK: usize = 2 << 20;

/// The heap that is grown before the snapshot is taken.
pub const PREGROWN_HEAP: usize = 640 << 10;

/// The most that any call's linear memory may grow to.
pub const MAX_LINEAR_MEMORY: usize = 512 << 20;
