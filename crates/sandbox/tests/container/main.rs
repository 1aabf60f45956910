//! Tests of containers. Runs Podman, and then Docker, with separate images and storage created here, without a
//! network.
//!
//! If one of them is missing or cannot run, this fails, unless `TOOLGATE_TESTS_NO_CONTAINERS=1` skips the cases;
//! then a line reports it. It accepts a filter and `--list`.
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
mod endings;
mod engines;
mod exchanged;
mod network;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [driver::GATEWAY, folder, client, options @ ..] =
        arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        return endings::be_a_gateway(folder, client, options);
    }
    if let [exchanged::ORDINARY, folder, client, options @ ..] =
        arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        return exchanged::be_an_ordinary_gateway(folder, client, options);
    }
    if arguments == ["--take-the-ports"] {
        return network::take_the_ports();
    }
    if let [attacks::REACH, paths @ ..] = arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice()
    {
        return attacks::reach(paths);
    }
    let cases: Vec<driver::Case> =
        [cases::ALL, attacks::ALL, exchanged::ALL, network::ALL, endings::ALL].concat();
    if arguments.iter().any(|word| word == "--list") {
        return driver::list(&cases);
    }
    let filter = arguments.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    driver::run_with_both(&cases, filter)
}
