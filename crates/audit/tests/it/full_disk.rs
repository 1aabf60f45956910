//! A full disk that gets free space again: a failed append leaves no trace, and appending continues.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::json;
use toolgate_audit::{Journal, JournalError, Key, TimeRange, read, verify};

use crate::support::{options, system_clock};

#[test]
fn full_file_system_recovers_when_space_is_freed() {
    if let Some(disk) = disk() {
        let ballast = disk.join("ballast");
        fs::write(&ballast, vec![1; 48 << 10]).unwrap();
        return check(&disk, || fs::remove_file(&ballast).unwrap());
    }
    let dir = tempfile::tempdir().unwrap();
    let disk = dir.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = "mount -t tmpfs -o size=128k,mode=700 none \"$TOOLGATE_TEST_DISK\" && exec \"$@\"";
    let output = run(
        Command::new("unshare").args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]),
        "full_disk::full_file_system_recovers_when_space_is_freed",
        &disk,
    )
    .expect("this test needs `unshare` of util-linux");
    assert_fine(&output);
}

#[test]
fn file_size_limit_leaves_no_partial_record() {
    if let Some(disk) = disk() {
        let limit = |bytes| setrlimit(Resource::Fsize, Rlimit { current: bytes, maximum: None }).unwrap();
        limit(Some(30_001));
        return check(&disk, || limit(None));
    }
    let dir = tempfile::tempdir().unwrap();
    // Ignored signals are inherited: the limit then causes an error instead of ending the process.
    let script = "trap '' XFSZ; exec \"$@\"";
    let output = run(
        Command::new("sh").args(["-c", script, "sh"]),
        "full_disk::file_size_limit_leaves_no_partial_record",
        dir.path(),
    )
    .unwrap();
    assert_fine(&output);
}

/// Appends until it fails, frees space, and appends again.
fn check(disk: &Path, make_room: impl FnOnce()) {
    let folder = disk.join("journal");
    let key = || Key::open_or_create(&disk.join("key")).unwrap();
    let trusted = key().public();
    let journal = Journal::open(&folder, key(), options(10), system_clock()).unwrap();
    let append = |number: usize| journal.append(&json!({"text": "x".repeat(700 + number * 37 % 999)}));

    let mut acknowledged = Vec::new();
    let error = loop {
        match append(acknowledged.len()) {
            Ok(position) => acknowledged.push(position),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 10_000, "there is a limit");
    };
    assert!(matches!(error, JournalError::Io { .. }), "{error:?}");
    assert!(acknowledged.len() > 10);
    // After any number of attempts, the records are complete and no failed one is among them.
    for number in 0..50 {
        if let Ok(position) = append(number * 13) {
            acknowledged.push(position);
        }
        let report = verify(&folder, Some(trusted), None);
        assert!(report.is_clean(), "{:#?}", report.findings);
    }

    make_room();
    for number in 0..20 {
        acknowledged.push(append(number).unwrap());
    }
    journal.close().unwrap();
    let report = verify(&folder, Some(trusted), None);
    assert!(report.is_clean(), "{:#?}", report.findings);
    let records = read(&folder, TimeRange::default()).unwrap().map(Result::unwrap);
    let written: Vec<_> = records.filter(|record| record.entry.get("text").is_some()).collect();
    assert!(written.iter().map(|record| record.position).eq(acknowledged), "acknowledged, and nothing else");
    println!("fine");
}

fn run(wrapper: &mut Command, test: &str, disk: &Path) -> std::io::Result<Output> {
    let binary = env::current_exe().unwrap();
    wrapper.arg(binary).args(["--exact", "--nocapture", test]).env("TOOLGATE_TEST_DISK", disk).output()
}

#[track_caller]
fn assert_fine(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("fine\n"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The directory to use, in a process that a test started.
fn disk() -> Option<PathBuf> {
    env::var_os("TOOLGATE_TEST_DISK").map(PathBuf::from)
}
