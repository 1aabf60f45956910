//! End-to-end cases, one directory each, by the deciding stage: `tests/cases/STAGE/CASE/`.
//!
//! `tool.json` is published and served over stdio. `call.json` is the call and the caller's `permissions`. The answer must
//! contain `outcome.json`, and the closing record must contain `journal.json`.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::place::Place;

#[test]
fn every_case_ends_as_it_should() {
    let mut cases = 0;
    for stage in ["admit", "bind", "check", "decide", "execute", "filter"] {
        for case in folders(&root().join(stage)) {
            run(&case);
            cases += 1;
        }
    }
    assert!(cases >= 15, "{cases}");
}

fn run(case: &Path) {
    let read = |file: &str| -> Value {
        serde_json::from_str(&fs::read_to_string(case.join(file)).unwrap())
            .unwrap_or_else(|error| panic!("{}/{file}: {error}", case.display()))
    };
    let place = Place::new();
    fs::remove_file(place.path().join("tools/word_count.json")).unwrap();
    fs::copy(case.join("tool.json"), place.path().join("tools/tool.json")).unwrap();
    let call = read("call.json");
    let permissions = call.get("permissions").cloned().unwrap_or_else(|| json!([]));
    place.configure(&format!("auth:\n  local:\n    subject: tests\n    permissions: {permissions}\n"));
    place.ok(&["publish", "--yes"]);
    let answer = speak(&place, &json!({ "name": call["name"], "arguments": call["arguments"] }));
    let expected = read("outcome.json");
    let answer = if expected.get("error").is_some() { &answer } else { &answer["result"] };
    contains(answer, &expected, &format!("{} outcome", case.display()));
    let records = place.journal("journal");
    let closed = records.iter().rfind(|record| record["kind"] == "call.closed").unwrap();
    contains(closed, &read("journal.json"), &format!("{} journal", case.display()));
}

/// Starts a gateway over stdio and makes one call.
fn speak(place: &Place, params: &Value) -> Value {
    let mut child = place.serve_stdio();
    let mut input = child.stdin.take().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "cases", "version": "1" },
    } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params });
    write!(input, "{hello}\n{ready}\n{call}\n").unwrap();
    let answers = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let answer = answers
        .map(|line| serde_json::from_str::<Value>(&line).unwrap())
        .find(|message| message["id"] == 2)
        .expect("an answer");
    drop(input);
    assert!(child.wait().unwrap().success());
    answer
}

/// Objects must contain the expected members; all other values must be equal.
#[track_caller]
fn contains(found: &Value, expected: &Value, place: &str) {
    match (found, expected) {
        (Value::Object(members), Value::Object(wanted)) => {
            for (key, value) in wanted {
                let member = members.get(key).unwrap_or_else(|| panic!("{place}: no `{key}` in {found}"));
                contains(member, value, &format!("{place}/{key}"));
            }
        }
        _ => assert_eq!(found, expected, "{place}"),
    }
}

fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases")
}
