//! The jailed side: plays the role it was started for, and says on standard output what came of it.

use std::process::ExitCode;

pub fn main(role: &str, _words: &[&str]) -> ExitCode {
    match role {
        "sleep" => std::thread::sleep(std::time::Duration::from_secs(600)),
        other => return crate::attacks::perform(other),
    }
    ExitCode::SUCCESS
}
