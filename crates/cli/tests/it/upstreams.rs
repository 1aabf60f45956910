//! Upstream MCP servers: jailed, reviewed, and governed like every other tool. The server is `tests/upstream/server.py`.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token, until};

/// A workspace with the test server behind the gateway. Calls need no approval.
fn place_with(mode: &str) -> (Place, PathBuf) {
    let place = Place::new();
    place.configure("approvals:\n  ask_from: never\n");
    let directory = place.path().join("server");
    fs::create_dir(&directory).unwrap();
    let script = directory.join("server.py");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/upstream/server.py");
    fs::copy(source, &script).unwrap();
    let line = format!("/usr/bin/python3 {} {mode}", script.display());
    place.ok(&[
        "upstream",
        "add",
        "test",
        &line,
        "--read",
        "server",
        "--env",
        "SERVER_KEY=${TEST_SERVER_KEY}",
    ]);
    (place, directory)
}

fn secret_place(mode: &str) -> (Place, PathBuf) {
    let (mut place, directory) = place_with(mode);
    place.set("TEST_SERVER_KEY", SECRET);
    (place, directory)
}

/// The text of a result.
fn said(serving: &Serving, token: &str, tool: &str, arguments: &Value) -> String {
    let result = serving.call(token, tool, arguments);
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

const SECRET: &str = "zebra-canary-7314-quartz";

#[test]
fn server_is_jailed_and_its_tools_are_served_after_approval() {
    let (place, _) = secret_place("honest");
    let review = place.ok(&["upstream", "review", "test"]);
    assert!(review.contains("echo  new") && review.contains("served as    test_echo"), "{review}");
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    assert_eq!(serving.names(&token), Vec::<String>::new(), "nothing is served before the approval");
    place.ok(&["upstream", "approve", "test", "--yes"]);
    until("both tools are live", || serving.names(&token).len() == 2);
    assert_eq!(said(&serving, &token, "test_echo", &json!({ "text": "hello" })), "hello");
    let text = said(&serving, &token, "test_probe", &json!({ "path": "/etc/shadow" }));
    let seen: Value = serde_json::from_str(&text).unwrap();
    assert!(seen["file"].as_str().unwrap().contains("Error"), "{seen}");
    assert_ne!(seen["network"], "connected", "{seen}");
    assert_eq!(seen["secret"], "***", "{seen}");
    let bad = serving.call(&token, "test_echo", &json!({ "text": 7 })).to_string();
    assert!(bad.contains("bind.input_shape"), "{bad}");
    serving.stop();
    let records = place.journal("journal");
    let closed: Vec<&Value> = records.iter().filter(|record| record["kind"] == "call.closed").collect();
    assert!(
        closed.iter().any(|record| record["tool"]["name"] == "test_echo" && record["outcome"] == "released")
    );
    let text = serde_json::to_string(&records).unwrap();
    assert!(!text.contains(SECRET));
}

#[test]
fn changed_tool_is_refused_and_unpublished_until_it_is_approved_again() {
    let (place, directory) = secret_place("rug_pull");
    place.ok(&["upstream", "approve", "test", "--yes"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    assert_eq!(said(&serving, &token, "test_echo", &json!({ "text": "hello" })), "hello");
    fs::write(directory.join("changed"), "").unwrap();
    // This call makes the server announce its change.
    serving.call(&token, "test_probe", &json!({}));
    let mut answer = String::new();
    until("the change is noticed", || {
        answer = serving.call(&token, "test_echo", &json!({ "text": "hello" })).to_string();
        !answer.contains("\"hello\"")
    });
    assert!(answer.contains("execute.upstream_changed") || answer.contains("admit.unknown_tool"), "{answer}");
    until("it is unpublished", || serving.names(&token) == ["test_probe"]);
    let review = place.ok(&["upstream", "review", "test"]);
    assert!(review.contains("echo  changed"), "{review}");
    assert!(review.contains("new optional argument `bcc`"), "{review}");
    let refused = place.fails(&["upstream", "approve", "test", "echo", "--yes"], 1);
    assert!(refused.contains("LINT_POISON_EXFILTRATION"), "{refused}");
    place.ok(&["upstream", "approve", "test", "echo", "--yes", "--accept", "LINT_POISON_EXFILTRATION"]);
    until("it is live again", || serving.names(&token).len() == 2);
    assert_eq!(said(&serving, &token, "test_echo", &json!({ "text": "hello" })), "hello");
    serving.stop();
}

#[test]
fn poisoned_description_blocks_the_approval() {
    let (place, _) = secret_place("poisoned");
    let output = place.fails(&["upstream", "approve", "test", "--yes"], 1);
    assert!(output.contains("approved  test_echo"), "{output}");
    assert!(output.contains("REFUSED   poisoned"), "{output}");
}

#[test]
fn misbehaving_servers_end_in_errors() {
    for (mode, reason) in [("dies", "execute.upstream_unavailable"), ("huge", "execute.upstream_misbehaved")]
    {
        let (place, _) = secret_place(mode);
        place.ok(&["upstream", "approve", "test", "--yes"]);
        let output = place.toolgate(&["call", "test_echo", "text=x"]);
        let text =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(text.contains(reason), "{mode}: {text}");
    }
    let (place, _) = secret_place("garbage");
    let output = place.fails(&["upstream", "review", "test"], 2);
    assert!(output.contains("broke the protocol"), "{output}");
}

#[test]
fn server_is_removed_with_its_tools() {
    let (place, _) = secret_place("honest");
    place.ok(&["upstream", "approve", "test", "--yes"]);
    assert!(place.ok(&["upstream", "list"]).contains("2 approved"));
    place.ok(&["upstream", "remove", "test"]);
    assert!(place.ok(&["upstream", "list"]).contains("no upstream servers"));
    let list = place.toolgate(&["list"]);
    assert!(!String::from_utf8_lossy(&list.stdout).contains("ACTIVE"));
}
