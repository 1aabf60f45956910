//! The binary `toolgate`. All code is in the library, where tests and benchmarks can use it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // Must run first, while there is one thread: workers and the jailer are this program under other names.
    toolgate::run_if_worker();
    toolgate_cli::run(std::env::args_os())
}
