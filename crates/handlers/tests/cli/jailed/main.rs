//! Command tools in the real jail. This program is the gateway, its own jailer, and a command that reaches out.
//!
//! Not an ordinary test binary, for a jailer has one thread. It understands a filter and `--list`.
#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails loudly"
)]

mod cases;
#[path = "../catalog.rs"]
#[expect(dead_code, reason = "some of it is for the other binary")]
mod catalog;
mod client;
mod reach;
#[path = "../world.rs"]
#[expect(dead_code, reason = "what stands in for the jail belongs to the other binary")]
mod world;

use std::{panic, process::ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    if arguments.next().is_some_and(|name| name == toolgate_sandbox::JAILER_NAME) {
        return toolgate_sandbox::jailer_main().into();
    }
    let arguments: Vec<String> = arguments.collect();
    if let [role, rest @ ..] = arguments.as_slice()
        && role == client::ROLE
    {
        return client::main(rest);
    }
    if arguments.iter().any(|word| word == "--list") {
        for (name, _) in cases::ALL.into_iter().chain(reach::ALL) {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let failed: Vec<&str> = cases::ALL
        .into_iter()
        .chain(reach::ALL)
        .filter(|(name, _)| name.contains(wanted))
        .filter(|(name, run)| {
            let is_well = panic::catch_unwind(run).is_ok();
            println!("test {name} ... {}", if is_well { "ok" } else { "FAILED" });
            !is_well
        })
        .map(|(name, _)| name)
        .collect();
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
