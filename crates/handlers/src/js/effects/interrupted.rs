//! Tests records of interrupted effects.

use std::sync::mpsc;

use toolgate_gate::DiskCheckLimits;

use super::*;
use crate::files::{FileCaps, FileRights};

fn effects(workspace: &std::path::Path) -> CallEffects {
    let files = FileGrants {
        workspace: workspace.to_owned(),
        read_roots: Vec::new(),
        pattern_workspace: workspace.to_owned(),
        home: workspace.join("home"),
        rights: FileRights::ReadWrite,
        allowed: Vec::new(),
        blocked: Vec::new(),
        own: Vec::new(),
        locks: workspace.join("state/turns"),
        caps: FileCaps::default(),
    };
    let scope = EffectScope {
        egress: None,
        rules: Arc::new(EgressRules::blocked()),
        methods_to_ask_for: Vec::new(),
        files: Some(Arc::new(files)),
        judged: Arc::from([]),
        redactor: None,
        disk_checks: DiskCheckPermits::default(),
        caller: "tester".to_owned(),
    };
    CallEffects::new(scope, &[], Duration::from_mins(10))
}

fn file(function: &str, path: &str) -> Effect {
    Effect::File(FileCall {
        function: function.to_owned(),
        arguments: vec![path.to_owned(), "x".to_owned()],
        options: Vec::new(),
    })
}

/// The deadline drops the future of an effect, but the effect may still happen, so it must be recorded.
#[test]
fn interrupted_file_function_is_recorded() {
    let workspace = tempfile::tempdir().unwrap();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(1).build().unwrap();
    // The only blocking thread is occupied, so no file function finishes.
    let (release, wait) = mpsc::channel::<()>();
    runtime.spawn_blocking(move || wait.recv());
    let mut effects = effects(workspace.path());
    runtime.block_on(async {
        for path in ["first.txt", "second.txt"] {
            let begun = effects.perform(file("writeText", path));
            assert!(tokio::time::timeout(Duration::from_millis(1), begun).await.is_err());
        }
    });
    drop(release);
    let records = effects.take_records();
    let told: Vec<(&str, &str, &str)> = records
        .iter()
        .map(|record| (record.what.as_str(), record.target.as_str(), record.outcome.as_str()))
        .collect();
    let expected = [
        ("safety.fs.writeText", "first.txt", "interrupted"),
        ("safety.fs.writeText", "second.txt", "interrupted"),
    ];
    assert_eq!(told, expected);
}

/// The number of threads that wait for a disk is bounded.
#[test]
fn file_function_without_a_permit_is_rejected_as_busy() {
    let workspace = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut effects = effects(workspace.path());
    let limits = DiskCheckLimits { total: 1, per_caller: 1, timeout: Duration::from_millis(20) };
    effects.scope.disk_checks = DiskCheckPermits::new(limits);
    let place = runtime.block_on(effects.scope.disk_checks.enter("somebody else", far_off()));
    runtime.block_on(effects.perform(file("writeText", "a.txt")));
    drop(place);
    runtime.block_on(effects.perform(file("writeText", "b.txt")));
    let outcomes: Vec<String> = effects.take_records().into_iter().map(|record| record.outcome).collect();
    assert_eq!(outcomes[0], "HELPER_RUNTIME busy");
    assert_ne!(outcomes[1], "HELPER_RUNTIME busy");
    assert!(!workspace.path().join("a.txt").exists());
}

fn far_off() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(20)
}

#[test]
fn finished_effect_is_recorded_once() {
    let workspace = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut effects = effects(workspace.path());
    runtime.block_on(effects.perform(file("nonsense", "a.txt")));
    let records = effects.take_records();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].outcome, "INVALID_INPUT unknown-function");
}
