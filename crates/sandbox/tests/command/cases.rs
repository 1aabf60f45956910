//! What must hold of every command, in each kind of jail.

use std::process::ExitCode;

use toolgate_sandbox::Ending;

use crate::driver::{Case, Tier, finish, jail};

pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for tier in [Tier::Namespaces, Tier::Landlock] {
        let mut add = |name: &str, body: fn(Tier)| {
            cases.push(Case {
                name: format!("{tier:?}/{name}").to_lowercase(),
                body: Box::new(move || body(tier)),
            });
        };
        add("true_and_false_end_as_they_should", exit_codes);
        add("echo_is_heard", echo);
    }
    cases
}

pub fn be_a_gateway(_role: &str) -> ExitCode {
    ExitCode::SUCCESS
}

fn exit_codes(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/true", &[]));
    println!("{:?} {:?} {:?}", report.strength, report.usage, report.refused);
    assert_eq!(report.ending, Ending::Exited(0));
    assert_eq!(finish(jail(tier, "/usr/bin/false", &[])).ending, Ending::Exited(1));
}

fn echo(tier: Tier) {
    let report = finish(jail(tier, "/usr/bin/echo", &["a b", "$HOME"]));
    assert_eq!(report.ending, Ending::Exited(0), "{report:?}");
    assert_eq!(report.stdout, b"a b $HOME\n");
}
