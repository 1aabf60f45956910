//! The example of a program that embeds the gateway runs, and prints what it should.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails loudly")]

use std::{path::PathBuf, process::Command};

#[test]
fn the_example_calls_its_tools_and_is_refused_by_its_own_policy() {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new(example("embed")).arg(state.path().join("state")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "tools: shout, first_pages");
    assert_eq!(lines[1], "released: \"TO BE OR NOT TO BE\"");
    assert_eq!(
        lines[2],
        "refused: decide.policy_forbids: a policy forbids this call: texts have fewer than 100 bytes here"
    );
    assert_eq!(lines[3], r#"released: "one\ntwo\n""#);
    let verified = toolgate_audit::verify(&state.path().join("state/journal"), None, None);
    assert!(verified.is_clean(), "{:?}", verified.findings);
    let records = toolgate_audit::read(&state.path().join("state/journal"), toolgate_audit::Span::default());
    let mut published: Vec<String> = records
        .unwrap()
        .map(|record| record.unwrap().entry)
        .filter(|entry| entry["kind"] == "tool.published" && entry["by"] == "library")
        .map(|entry| entry["tool"]["name"].as_str().unwrap().to_owned())
        .collect();
    published.sort();
    assert_eq!(published, ["first_pages", "shout"], "what is live was written down");
}

/// A pass is for the document: it holds at the next start, but not for a command line that is made in code.
#[test]
fn what_has_passed_is_not_run_again_unless_it_is_made_in_code() {
    let state = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        assert!(Command::new(example("embed")).arg(state.path()).output().unwrap().status.success());
    }
    let records = toolgate_audit::read(&state.path().join("journal"), toolgate_audit::Span::default());
    let mut tried: Vec<String> = records
        .unwrap()
        .map(|record| record.unwrap().entry)
        .filter(|entry| entry["kind"] == "call.closed" && entry["purpose"] == "local-pass")
        .map(|entry| entry["tool"]["name"].as_str().unwrap().to_owned())
        .collect();
    tried.sort();
    assert_eq!(tried, ["first_pages", "first_pages", "shout"]);
}

/// Examples are built beside the tests.
fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.join("examples").join(name)
}
