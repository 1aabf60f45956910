//! Tests that everything ends with the command, its owner or the gateway.

use std::{
    fs,
    process::{Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use toolgate_sandbox::SpawnError;

use super::{ended, shell};
use crate::driver::{
    CAPS, GATEWAY, PATIENCE, PLACED, Tier, finish, jail, jailer, on_runtime, program, spawn,
};

/// A surviving process would hold standard output open, and the command would run into its deadline.
pub fn survivors(tier: Tier) {
    for script in [
        "sleep 600 & exit 3",
        "(setsid sleep 600 &); exit 3",
        "(trap '' HUP TERM; (sleep 600 & sleep 600) &); exit 3",
        "nohup setsid sh -c 'setsid sleep 600 & setsid sleep 600' & exit 3",
    ] {
        let report = finish(shell(tier, script));
        ended(&report, 3);
    }
}

pub fn dropped(tier: Tier) {
    let mark = mark();
    on_runtime(async {
        let running = spawn(shell(tier, &format!("setsid sleep {mark} & sleep {mark}"))).await.unwrap();
        until("it runs", || processes_with(&mark) > 0);
        drop(running);
        until("all are gone", || processes_with(&mark) == 0);
    });
}

/// The gateway can kill everything by itself.
pub fn stopped_supervisor(tier: Tier) {
    let mark = mark();
    on_runtime(async {
        let script = format!("sleep {mark} & (sleep {mark} &); sleep {mark}");
        let running = spawn(shell(tier, &script)).await.unwrap();
        until("they run", || processes_with(&mark) == 3);
        let supervisors: Vec<Pid> = jailers().into_iter().flat_map(children_of).collect();
        for supervisor in &supervisors {
            kill_process(*supervisor, Signal::STOP).unwrap();
        }
        drop(running);
        until("all are gone", || processes_with(&mark) == 0);
        for supervisor in supervisors {
            let _ = kill_process(supervisor, Signal::CONT);
        }
    });
}

pub fn gateway_death(tier: Tier) {
    let mark = mark();
    let mut gateway = Command::new(program());
    gateway
        .env(PLACED, "1")
        .args([GATEWAY, &format!("{tier:?} {mark}")])
        .stdout(Stdio::null())
        .stdin(Stdio::null());
    let mut gateway = gateway.spawn().unwrap();
    // If processes cannot leave the group, one of them fails to start.
    let count = if tier == Tier::Landlock { 2 } else { 3 };
    until("they run", || processes_with(&mark) >= count);
    gateway.kill().unwrap();
    gateway.wait().unwrap();
    until("all are gone", || processes_with(&mark) == 0);
}

/// The other side of `gateway_death`.
pub fn be_a_gateway(role: &str) -> ExitCode {
    let (tier, mark) = role.split_once(' ').unwrap();
    if tier == "Prepared" {
        return super::prepared::be_a_waiting_gateway();
    }
    let tier = if tier == "Landlock" { Tier::Landlock } else { Tier::Namespaces };
    let script = format!("setsid sleep {mark} & (sleep {mark} &) ; trap '' TERM HUP; sleep {mark}");
    let report = finish(shell(tier, &script));
    panic!("it ended: {report:?}")
}

pub fn dead_jailer() {
    ended(&finish(jail(Tier::Namespaces, "/usr/bin/true", &[])), 0);
    let jailers = jailers();
    assert!(!jailers.is_empty());
    for jailer in jailers {
        kill_process(jailer, Signal::KILL).unwrap();
    }
    let _ = jailer();
    let started = Instant::now();
    loop {
        let outcome = on_runtime(async {
            let running = spawn(jail(Tier::Namespaces, "/usr/bin/true", &[])).await?;
            Ok::<_, SpawnError>(running.finish(Vec::new(), CAPS, PATIENCE).await)
        });
        match outcome {
            Ok(report) => break ended(&report, 0),
            Err(_) => assert!(started.elapsed() < PATIENCE, "no new jailer"),
        }
    }
}

/// The jailers of this process.
pub fn jailers() -> Vec<Pid> {
    let is_jailer = |process: &Pid| {
        fs::read_to_string(format!("/proc/{}/cmdline", process.as_raw_nonzero()))
            .is_ok_and(|line| line.starts_with("toolgate-jailer"))
    };
    children_of(rustix::process::getpid()).into_iter().filter(is_jailer).collect()
}

pub fn children_of(process: Pid) -> Vec<Pid> {
    // A process that has ended meanwhile has none.
    let threads = fs::read_dir(format!("/proc/{}/task", process.as_raw_nonzero()));
    let threads = threads.into_iter().flatten().flatten();
    let lists = threads.map(|thread| fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let all = lists.fold(String::new(), |all, more| all + " " + &more);
    all.split_whitespace().filter_map(|id| Pid::from_raw(id.parse().unwrap())).collect()
}

/// A number of seconds that no other process sleeps.
pub fn mark() -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let next = NEXT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    format!("600.{}{next:03}", std::process::id())
}

pub fn processes_with(mark: &str) -> usize {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| {
            line.starts_with(b"sleep\0") && line.windows(mark.len()).any(|part| part == mark.as_bytes())
        })
        .count()
}

#[track_caller]
pub fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
