//! The binary `toolgate`. Everything is in the library, where tests and benchmarks can reach it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    toolgate_cli::run(std::env::args_os())
}
