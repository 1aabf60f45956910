//! Attacks by native code in a jail. To add one: a function, a row in the table of its file, and a row in the
//! ledger.

pub mod call;
mod exhaustion;
mod files;
mod hidden;
mod kernel;
mod ledger;
mod native;
mod privileges;
mod processes;
mod programs;
mod races;
mod reporter;
mod sockets;
mod stage;
mod uncounted;
mod watching;

use std::{
    fmt, io,
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use toolgate_sandbox::{CommandJail, CommandReport};

use crate::driver::{Case, PATIENCE, PLACED, Tier};
use stage::{Stage, Target};

/// One attack.
pub struct Attack {
    pub name: &'static str,
    /// The consequence if it worked, for the ledger.
    pub what: &'static str,
    pub stopped_by: &'static str,
    run: fn(&Inside) -> Verdict,
    tiers: Tiers,
    ends: Ends,
    network: Wires,
    /// Changes to the jail that every attacker gets.
    change: fn(&mut CommandJail, &Stage),
    /// Activity outside during the attack, repeated until it ends.
    meanwhile: Option<fn(&Stage)>,
    /// Additional checks for harm outside.
    harm: fn(&Stage, &CommandReport) -> Option<String>,
    deadline: Duration,
    target: Target,
    hole: Hole,
}

/// The jails in which the attack is tried.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Tiers {
    Both,
    /// Needs namespaces, or is a documented limit of jails without them.
    Namespaces,
}

/// How the attacker ends if the jail holds.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Ends {
    /// Exits by itself and reports a denial.
    Saying,
    /// In any way: it may be killed, time out, or be unable to report.
    Anyhow,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Wires {
    None,
    Proxied,
}

/// How the test proves that the attack works without the jail, and would therefore be detected.
enum Hole {
    /// Not proven: it would harm the host, or no host allows it.
    None,
    /// Without any jail, as any user.
    Unjailed,
    /// Without any jail, as root.
    UnjailedRoot,
    /// In a jail with this one change.
    Cut(fn(&mut CommandJail, &Stage)),
}

/// An attacker's knowledge of its surroundings: more than a real one would.
pub struct Inside {
    folder: PathBuf,
    /// The process to attack.
    gateway: i32,
    /// Address of the secret in the memory of that process.
    secret_at: usize,
    /// An address of the host other than loopback.
    host: IpAddr,
    tcp: u16,
    udp: u16,
    /// The proxy of another jail.
    other_proxy: u16,
    abstract_name: String,
    terminal: PathBuf,
    handle: Vec<u8>,
    key: usize,
    /// Whether it has its own PID namespace.
    has_own_processes: bool,
}

#[derive(Debug, Eq, PartialEq)]
enum Verdict {
    /// The jail denied it, with this message.
    Held(String),
    /// It worked.
    Broke(String),
}

pub fn all() -> Vec<Attack> {
    let tables = [
        files::table(),
        hidden::table(),
        watching::table(),
        races::table(),
        processes::table(),
        privileges::table(),
        programs::table(),
        sockets::table(),
        kernel::table(),
        exhaustion::table(),
        uncounted::table(),
        reporter::table(),
    ];
    tables.into_iter().flatten().collect()
}

/// All attacks as cases of the driver.
pub fn cases() -> Vec<Case> {
    let case = |name: String, body: Box<dyn Fn()>| Case { name: name.to_lowercase(), body };
    let mut cases = Vec::new();
    for tier in [Tier::Namespaces, Tier::Landlock] {
        for attack in all().into_iter().filter(|attack| attack.is_for(tier)) {
            let name = format!("{tier:?}/attack/{}", attack.name);
            cases.push(case(name, Box::new(move || stage::must_hold(&attack, tier))));
        }
    }
    for attack in all().into_iter().filter(Attack::has_a_hole) {
        let name = format!("hole/attack/{}", attack.name);
        cases.push(case(name, Box::new(move || stage::must_break(&attack))));
    }
    cases.push(case("attack/planted_working_folder".into(), Box::new(races::planted_working_folder)));
    if std::env::var_os(PLACED).is_none() {
        cases.push(case("attack/every_one_has_its_row".into(), Box::new(ledger::is_complete)));
    }
    cases
}

/// The jailed side.
pub fn perform(name: &str) -> ExitCode {
    if name == stage::DECOY {
        return stage::be_a_decoy();
    }
    let attacks = all();
    let Some(attack) = attacks.iter().find(|attack| attack.name == name) else {
        println!("no attack is called {name}");
        return ExitCode::FAILURE;
    };
    match (attack.run)(&Inside::from_environment()) {
        Verdict::Held(how) => println!("held {how}"),
        Verdict::Broke(how) => println!("broke {how}"),
    }
    ExitCode::SUCCESS
}

/// The ordinary row: both kinds of jail, no network, nothing special outside.
fn row(
    name: &'static str,
    what: &'static str,
    stopped_by: &'static str,
    run: fn(&Inside) -> Verdict,
) -> Attack {
    Attack {
        name,
        what,
        stopped_by,
        run,
        tiers: Tiers::Both,
        ends: Ends::Saying,
        network: Wires::None,
        change: |_, _| (),
        meanwhile: None,
        harm: |_, _| None,
        deadline: PATIENCE,
        target: Target::ThisProcess,
        hole: Hole::None,
    }
}

impl Attack {
    fn is_for(&self, tier: Tier) -> bool {
        self.tiers == Tiers::Both || tier == Tier::Namespaces
    }

    fn has_a_hole(&self) -> bool {
        match self.hole {
            Hole::None => false,
            Hole::UnjailedRoot => crate::driver::is_root(),
            Hole::Unjailed | Hole::Cut(_) => true,
        }
    }

    fn hole(self, hole: Hole) -> Self {
        Self { hole, ..self }
    }

    fn unjailed(self) -> Self {
        self.hole(Hole::Unjailed)
    }

    fn unjailed_root(self) -> Self {
        self.hole(Hole::UnjailedRoot)
    }

    fn in_namespaces(self) -> Self {
        Self { tiers: Tiers::Namespaces, ..self }
    }

    fn proxied(self) -> Self {
        Self { network: Wires::Proxied, tiers: Tiers::Namespaces, ..self }
    }

    fn anyhow(self) -> Self {
        Self { ends: Ends::Anyhow, ..self }
    }

    fn within(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    fn changed(self, change: fn(&mut CommandJail, &Stage)) -> Self {
        Self { change, ..self }
    }

    fn at(self, target: Target) -> Self {
        Self { target, ..self }
    }

    fn meanwhile(self, meanwhile: fn(&Stage)) -> Self {
        Self { meanwhile: Some(meanwhile), ..self }
    }

    fn harms(self, harm: fn(&Stage, &CommandReport) -> Option<String>) -> Self {
        Self { harm, ..self }
    }
}

impl Inside {
    fn canary(&self) -> PathBuf {
        self.outside().join("canary")
    }

    /// Not granted.
    fn outside(&self) -> PathBuf {
        self.folder.join("outside")
    }

    /// Writable, except `hidden/key` and `.env`, which are hidden, and `fixed/settled`, which is read-only.
    fn work(&self) -> PathBuf {
        self.folder.join("work")
    }

    /// Readable, with a socket in it.
    fn read(&self) -> PathBuf {
        self.folder.join("read")
    }

    /// Executable.
    fn tools(&self) -> PathBuf {
        self.folder.join("tools")
    }
}

/// For a single result: any success is an escape.
fn must_fail<T: fmt::Debug, E: fmt::Display>(outcome: Result<T, E>) -> Verdict {
    match outcome {
        Ok(got) => Verdict::Broke(format!("{got:?}")),
        Err(error) => Verdict::Held(error.to_string()),
    }
}

/// For several ways to the same goal.
fn none_works<T: fmt::Debug>(tries: impl IntoIterator<Item = (&'static str, io::Result<T>)>) -> Verdict {
    let mut said = String::new();
    for (way, outcome) in tries {
        match outcome {
            Ok(got) => return Verdict::Broke(format!("{way}: {got:?}")),
            Err(error) => said = format!("{said}{way}: {error}; "),
        }
    }
    Verdict::Held(said)
}

/// The content of a file, if it can be read.
fn read(path: impl AsRef<Path>) -> io::Result<String> {
    let bytes = std::fs::read(path)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
