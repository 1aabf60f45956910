//! Workers are shared as configured, replaced when they misbehave, and cannot crash the gateway.

use std::{
    collections::HashSet,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value, json};
use toolgate_gate::{
    ApprovedSecrets, DiskCheckPermits, Purpose, Reason, RunReport, RunRequest, UnreportedEffects,
};
use toolgate_handlers::CallGrants;
use toolgate_sandbox::{
    Isolation, JailKind, Layer, LayerSet, Namespaces, WORKER_NAME,
    wire::{Done, Effect, FetchCall, FileCall, FromWorker, Redirect, ScriptEnding, ScriptUsage},
};

use crate::gateway::{Gateway, NoSecrets, document};

#[track_caller]
pub fn returned(report: &RunReport) -> &Value {
    match &report.outcome {
        Ok(Some(value)) => value,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn code(report: &RunReport) -> Reason {
    report.outcome.as_ref().unwrap_err().reason
}

#[test]
fn isolation_setting_controls_worker_sharing() {
    for (isolation, same_caller, same_tool, workers) in [
        (Isolation::Shared, false, false, 1),
        (Isolation::PerCaller, true, false, 1),
        (Isolation::PerCaller, false, true, 2),
        (Isolation::PerTool, false, true, 1),
        (Isolation::PerTool, true, false, 2),
        (Isolation::PerCall, true, true, 2),
    ] {
        let gateway = Gateway::with(|config| {
            config.isolation = isolation;
            config.workers = 1;
            config.spares = 0;
        });
        let first = gateway.tool(&document("return 1"));
        let second = gateway.tool(&document(if same_tool { "return 1" } else { "return 2" }));
        let one = gateway.run_as("ann", &first, &json!({}), &NoSecrets);
        let other = gateway.run_as(if same_caller { "ann" } else { "bob" }, &second, &json!({}), &NoSecrets);
        let seen = HashSet::from([one.worker.unwrap(), other.worker.unwrap()]);
        assert_eq!(seen.len(), workers, "{isolation:?}");
        gateway.still_serves();
    }
}

/// Two tools with equal code have different secrets and grants.
#[test]
fn tools_with_equal_code_do_not_share_a_worker_of_a_tool() {
    let one = json!({
        "name": "one", "description": "A tool under test.", "codeType": "Javascript", "params": [],
        "code": "return 1", "staticVariables": [{ "KEY": "first" }],
        "sandboxOverrides": {
            "networkMode": "allowlist", "hostsAllow": ["a.example.com"],
            "fileRead": true, "fsBasePath": "$WORKSPACE/sub",
        },
    });
    for (pointer, value) in [
        ("/name", "two"),
        ("/staticVariables/0/KEY", "second"),
        ("/sandboxOverrides/hostsAllow/0", "b.example.com"),
        ("/sandboxOverrides/fsBasePath", "$WORKSPACE"),
    ] {
        let gateway = Gateway::with(|config| {
            config.isolation = Isolation::PerTool;
            config.workers = 1;
            config.spares = 0;
        });
        let mut other = one.clone();
        *other.pointer_mut(pointer).unwrap() = json!(value);
        let [first, again, second] = [&one, &one, &other].map(|document| {
            let report = gateway.run(&gateway.tool(document), &json!({}), &NoSecrets);
            assert_eq!(returned(&report), &json!(1));
            report.worker
        });
        assert_eq!(first, again, "{pointer}");
        assert_ne!(first, second, "{pointer}");
    }
}

#[test]
fn worker_is_replaced_after_its_calls() {
    let gateway = Gateway::with(|config| {
        config.workers = 1;
        config.recycle_after = 3;
    });
    let workers: Vec<u64> = (0..7).map(|_| gateway.body("return 1").worker.unwrap()).collect();
    let distinct: HashSet<&u64> = workers.iter().collect();
    assert_eq!(distinct.len(), 3, "{workers:?}");
}

/// A call may not run after all, for example if another call consumed its approval first.
#[test]
fn unused_leased_worker_serves_the_next_call() {
    let gateway = Gateway::with(|config| {
        config.workers = 1;
        config.spares = 0;
        config.waiting = 0;
    });
    let tool = gateway.tool(&document("return 1"));
    let lease = || gateway.runtime.block_on(gateway.runner.lease(&tool, "tester"));
    let first = gateway.body("return 1").worker;
    let leased = lease().unwrap();
    assert_eq!(lease().unwrap_err().reason, Reason::Busy);
    assert_eq!(code(&gateway.body("return 1")), Reason::Busy);
    drop(leased);
    assert_eq!(gateway.body("return 1").worker, first);
    let (leased, none) = (lease().unwrap(), Map::new());
    let request = RunRequest {
        arguments: &none,
        approved_secrets: &ApprovedSecrets::default(),
        unreported: &UnreportedEffects::default(),
        caller: "tester",
        purpose: Purpose::Call,
        disk_checks: &DiskCheckPermits::default(),
    };
    let granted = CallGrants::default();
    let run = gateway.runner.run_in(Some(leased), &tool, &granted, request, &NoSecrets);
    let report = gateway.runtime.block_on(run);
    assert_eq!((returned(&report), report.worker), (&json!(1), first));
    gateway.still_serves();
}

/// At the CPU limit the kernel would kill the worker together with its current call.
#[test]
fn worker_is_replaced_before_its_cpu_limit() {
    let gateway = Gateway::with(|config| {
        config.workers = 1;
        config.spares = 0;
        config.cpu_seconds = 4;
    });
    let slow = gateway
        .tool(&document("await new Promise((r) => setTimeout(r, 2100)); return 1"))
        .with_limits(|limits| limits.timeout_ms = 60_000);
    let first = gateway.run(&slow, &json!({}), &NoSecrets);
    assert_eq!(returned(&first), &json!(1));
    let second = gateway.body("return 2");
    assert_eq!(returned(&second), &json!(2));
    assert_ne!(first.worker, second.worker);
}

#[test]
fn worker_that_died_while_idle_fails_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let program = write_recording_worker(folder.path());
    let gateway = Gateway::with(|config| {
        config.program = program;
        config.workers = 1;
        config.spares = 0;
    });
    let first = gateway.body("return 1");
    assert_eq!(returned(&first), &json!(1));
    kill_and_wait(fs::read_to_string(folder.path().join("pid")).unwrap().trim());
    let second = gateway.body("return 2");
    assert_eq!(returned(&second), &json!(2));
    assert_ne!(first.worker, second.worker);
}

/// A script that records its PID and starts the real worker.
fn write_recording_worker(folder: &Path) -> PathBuf {
    let becomes_a_worker = becomes_a_worker(folder);
    write_script(folder, &format!("echo $$ > '{}/pid'\n{becomes_a_worker}", folder.display()))
}

/// Runs `script` at the first start and the real worker afterwards.
fn write_turncoat(folder: &Path, script: &str) -> PathBuf {
    let becomes_a_worker = becomes_a_worker(folder);
    let taken = folder.join("taken");
    let taken = taken.display();
    write_script(
        folder,
        &format!("if mkdir '{taken}' 2>/dev/null; then\n{script}\nexit\nfi\n{becomes_a_worker}"),
    )
}

/// The last line of a script: replaces it by the real worker, with the same PID and socket.
fn becomes_a_worker(folder: &Path) -> String {
    symlink(env!("CARGO_BIN_EXE_toolgate"), folder.join(WORKER_NAME)).unwrap();
    format!("PATH='{}'\nexec {WORKER_NAME}", folder.display())
}

/// Waits until the process is a zombie and has closed its descriptors.
fn kill_and_wait(pid: &str) {
    assert!(std::process::Command::new("kill").args(["-9", pid]).status().unwrap().success());
    let is_dead = || {
        fs::read_to_string(format!("/proc/{pid}/status")).map_or(true, |status| status.contains("State:\tZ"))
    };
    for _ in 0..2_000 {
        if is_dead() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{pid} lives");
}

/// The spare worker ends during the call, so none is left when the call's worker is lost.
#[test]
fn lost_worker_is_replaced_before_the_next_call() {
    let ready = ready_in_octal();
    for (what, last_act, timeout_ms, expected) in [
        ("dies", "exit 3", 60_000, Reason::WorkerDied),
        (
            "says nonsense",
            "printf '\\000\\000\\000\\000\\143' >&0; sleep 60",
            60_000,
            Reason::WorkerMisbehaved,
        ),
        ("is killed", "sleep 60", 5_000, Reason::Timeout),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let program = write_script(
            folder.path(),
            &format!(
                "cd '{place}'\n\
                 if mkdir first 2>/dev/null; then\n\
                 printf '{ready}' >&0; dd bs=1 count=20 of=/dev/null 2>/dev/null <&0\n\
                 until [ -s second ] && ! kill -0 \"$(cat second)\"; do sleep 0.05; done\n\
                 {last_act}\nexit\nfi\n\
                 if mkdir spare 2>/dev/null; then echo $$ > second; exit; fi\n\
                 : > third\n\
                 {becomes_a_worker}",
                place = folder.path().display(),
                becomes_a_worker = becomes_a_worker(folder.path()),
            ),
        );
        let gateway = Gateway::with(|config| {
            config.program = program;
            config.workers = 1;
            config.spares = 1;
        });
        let tool = gateway.tool(&document("return 1")).with_limits(|limits| limits.timeout_ms = timeout_ms);
        assert_eq!(code(&gateway.run(&tool, &json!({}), &NoSecrets)), expected, "{what}");
        let third = folder.path().join("third");
        let is_started = (0..2_000).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            third.exists()
        });
        assert!(is_started, "{what}: no worker was started");
        gateway.still_serves();
    }
}

#[test]
fn worker_with_exhausted_memory_is_replaced() {
    let gateway = Gateway::with(|config| {
        config.workers = 1;
        config.spares = 0;
    });
    let greedy = gateway
        .tool(&document("const list = []; for (;;) list.push(list.length);"))
        .with_limits(|limits| limits.memory_bytes = 16 << 20);
    let first = gateway.run(&greedy, &json!({}), &NoSecrets);
    assert_eq!(code(&first), Reason::Memory);
    let second = gateway.body("return 2");
    assert_eq!(returned(&second), &json!(2));
    assert_ne!(first.worker, second.worker);
}

#[test]
fn dropped_call_kills_only_its_worker() {
    let gateway = Gateway::new();
    let endless = gateway.tool(&document("while (true) {}")).with_limits(|limits| limits.fuel = u64::MAX / 2);
    gateway.runtime.block_on(async {
        let (arguments, nothing) = (Map::new(), CallGrants::default());
        let running = gateway.runner.run(&endless, &arguments, &nothing, &NoSecrets, "ann");
        assert!(tokio::time::timeout(Duration::from_millis(300), running).await.is_err());
    });
    gateway.still_serves();
}

#[test]
fn call_beyond_the_queue_limit_is_refused_at_once() {
    let gateway = Gateway::with(|config| {
        config.workers = 1;
        config.waiting = 0;
    });
    let slow = gateway.tool(&document("await new Promise((r) => setTimeout(r, 1500)); return 1"));
    let quick = gateway.tool(&document("return 2"));
    gateway.runtime.block_on(async {
        let (arguments, nothing) = (Map::new(), CallGrants::default());
        let running = gateway.runner.run(&slow, &arguments, &nothing, &NoSecrets, "ann");
        let refused = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            gateway.runner.run(&quick, &arguments, &nothing, &NoSecrets, "bob").await
        };
        let (first, second) = tokio::join!(running, refused);
        assert_eq!(returned(&first), &json!(1));
        assert_eq!(code(&second), Reason::Busy);
    });
}

#[test]
fn remaining_layers_hold_without_namespaces() {
    let gateway = Gateway::with(|config| config.namespaces = Namespaces::DangerouslySkip);
    let strength = gateway.runtime.block_on(gateway.pool.warm()).unwrap();
    assert!(
        strength.has(Layer::Seccomp)
            && strength.has(Layer::NoCapabilities)
            && !strength.has(Layer::NetworkNamespace)
    );
    gateway.still_serves();
    let strict = Gateway::with(|config| {
        config.namespaces = Namespaces::DangerouslySkip;
        config.required = JailKind::Worker.hardened();
    });
    let report = strict.body("return 1");
    assert_eq!(code(&report), Reason::WorkerUnavailable);
    assert!(report.outcome.unwrap_err().message.contains("namespace"));
}

/// Fake or compromised workers, which send data over descriptor 0. The same pool then continues with the real worker.
#[test]
fn hostile_worker_fails_only_its_call() {
    let ready = ready_in_octal();
    let rows = hostile_scripts(&ready);
    for (what, script, expected) in rows {
        let folder = tempfile::tempdir().unwrap();
        let program = write_turncoat(folder.path(), &script);
        let gateway = Gateway::with(|config| {
            config.program = program;
            config.spares = 0;
        });
        let tool = gateway.tool(&document("return 1")).with_limits(|limits| limits.timeout_ms = 1_500);
        let report = gateway.run(&tool, &json!({}), &NoSecrets);
        assert_eq!(code(&report), expected, "{what}: {:?}", report.outcome);
        gateway.still_serves();
    }
}

/// A worker that reports layers of a command or container, in addition to its own, is not used.
#[test]
fn worker_cannot_claim_layers_of_other_jails() {
    let real = real_layers();
    let foreign = Layer::ALL.into_iter().filter(|layer| !JailKind::Worker.possible().has(*layer));
    let claims: Vec<LayerSet> = foreign.map(|layer| LayerSet::of(&[layer])).collect();
    assert!(claims.len() > 10, "{claims:?}");
    let unknown = 1 << 40;
    for claim in claims.into_iter().map(LayerSet::to_bits).chain([unknown]) {
        let ready = in_octal(real.to_bits() | claim);
        let folder = tempfile::tempdir().unwrap();
        let program = write_turncoat(folder.path(), &format!("printf '{ready}' >&0; sleep 60"));
        let gateway = Gateway::with(|config| {
            config.program = program;
            config.spares = 0;
        });
        let report = gateway.body("return 1");
        assert_eq!(code(&report), Reason::WorkerUnavailable, "{claim:#x}");
        let message = report.outcome.unwrap_err().message;
        assert!(message.contains("layers that no worker has"), "{claim:#x}: {message}");
    }
}

fn real_layers() -> LayerSet {
    let good = Gateway::new();
    good.runtime.block_on(good.pool.warm()).unwrap()
}

/// The ready message of a real worker, escaped for `printf`.
fn ready_in_octal() -> String {
    in_octal(real_layers().to_bits())
}

/// The ready message of a worker with these layers, escaped for `printf`.
fn in_octal(strength: u64) -> String {
    let bytes = FromWorker::Ready { strength }.encode().unwrap();
    bytes.iter().map(|byte| format!("\\{byte:03o}")).collect::<Vec<_>>().concat()
}

fn hostile_scripts(ready: &str) -> Vec<(&'static str, String, Reason)> {
    // Twenty bytes are `Start` and the beginning of `Run`: a call has arrived.
    let called = format!("printf '{ready}' >&0; dd bs=1 count=20 of=/dev/null 2>/dev/null <&0;");
    vec![
        ("dies at once", String::new(), Reason::WorkerUnavailable),
        (
            "says nonsense first",
            "printf 'hello world, I am a worker' >&0; sleep 60".to_owned(),
            Reason::WorkerUnavailable,
        ),
        ("dies under the call", format!("{called} exit 3"), Reason::WorkerDied),
        ("stays silent", format!("printf '{ready}' >&0; sleep 60"), Reason::Timeout),
        (
            "announces four gigabytes",
            format!("{called} printf '\\377\\377\\377\\377\\005' >&0; sleep 60"),
            Reason::WorkerMisbehaved,
        ),
        (
            "sends an unknown kind",
            format!("{called} printf '\\000\\000\\000\\000\\143' >&0; sleep 60"),
            Reason::WorkerMisbehaved,
        ),
        ("floods", format!("{called} cat /dev/zero >&0"), Reason::WorkerMisbehaved),
        ("is ready twice", format!("{called} printf '{ready}' >&0; sleep 60"), Reason::WorkerMisbehaved),
        (
            "wants the code for ever",
            format!("{called} while true; do printf '\\000\\000\\000\\000\\002' >&0; done"),
            Reason::WorkerMisbehaved,
        ),
    ]
}

/// Valid frames beyond the call's limits. The gateway enforces the limits itself.
#[test]
fn worker_that_exceeds_limits_is_stopped() {
    let good = Gateway::new();
    let strength = good.runtime.block_on(good.pool.warm()).unwrap().to_bits();
    let text = |length: usize| "x".repeat(length);
    let fetch = |value: &str| {
        FromWorker::Effect(Effect::Fetch(FetchCall {
            method: "GET".into(),
            url: "https://example.com/".into(),
            headers: vec![("x-key".into(), value.into())],
            body: None,
            redirect: Redirect::Follow,
            timeout_ms: 0,
            start_index: 0,
            max_length: 0,
        }))
    };
    let file = |path: &str, value: &str| {
        let options = vec![("limit".into(), value.into())];
        FromWorker::Effect(Effect::File(FileCall {
            function: "readText".into(),
            arguments: vec![path.into()],
            options,
        }))
    };
    let done = |ending: ScriptEnding, console: Vec<(u8, String)>| {
        FromWorker::Done(Box::new(Done {
            ending,
            console,
            console_dropped: 0,
            usage: ScriptUsage::default(),
        }))
    };
    let value = |length: usize| ScriptEnding::Value(format!("\"{}\"", text(length)));
    let line = |length: usize| (b'l', text(length));
    let asked = |count: usize| (0..count).map(|_| file("missing", "1")).collect::<Vec<_>>();
    for (what, frames, is_allowed) in [
        ("a short answer", vec![done(value(50), vec![line(10); 3])], true),
        ("two answers", vec![done(value(50), vec![]); 2], true),
        ("a long answer", vec![done(value(LIMITS.result_bytes + 1), vec![])], false),
        ("a long error", vec![done(ScriptEnding::Threw(text(1 << 20)), vec![])], false),
        ("many lines", vec![done(value(1), vec![line(1); LIMITS.console_lines + 1])], false),
        ("a long line", vec![done(value(1), vec![line(LIMITS.console_bytes + 1)])], false),
        ("a few questions", [asked(LIMITS.host_calls), vec![done(value(1), vec![])]].concat(), true),
        ("many questions", asked(LIMITS.host_calls + 1), false),
        ("a long header", vec![fetch(&text(LIMITS.host_bytes + 1))], false),
        ("a long option", vec![file("missing", &text(LIMITS.host_bytes + 1))], false),
        ("one long file", vec![file("long.txt", ""), done(value(1), vec![])], true),
        ("a long file twice, and once more", vec![file("long.txt", ""); 3], false),
    ] {
        let report = run_with_frames(strength, &frames);
        if is_allowed {
            assert!(returned(&report).is_string(), "{what}");
        } else {
            assert_eq!(code(&report), Reason::WorkerMisbehaved, "{what}: {:?}", report.outcome);
        }
    }
}

struct TestLimits {
    result_bytes: usize,
    console_lines: usize,
    console_bytes: usize,
    host_calls: usize,
    host_bytes: usize,
}

const LIMITS: TestLimits =
    TestLimits { result_bytes: 100, console_lines: 3, console_bytes: 100, host_calls: 5, host_bytes: 30_000 };

/// Runs a reading tool in a worker that sends `frames` and ignores its input. If that worker must not be reused, the same
/// pool continues with the real one.
fn run_with_frames(strength: u64, frames: &[FromWorker]) -> RunReport {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, frames: &[FromWorker]| {
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.encode().unwrap()).collect();
        fs::write(folder.path().join(name), bytes).unwrap();
    };
    write("ready", &[FromWorker::Ready { strength }]);
    write("frames", frames);
    let place = folder.path().display();
    let script = format!(
        "cat '{place}/ready' >&0; dd bs=1 count=20 of=/dev/null 2>/dev/null <&0; cat '{place}/frames' >&0; sleep 60"
    );
    let program = write_turncoat(folder.path(), &script);
    let gateway = Gateway::with(|config| {
        config.program = program;
        config.spares = 0;
    });
    fs::write(gateway.workspace().join("long.txt"), "x".repeat(20_000)).unwrap();
    let mut tool = document("return 1");
    tool["sandboxOverrides"] = json!({ "fileRead": true });
    let bounded = |value: usize| u32::try_from(value).unwrap();
    let tool = gateway.tool(&tool).with_limits(|limits| {
        limits.timeout_ms = 10_000;
        limits.result_bytes = bounded(LIMITS.result_bytes);
        limits.console_lines = bounded(LIMITS.console_lines);
        limits.console_bytes = bounded(LIMITS.console_bytes);
        limits.host_calls = bounded(LIMITS.host_calls);
        limits.host_bytes = LIMITS.host_bytes as u64;
    });
    let report = gateway.run(&tool, &json!({}), &NoSecrets);
    let says_more = matches!(frames, [FromWorker::Done(_), _, ..]);
    if report.outcome.is_err() || says_more {
        gateway.still_serves();
    }
    report
}

fn write_script(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("worker.sh");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}
