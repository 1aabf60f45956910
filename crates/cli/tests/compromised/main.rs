//! Does the gateway hold against a worker that somebody took over? Native code in place of the engine enters the real
//! jail, takes a call and attacks; after every attempt the same pool serves the next call with the real worker.
//!
//! Not an ordinary test binary: it is its own attacker, and the jail is entered with one thread. It understands a
//! filter and `--list`. Every forbidden system call by itself is tried in the tests of `toolgate-sandbox`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test without the usual harness fails loudly"
)]

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
};

use serde_json::json;
use tempfile::TempDir;
use toolgate_handlers::{FailureCode, Returned};
use toolgate_sandbox::WORKER_NAME;

use crate::gateway::{Gateway, NoSecrets, document};

/// How a call ends whose worker was taken over.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// The kernel kills the worker for the attempt.
    Killed,
    /// The gateway stops the worker for what it said.
    Stopped,
    /// The gateway does not wait longer than the call may take.
    TimedOut,
    /// Well: nothing was attempted.
    Answered,
}

/// Calls of the kernel have the names they have in the table of attacks.
const ATTEMPTS: &[(&str, Ends)] = &[
    // Without it, a death on the way to the attempt would pass for one.
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
];

const COMPROMISED: &str = "--compromised";

fn main() -> ExitCode {
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
    let stage = Stage::new();
    let mut failed = 0;
    for (attempt, ends) in &chosen {
        let passed = panic::catch_unwind(AssertUnwindSafe(|| stage.check(attempt, *ends))).is_ok();
        println!("test {attempt} ... {}", if passed { "ok" } else { "FAILED" });
        failed += usize::from(!passed);
    }
    println!("\n{} passed, {failed} failed", chosen.len() - failed);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One gateway for all attempts.
struct Stage {
    gateway: Gateway,
    folder: TempDir,
    ledger: String,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = write_program(folder.path());
        let gateway = Gateway::with(|config| {
            config.program = program;
            config.spares = 0;
            // Every call starts a worker, so that the test can say which one is taken over.
            config.recycle_after = 1;
        });
        let ledger = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/attacks.md");
        Self { gateway, folder, ledger: fs::read_to_string(ledger).unwrap() }
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
        match (ends, &report.outcome) {
            (Ends::Killed, Err(failure)) => {
                assert_eq!(failure.code, FailureCode::WorkerDied, "{failure}");
                assert!(failure.message.contains("a system call that its profile forbids"), "{failure}");
            }
            (Ends::Stopped, Err(failure)) => {
                assert_eq!(failure.code, FailureCode::WorkerMisbehaved, "{failure}");
            }
            (Ends::TimedOut, Err(failure)) => assert_eq!(failure.code, FailureCode::Timeout, "{failure}"),
            (Ends::Answered, Ok(Returned::Value(value))) => assert_eq!(value, &json!("native")),
            (ends, outcome) => panic!("{ends:?} was expected: {outcome:?}"),
        }
        self.gateway.still_serves();
        let row = format!("`cli/tests/compromised/main.rs`: `{attempt}` |");
        assert!(
            self.ledger.contains(&row) || matches!(ends, Ends::Answered),
            "docs/attacks.md has no row for `{attempt}`"
        );
    }
}

/// Becomes the attacker once for each `next`, and the real worker at every other start.
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
