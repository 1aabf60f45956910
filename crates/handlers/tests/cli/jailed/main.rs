//! Tests command tools in the real jail. This program is the gateway, its own jailer, and a command with network
//! access.
//!
//! It has its own `main`, because a jailer must have one thread. It supports a filter and `--list`.
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
mod catalog;
mod client;
mod contained;
#[path = "../../../../sandbox/tests/container/driver.rs"]
#[expect(dead_code, reason = "most of it is for the tests of the sandbox")]
mod driver;
#[path = "../../../../sandbox/tests/container/engines.rs"]
mod engines;
mod hostile_repositories;
mod reach;
mod refusals;
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
    if let [role, rest @ ..] = arguments.as_slice()
        && role == refusals::ROLE
    {
        return refusals::be_refused(rest);
    }
    if arguments.first().is_some_and(|role| role == cases::MOUNTER) {
        return cases::be_a_mounter();
    }
    let mut all: Vec<(&str, fn())> =
        [&cases::ALL[..], &hostile_repositories::ALL, &refusals::ALL, &reach::ALL, &contained::ALL].concat();
    if arguments.iter().any(|word| word == "--list") {
        for (name, _) in all {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    let wanted = arguments.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    all.retain(|(name, _)| name.contains(wanted));
    if let Some(why) = contained::left_out() {
        let before = all.len();
        all.retain(|(name, _)| !contained::ALL.iter().any(|(own, _)| own == name));
        println!("LEFT OUT: {} cases of containers ({why})", before - all.len());
    }
    let failed: Vec<&str> = all
        .into_iter()
        .filter(|(name, run)| {
            let is_well = panic::catch_unwind(run).is_ok();
            println!("test {name} ... {}", if is_well { "ok" } else { "FAILED" });
            !is_well
        })
        .map(|(name, _)| name)
        .collect();
    let left = driver::leave();
    if !left.is_empty() {
        println!("containers left: {left}");
    }
    if failed.is_empty() && left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
