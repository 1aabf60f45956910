//! Tests of the jail for commands. This program is the gateway, its own jailer, and the attacker in the jail.
//!
//! Not an ordinary test binary, because a jailer has one thread. It accepts a filter and `--list`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a test without the usual harness"
)]

mod attacks;
mod cases;
mod driver;
mod inside;
mod network;
mod raw;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args();
    if arguments.next().is_some_and(|name| name == toolgate_sandbox::JAILER_NAME) {
        return toolgate_sandbox::jailer_main().into();
    }
    let arguments: Vec<String> = arguments.collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [driver::INSIDE, role, rest @ ..] => inside::main(role, rest),
        [driver::GATEWAY, role] => cases::be_a_gateway(role),
        [driver::MOUNTER, tier, folder] => cases::be_a_mounter(tier, folder.as_ref()),
        [driver::HIDER, tier, folder] => cases::unseen::be_a_hider(tier, folder.as_ref()),
        [driver::HANGER, tier, folder] => cases::be_a_hanger(tier, folder.as_ref()),
        [driver::CHANGER, folder] => cases::be_a_changer(folder.as_ref()),
        words if words.contains(&"--list") => driver::list(&cases::all()),
        words => driver::run(&cases::all(), words.iter().find(|word| !word.starts_with('-')).unwrap_or(&"")),
    }
}
