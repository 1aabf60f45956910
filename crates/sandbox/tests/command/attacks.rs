//! What native code tries in a jail. To add one: a function, and a row in `all`.

use std::{fs, process::ExitCode};

use toolgate_sandbox::Ending;

use crate::{
    driver::{Tier, finish, inside},
    raw,
};

/// One try.
pub struct Attack {
    pub name: &'static str,
    /// What it would mean if it worked, for the ledger.
    pub what: &'static str,
    pub run: fn(&Inside) -> Verdict,
}

/// What an attacker knows of its surroundings.
pub struct Inside {
    /// Whether it is alone with its processes.
    pub has_own_processes: bool,
}

#[derive(Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The jail said no; with what it said.
    Held(String),
    /// It worked.
    Broke(String),
}

pub fn all() -> Vec<Attack> {
    vec![
        Attack { name: "read_shadow", what: "passwords of the host", run: read_shadow },
        Attack { name: "inherited_descriptors", what: "a way to the gateway is left open", run: inherited },
        Attack { name: "signal_everybody", what: "processes of the host are killed", run: signal_everybody },
    ]
}

/// The gateway's side: the attack runs, fails, and says so.
pub fn must_hold(attack: &Attack, tier: Tier) {
    let report = finish(inside(tier, attack.name));
    let said = String::from_utf8_lossy(&report.stdout);
    assert_eq!(report.ending, Ending::Exited(0), "{}: {said} {report:?}", attack.what);
    assert!(said.starts_with("held "), "{}: {said}", attack.what);
}

/// The jailed side.
pub fn perform(name: &str) -> ExitCode {
    let attacks = all();
    let Some(attack) = attacks.iter().find(|attack| attack.name == name) else {
        println!("no attack is called {name}");
        return ExitCode::FAILURE;
    };
    let inside = Inside { has_own_processes: std::os::unix::process::parent_id() <= 1 };
    match (attack.run)(&inside) {
        Verdict::Held(how) => println!("held {how}"),
        Verdict::Broke(how) => println!("broke {how}"),
    }
    ExitCode::SUCCESS
}

/// For what answers with a result: any success is an escape.
pub fn must_fail<T: std::fmt::Debug, E: std::fmt::Display>(outcome: Result<T, E>) -> Verdict {
    match outcome {
        Ok(got) => Verdict::Broke(format!("{got:?}")),
        Err(error) => Verdict::Held(error.to_string()),
    }
}

fn read_shadow(_: &Inside) -> Verdict {
    must_fail(fs::read("/etc/shadow"))
}

fn inherited(_: &Inside) -> Verdict {
    let get_flags = usize::try_from(libc::F_GETFD).unwrap();
    let open = (3..1024).find(|number| raw::call(libc::SYS_fcntl, [*number, get_flags, 0, 0, 0, 0]).is_ok());
    open.map_or_else(
        || Verdict::Held("0 to 2".to_owned()),
        |number| Verdict::Broke(format!("{number} is open")),
    )
}

fn signal_everybody(inside: &Inside) -> Verdict {
    if inside.has_own_processes {
        // Nobody but process 1 is there, and the kernel keeps signals from it.
        return must_fail(rustix::process::kill_process(
            rustix::process::Pid::INIT,
            rustix::process::Signal::KILL,
        ));
    }
    must_fail(rustix::process::test_kill_process(rustix::process::getppid().unwrap()))
}
