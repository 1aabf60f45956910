//! What native code tries in a jail. To add one: a function, and a row in `all`.

use std::process::ExitCode;

/// One try.
pub struct Attack {
    pub name: &'static str,
    /// What it would mean if it worked, for the ledger.
    pub what: &'static str,
    pub run: fn(&Inside) -> Verdict,
}

/// What an attacker may be told.
pub struct Inside {}

#[derive(Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The jail said no.
    Held(String),
    Broke(String),
}

pub fn all() -> Vec<Attack> {
    vec![]
}

pub fn perform(name: &str) -> ExitCode {
    let attacks = all();
    let Some(attack) = attacks.iter().find(|attack| attack.name == name) else {
        println!("no attack is called {name}");
        return ExitCode::FAILURE;
    };
    match (attack.run)(&Inside {}) {
        Verdict::Held(how) => println!("held {how}"),
        Verdict::Broke(how) => println!("broke {how}"),
    }
    ExitCode::SUCCESS
}
