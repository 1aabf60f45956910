//! Compares the verifier in the manual, which shares no code with ours, with this crate.

use std::{
    env, fs,
    io::{self, Write as _},
    path::Path,
    process::Command,
};

use crate::support::TestJournal;

#[test]
fn verifier_in_the_manual_agrees() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/journal-format.md");
    let manual = fs::read_to_string(manual).unwrap();
    let (_, rest) = manual.split_once("```python\n").expect("a block of Python");
    let (script, _) = rest.split_once("```").unwrap();
    assert!(script.lines().count() <= 30, "as short as promised");

    if !has_python() {
        return;
    }
    let place = TestJournal::three_days();
    let check = |expected: i32, message: &str| {
        let output = Command::new("python3").arg("-c").arg(script).arg(place.folder()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(expected), "{text}");
        assert!(text.contains(message), "{text}");
    };
    let last = place.assert_clean().last.unwrap();
    check(0, &format!("39 records, the last one is {}", last.hash));

    clock_set_back(&place);
    let last = place.assert_clean().last.unwrap();
    check(0, &format!("43 records, the last one is {}", last.hash));

    let file = "2026-11-17.jsonl";
    let lines = place.lines(file);
    let edit = |edit: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.clone();
        edit(&mut lines);
        place.put_lines(file, &lines);
    };
    edit(&|lines| lines[2] = lines[2].replace("test", "tesu"));
    check(1, "2026-11-17.jsonl:3: edited");
    edit(&|lines| drop(lines.remove(2)));
    check(1, "2026-11-17.jsonl:3: does not follow");
    edit(&|lines| lines.swap(4, 5));
    check(1, "2026-11-17.jsonl:5: does not follow");
    edit(&|lines| lines[4] = "garbage".to_owned());
    check(1, "2026-11-17.jsonl:5: not a record");
    // A checkpoint with another root, and the rest of the chain recomputed.
    edit(&|lines| {
        let root = crate::support::parse(&lines[4])["entry"]["root"].as_str().unwrap().to_owned();
        lines[4] = lines[4].replace(&root, &format!("sha256:{}", "0".repeat(64)));
        let prev = crate::support::parse(&lines[3])["hash"].as_str().unwrap().to_owned();
        crate::support::rechain(lines, 4, prev);
    });
    check(1, "2026-11-17.jsonl:5: the checkpoint has another root");
    fs::remove_file(place.path("2026-11-18.jsonl")).unwrap();
    edit(&|_| {});
    check(1, "ends before record 43");
}

/// Two more records and a checkpoint each, with a clock that is days behind.
fn clock_set_back(place: &TestJournal) {
    place.time.store(crate::support::START, std::sync::atomic::Ordering::SeqCst);
    for _ in 0..2 {
        let journal = place.open();
        place.fill(&journal, 1);
        journal.close().unwrap();
    }
    assert_eq!(place.assert_clean().clock_behind.records, 4);
}

/// Skipped only on request: a test that checks nothing must not look like a passed one.
#[track_caller]
fn has_python() -> bool {
    if Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    let is_chosen = env::var_os("TOOLGATE_TESTS_OFFLINE").is_some_and(|value| value == "1");
    assert!(
        is_chosen,
        "there is no python3; install it, or leave this test out with TOOLGATE_TESTS_OFFLINE=1"
    );
    // Not `eprintln!`, which is shown for failed tests only.
    let _ = writeln!(
        io::stderr(),
        "LEFT OUT: the verifier in the manual, without python3 (TOOLGATE_TESTS_OFFLINE=1)"
    );
    false
}
