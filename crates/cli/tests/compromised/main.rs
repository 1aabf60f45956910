//! Attacks by a compromised worker. Native code instead of the engine enters the real jail, takes a call and attacks. After
//! every attempt the same pool serves the next call with the real worker.
//!
//! Has its own test harness, because this binary is also the attacker and must enter the jail with one thread. It accepts a
//! filter and `--list`. The tests of `toolgate-sandbox` try every forbidden system call.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test without the usual harness fails loudly"
)]

mod alarm;
#[path = "../../../sandbox/tests/jail/attacks.rs"]
#[expect(dead_code, reason = "shared with the tests of the jail, which do more with it")]
mod attacks;
#[path = "../it/gateway.rs"]
#[expect(dead_code, reason = "shared with the other tests, which do more with it")]
mod gateway;
mod inside;

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    panic::{self, AssertUnwindSafe},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, mpsc},
    time::Duration,
};

use serde_json::json;
use tempfile::TempDir;
use toolgate_gate::Reason;
use toolgate_sandbox::{Death, PoolConfig, WORKER_NAME, WorkerEnd};

use crate::gateway::{Gateway, NoSecrets, document};

/// How a call with a compromised worker ends.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// The kernel kills the worker for the attempt.
    Killed,
    /// The gateway stops the worker because of its messages.
    Stopped,
    /// The call's deadline ends it.
    TimedOut,
    /// Successfully: nothing was attempted.
    Answered,
    /// Successfully, because the attempt comes after the answer. The kernel kills the worker, and the pool reports it although
    /// no call uses the worker again.
    KilledLater,
    /// As before, in a complete gateway: journal, metrics and webhook report it.
    Rings,
}

/// System calls have the names of the table of attacks.
const ATTEMPTS: &[(&str, Ends)] = &[
    // Control case: otherwise a crash before the attempt would look like a blocked attack.
    ("nothing at all", Ends::Answered),
    #[cfg(target_arch = "x86_64")]
    ("open", Ends::Killed),
    ("openat", Ends::Killed),
    ("openat2", Ends::Killed),
    ("socket inet", Ends::Killed),
    ("connect", Ends::Killed),
    ("execve", Ends::Killed),
    ("execveat", Ends::Killed),
    ("ptrace attach", Ends::Killed),
    ("process_vm_writev", Ends::Killed),
    #[cfg(target_arch = "x86_64")]
    ("fork", Ends::Killed),
    ("clone", Ends::Killed),
    ("clone3", Ends::Killed),
    ("mmap executable", Ends::Killed),
    ("mmap writable and executable", Ends::Killed),
    ("mprotect executable", Ends::Killed),
    ("signal the parent", Ends::Killed),
    ("kill everybody", Ends::Killed),
    ("flood of nothing", Ends::Stopped),
    ("flood of questions", Ends::Stopped),
    ("questions whose answers nobody takes", Ends::TimedOut),
    ("one frame without end", Ends::Stopped),
    ("openat after the answer", Ends::KilledLater),
    ("openat after the answer, a while", Ends::KilledLater),
    ("mmap executable after the answer", Ends::Rings),
];

const COMPROMISED: &str = "--compromised";
/// A guard against hanging, not a measurement.
const PATIENCE: Duration = Duration::from_mins(1);

fn main() -> ExitCode {
    if std::env::args().next().is_some_and(|name| name == WORKER_NAME) {
        inside::main(alarm::ATTEMPT);
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let [COMPROMISED, attempt] = words.as_slice() {
        inside::main(attempt);
    }
    if words.contains(&"--list") {
        for (attempt, _) in ATTEMPTS {
            println!("{attempt}: test");
        }
        return ExitCode::SUCCESS;
    }
    run(words.iter().find(|word| !word.starts_with('-')).unwrap_or(&""))
}

fn run(filter: &str) -> ExitCode {
    let chosen: Vec<_> = ATTEMPTS.iter().filter(|(attempt, _)| attempt.contains(filter)).collect();
    println!("running {} tests", chosen.len());
    // Every call starts a worker, so the test can choose the compromised one.
    let stage = Stage::new(1);
    let mut failed = 0;
    for (attempt, ends) in &chosen {
        let passed = panic::catch_unwind(AssertUnwindSafe(|| check(&stage, attempt, *ends))).is_ok();
        println!("test {attempt} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    println!("\n{} passed, {failed} failed", chosen.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(stage: &Stage, attempt: &str, ends: Ends) {
    match ends {
        // The worker must be reusable; otherwise the gateway ends it before it attacks.
        Ends::KilledLater => Stage::new(1_000).check_later(attempt),
        Ends::Rings => alarm::check(),
        _ => stage.check(attempt, ends),
    }
    let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/attacks/ledger/workers.yaml");
    let ledger = fs::read_to_string(ledger).unwrap();
    let is_named = ledger.lines().any(|line| {
        line.trim_start().trim_start_matches("test: ").trim_start_matches("- ").trim_matches('"') == attempt
    });
    assert!(
        is_named || matches!(ends, Ends::Answered),
        "tests/attacks/ledger/workers.yaml has no row for `{attempt}`"
    );
}

/// One gateway and the reported ends of its workers.
struct Stage {
    gateway: Gateway,
    folder: TempDir,
    ended: mpsc::Receiver<WorkerEnd>,
}

impl Stage {
    fn new(recycle_after: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = write_program(folder.path());
        let (tell, ended) = mpsc::channel();
        let on_end = move |end: &WorkerEnd| {
            let _ = tell.send(*end);
        };
        let change = |config: &mut PoolConfig| {
            config.program = program;
            config.spares = 0;
            config.recycle_after = recycle_after;
        };
        Self { gateway: Gateway::watched(change, Arc::new(on_end)), folder, ended }
    }

    fn check(&self, attempt: &str, ends: Ends) {
        let next = self.folder.path().join("next");
        fs::write(&next, attempt).unwrap();
        let mut tool = self.gateway.tool(&document("return 'the real worker'"));
        if matches!(ends, Ends::TimedOut) {
            tool = tool.with_limits(|limits| {
                limits.timeout_ms = 1_500;
                limits.host_calls = u32::MAX;
            });
        }
        let report = self.gateway.run(&tool, &json!({}), &NoSecrets);
        assert!(!next.exists(), "no worker was taken over");
        let is_violation = |end: &WorkerEnd| end.death == Death::SeccompViolation;
        let violations: Vec<WorkerEnd> = self.ended.try_iter().filter(is_violation).collect();
        let expected = matches!(ends, Ends::Killed).then(|| violation_in(report.worker));
        assert_eq!(violations, expected.into_iter().collect::<Vec<_>>(), "told before the call ends, once");
        match (ends, &report.outcome) {
            (Ends::Killed, Err(failure)) => {
                assert_eq!(failure.reason, Reason::WorkerDied, "{failure:?}");
                assert!(
                    failure.message.contains("a system call that its seccomp profile forbids"),
                    "{failure:?}"
                );
            }
            (Ends::Stopped, Err(failure)) => {
                assert_eq!(failure.reason, Reason::WorkerMisbehaved, "{failure:?}");
            }
            (Ends::TimedOut, Err(failure)) => assert_eq!(failure.reason, Reason::Timeout, "{failure:?}"),
            (Ends::Answered, Ok(Some(value))) => assert_eq!(value, &json!("native")),
            (ends, outcome) => panic!("{ends:?} was expected: {outcome:?}"),
        }
        self.gateway.still_serves();
    }

    fn check_later(&self, attempt: &str) {
        fs::write(self.folder.path().join("next"), attempt).unwrap();
        let tool = self.gateway.tool(&document("return 'the real worker'"));
        let report = self.gateway.run(&tool, &json!({}), &NoSecrets);
        assert!(
            matches!(&report.outcome, Ok(Some(value)) if *value == json!("native")),
            "{:?}",
            report.outcome
        );
        let end = self.ended.recv_timeout(PATIENCE).expect("whoever watches is told");
        assert_eq!(end, violation_in(report.worker));
        self.gateway.still_serves();
        self.gateway.runner.retire_idle();
        assert!(self.ended.try_iter().all(|end| end.death != Death::SeccompViolation), "told twice");
    }
}

fn violation_in(worker: Option<u64>) -> WorkerEnd {
    WorkerEnd { worker: worker.expect("it ran in a worker"), calls: 1, death: Death::SeccompViolation }
}

/// A script that starts the attacker once for each `next` file, and otherwise the real worker.
fn write_program(folder: &Path) -> PathBuf {
    let attacker = std::env::current_exe().unwrap();
    symlink(env!("CARGO_BIN_EXE_toolgate"), folder.join(WORKER_NAME)).unwrap();
    let (program, place) = (folder.join("worker.sh"), folder.display());
    let script = format!(
        "#!/bin/sh\n\
         if mv '{place}/next' '{place}/taken' 2>/dev/null; then\n\
         exec '{}' {COMPROMISED} \"$(cat '{place}/taken')\"\n\
         fi\n\
         PATH='{place}'\n\
         exec {WORKER_NAME}\n",
        attacker.display()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    program
}
