//! The binary `toolgate`. Everything is in the library, where tests and benchmarks can reach it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all, while there is one thread: workers and the jailer are this same program under other names.
    toolgate::run_if_worker();
    toolgate_cli::run(std::env::args_os())
}
