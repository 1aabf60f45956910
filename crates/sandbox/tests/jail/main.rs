//! Tests of the worker's jail against native code. Runs itself again as a jailed process, once for every attack.
//!
//! Not an ordinary test binary, because the jail is entered with one thread. It accepts a filter and `--list`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a test without the usual harness"
)]

mod attacks;
mod cases;
mod child;
mod driver;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [driver::JAILED, role, namespaces] => child::main(role, namespaces),
        [driver::PARENT, socket, role, namespaces] => driver::be_a_parent(socket, role, namespaces),
        [driver::PROBE] => driver::probe_without_unshare(),
        [] => driver::run(&cases::all(), ""),
        words if words.contains(&"--list") => driver::list(&cases::all()),
        words => driver::run(&cases::all(), words.iter().find(|word| !word.starts_with('-')).unwrap_or(&"")),
    }
}
