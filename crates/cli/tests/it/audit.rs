//! `toolgate audit`: queries, exports, verification and receipts.

use std::fs;

use serde_json::{Value, json};

use crate::place::Place;

/// A workspace whose journal has one released call and three refused ones, each in another stage.
fn with_calls() -> Place {
    let place = Place::new();
    place.write_tool("say", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    place.write_tool("throws", &json!({ "code": "if (text !== 'hi') throw new Error('no'); return text" }));
    place.ok(&["publish"]);
    place.ok(&["call", "word_count", "text=to be"]);
    place.fails(&["call", "say", "text=hi"], 1);
    place.fails(&["call", "throws", "text=ho"], 1);
    place.fails(&["call", "word_count", "text:=[1]"], 1);
    place
}

/// The tools of the matching closing records.
fn found(place: &Place, search: &[&str]) -> Vec<String> {
    let arguments = [&["audit", "query", "--format", "json"], search].concat();
    let mut found: Value = serde_json::from_str(&place.ok(&arguments)).unwrap();
    let records = std::mem::take(found["records"].as_array_mut().unwrap());
    let entries = records.into_iter().map(|mut record| record["entry"].take());
    let closed = entries.filter(|entry| entry["kind"] == "call.closed" && entry["purpose"] == "call");
    closed.map(|entry| entry["tool"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn query_accepts_both_kinds_of_stage_names() {
    let place = with_calls();
    for (stage, expect) in [
        ("admit", vec![]),
        ("filter", vec!["word_count"]),
        ("decide", vec!["say"]),
        ("PERMISSION", vec!["say"]),
        ("execute", vec!["throws"]),
        ("EXECUTION", vec!["throws"]),
        ("bind", vec!["word_count"]),
        ("VALIDATION", vec!["word_count"]),
        ("OUTPUT", vec![]),
        ("AUTH", vec![]),
    ] {
        assert_eq!(found(&place, &["--stage", stage]), expect, "{stage}");
    }
    assert_eq!(found(&place, &["--stage", "PERMISSION", "--decision", "ALLOWED"]), Vec::<String>::new());
    assert_eq!(found(&place, &["--stage", "decide", "--tool", "say"]), ["say"]);
    let said = place.fails(&["audit", "query", "--stage", "permission"], 2);
    let words = "admit, bind, check, decide, execute, filter, AUTH, REGISTRY, VALIDATION, PERMISSION, EXECUTION, OUTPUT";
    assert!(said.contains(words), "{said}");
}

#[test]
fn export_contains_every_record_unchanged() {
    let place = with_calls();
    let text = place.ok(&["audit", "export"]);
    let exported: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let entries: Vec<Value> = exported.iter().map(|record| record["entry"].clone()).collect();
    assert_eq!(entries, place.journal("journal-commands"));
    for (number, record) in exported.iter().enumerate() {
        assert_eq!(record["position"]["seq"], number + 1, "{record}");
        assert!(record["position"]["hash"].as_str().unwrap().starts_with("sha256:"), "{record}");
        assert!(record["time"].is_string(), "{record}");
    }
    assert_eq!(place.ok(&["audit", "export", "--to", "2001-01-01"]), "");
    assert_eq!(place.ok(&["audit", "export", "--from", "2001-01-01"]), text);
    let said = place.fails(&["audit", "export", "--from", "yesterday"], 2);
    assert!(said.contains("invalid day `yesterday`; write it as 2026-11-16"), "{said}");
}

/// A changed line ends the export with exit code 1 and is not exported.
#[test]
fn export_of_a_changed_journal_fails() {
    let place = with_calls();
    let folder = place.path().join(".toolgate/journal-commands");
    let is_records = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.find(is_records).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("word_count"));
    fs::write(&file, text.replace("word_count", "word_mount")).unwrap();
    let said = place.fails(&["audit", "export"], 1);
    assert!(!said.contains("\"word_mount\""), "{said}");
}

/// An attacker who rewrites the journal signs it with a new key and removes the old one.
#[test]
fn journal_is_not_verified_with_its_own_key() {
    let place = with_calls();
    let file = place.path().join(".toolgate/keys/journal.key.pub");
    let key = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let said = place.fails(&["audit", "verify"], 1);
    assert!(said.contains("journal.key.pub is missing") && said.contains("--key"), "{said}");
    let told = place.toolgate(&["audit", "verify", "--format", "json"]).stdout;
    assert_eq!(serde_json::from_slice::<Value>(&told).unwrap()["clean"], false);
    place.ok(&["audit", "verify", "--key", key.trim()]);
    fs::create_dir(&file).unwrap();
    let said = place.fails(&["audit", "verify"], 2);
    assert!(said.contains("journal.key.pub`") && said.contains("--key"), "{said}");
    place.ok(&["audit", "verify", "--key", key.trim()]);
    fs::remove_dir(&file).unwrap();
    fs::write(&file, "nonsense").unwrap();
    assert!(place.fails(&["audit", "verify"], 2).contains("journal.key.pub`"));
    fs::write(&file, key).unwrap();
    place.ok(&["audit", "verify"]);
}

#[test]
fn receipt_is_valid_with_the_right_key_only() {
    let place = with_calls();
    let records = place.journal("journal-commands");
    let is_of_call = |record: &&Value| record["decision"] == "ALLOWED" && record["purpose"] == "call";
    let call = records.iter().find(is_of_call).unwrap()["callId"].as_str().unwrap().to_owned();
    let receipt = place.ok(&["audit", "receipt", &call]);
    let key = fs::read_to_string(place.path().join(".toolgate/keys/journal.key.pub")).unwrap();
    // Checking a receipt needs no configuration and no journal.
    let elsewhere = Place::new();
    fs::remove_dir_all(elsewhere.path().join(".toolgate")).ok();
    fs::remove_file(elsewhere.path().join("toolgate.yaml")).unwrap();
    let file = elsewhere.path().join("receipt.json");
    let check = |text: &str, key: &str, code: i32| {
        fs::write(&file, text).unwrap();
        elsewhere.fails(&["audit", "receipt", "--check", "receipt.json", "--key", key], code)
    };
    let shown = check(&receipt, key.trim(), 0);
    assert!(shown.starts_with("valid ") && shown.contains("2 records"), "{shown}");
    assert!(shown.contains("call.opened") && shown.contains("call.closed"), "{shown}");
    assert!(shown.contains(&call) && shown.contains("released"), "{shown}");

    for (from, to) in [("ALLOWED", "DENIED"), ("word_count", "word_mount"), ("call.closed", "call.opened")] {
        assert!(receipt.contains(from), "{from}: {receipt}");
        let said = check(&receipt.replace(from, to), key.trim(), 1);
        assert!(
            said.contains("invalid receipt") && !said.contains("call.opened"),
            "nothing is shown as proven: {said}"
        );
    }
    let other = toolgate_audit::Key::open_or_create(&elsewhere.path().join("keys/other.key")).unwrap();
    let said = check(&receipt, &other.public().to_string(), 1);
    assert!(!said.contains("call.opened"), "{said}");

    assert!(check("{}", key.trim(), 2).contains("this is not a receipt"));
    check(&receipt, "ed25519:nonsense", 2);
    // The key can also be given as a file.
    fs::write(elsewhere.path().join("journal.key.pub"), &key).unwrap();
    assert!(check(&receipt, "journal.key.pub", 0).starts_with("valid "));
    let said = check(&receipt, "receipt.json", 2);
    assert!(said.contains("`receipt.json`") && said.contains("a public key is `ed25519:"), "{said}");
    assert!(check(&receipt, "absent.pub", 2).contains("neither a file nor a public key"));
    place.ok(&["audit", "verify", "--key", ".toolgate/keys/journal.key.pub"]);
    fs::write(&file, &receipt).unwrap();
    let said = elsewhere.fails(&["audit", "receipt", "--check", "receipt.json"], 2);
    assert!(said.contains("name the key to trust"), "{said}");
    elsewhere.fails(&["audit", "receipt", "--check", "absent.json", "--key", key.trim()], 2);
}

#[test]
fn tail_names_the_tool_approval_or_token_of_each_event() {
    let place = with_calls();
    place.ok(&["token", "create", "ci", "--subject", "robot"]);
    place.ok(&["token", "revoke", "ci"]);
    let waiting: Value = serde_json::from_str(&place.ok(&["approvals", "list", "--format", "json"])).unwrap();
    let text = waiting.to_string();
    let id = text.split('"').find(|part| part.starts_with("apr_")).unwrap();
    place.ok(&["approvals", "deny", id]);
    let shown = place.ok(&["audit", "tail", "-n", "100"]);
    let line = |kind: &str| {
        shown.lines().find(|line| line.contains(kind)).unwrap_or_else(|| panic!("{kind}: {shown}"))
    };
    assert!(line("  tool.published  ").contains("tool="), "{shown}");
    assert!(line("  token.created  ").contains("token=ci") && shown.contains("subject=robot"), "{shown}");
    assert!(line("  token.revoked  ").contains("token=ci"), "{shown}");
    let decided = line("  approval.decided  ");
    assert!(decided.contains(&format!("approval={id}")) && decided.contains("tool=say"), "{decided}");
    assert!(decided.contains("state=denied"), "{decided}");
}
