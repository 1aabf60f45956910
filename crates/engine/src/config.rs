//! Engine settings. Shared with the build script, because compiled code only loads with equal settings.

use wasmtime::Config;

/// The settings that affect the compiled code.
pub fn config() -> Config {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.epoch_interruption(true);
    config.memory_init_cow(true);
    config.max_wasm_stack(WASM_STACK);
    config.wasm_backtrace_max_frames(None);
    config
}

/// JavaScript's stack, in the linear memory. It must run out before `WASM_STACK`: deep recursion is then a RangeError
/// and not a trap.
pub const SCRIPT_STACK: usize = 256 << 10;

/// The native stack for WebAssembly; much smaller than the stack of the worker's main thread.
pub const WASM_STACK: usize = 2 << 20;

/// The heap size before the snapshot is taken.
pub const PREGROWN_HEAP: usize = 640 << 10;

/// The limit of the linear memory for every call.
pub const MAX_LINEAR_MEMORY: usize = 512 << 20;
