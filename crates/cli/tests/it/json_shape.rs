//! `--format json` prints one object in every command, with `version` and `ok`, also when the command fails.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::{bench::snapshot, place::Place};

#[track_caller]
fn object(place: &Place, arguments: &[&str]) -> Value {
    let output = place.toolgate(arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let value: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"));
    assert_eq!(value["version"], 1, "{arguments:?}: {text}");
    assert_eq!(value["ok"], output.status.success(), "{arguments:?}: {text}");
    value
}

#[test]
fn every_command_prints_one_object_of_one_shape() {
    let place = Place::new();
    place.write_tool("say", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    let mut shapes = String::new();
    for arguments in [
        &["publish"][..],
        &["list"],
        &["call", "word_count", "text=to be"],
        &["call", "say", "text=hi"],
        &["call", "absent"],
        &["approvals", "list"],
        &["token", "create", "ci"],
        &["token", "list"],
        &["token", "revoke", "ci"],
        &["token", "revoke", "absent"],
        &["audit", "tail"],
        &["audit", "query", "--tool", "say"],
        &["audit", "verify"],
        &["config", "show"],
        &["doctor"],
        &["check", "tools"],
        &["check", "absent"],
        &["resolve", "tools/word_count.json"],
        &["resolve", "tools/absent.json"],
        &["diff", "tools/word_count.json", "tools/word_count.json"],
        &["run", "tools/word_count.json"],
        &["test"],
        &["import", "tools/word_count.json", "--into", "taken"],
        &["schema", "--list"],
        &["explain"],
        &["explain", "SPEC_PARSE"],
        &["unpublish", "say"],
    ] {
        let value = object(&place, &[arguments, &["--format", "json"]].concat());
        let members: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        let mut members: Vec<&str> =
            members.into_iter().filter(|name| !["version", "ok"].contains(name)).collect();
        members.sort_unstable();
        writeln!(shapes, "{}: {} {}", arguments.join(" "), value["ok"], members.join(", ")).unwrap();
    }
    snapshot("json_shapes.txt", &shapes);
    let id = object(&place, &["approvals", "list", "--all", "--format", "json"])["approvals"][0]["id"].take();
    object(&place, &["approvals", "show", id.as_str().unwrap()]);
    object(&place, &["approvals", "deny", id.as_str().unwrap(), "--format", "json"]);
}
