//! Malformed messages, weak isolation and wrong clocks.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use toolgate_audit::{Journal, JournalOptions, Key};

use crate::place::{Place, Serving, token};

/// Runs a command without namespaces, as in many containers.
const NO_NAMESPACES: &str =
    "for kind in user net mnt ipc pid; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec \"$@\"";

fn without_namespaces(place: &Place, arguments: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "sh", "-c", NO_NAMESPACES, "sh"])
        .arg(env!("CARGO_BIN_EXE_toolgate"))
        .args(arguments)
        .current_dir(place.path())
        .env_remove("TOOLGATE_CONFIG")
        .stdin(Stdio::null());
    command
}

#[test]
fn weaker_isolation_is_announced() {
    let place = Place::new();
    let token = token(&place, &["--admin"]);
    let mut child = without_namespaces(&place, &["serve", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    // The warning comes before the line that reports serving.
    for layer in ["network namespaces is missing", "jail for commands is missing"] {
        let mut line = String::new();
        while !line.contains(layer) {
            line.clear();
            assert_ne!(said.read_line(&mut line).unwrap(), 0, "{layer} was never said");
            assert!(!line.contains("serving MCP"), "{layer} was not said in time");
        }
        assert!(line.contains("warn") && line.contains("isolation is weaker on this host"), "{line}");
    }
    let serving = Serving::heard(child, said);
    let ready = serving.get("/readyz", "none");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    let detail =
        "ready\nisolation is weaker on this host: network namespaces missing, jail for commands missing\n";
    assert!(ready.ends_with(detail), "{ready}");
    let metrics = serving.get("/admin/metrics", &token);
    for (layer, value) in [("network_namespaces", 0), ("jail_for_commands", 0), ("seccomp", 1)] {
        let line = format!("toolgate_isolation_layer{{layer=\"{layer}\"}} {value}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    serving.stop();

    let listed = without_namespaces(&place, &["list"]).output().unwrap();
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(
        text.contains("warning: isolation is weaker on this host: jail for commands is missing"),
        "{text}"
    );
    let listed = without_namespaces(&place, &["list", "--format", "json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let jail = listed["isolation"].as_array().unwrap().iter().find(|row| row["layer"] == "jail for commands");
    assert_eq!(jail.unwrap()["state"], "missing", "{listed}");
}

/// Writes one record as if the clock were this far ahead.
fn write_ahead(place: &Place, ahead: Duration) {
    let state = place.path().join(".toolgate");
    let key = Key::open_or_create(&state.join("keys/journal.key")).unwrap();
    let clock = Arc::new(move || SystemTime::now() + ahead);
    let journal = Journal::open(&state.join("journal"), key, JournalOptions::default(), clock).unwrap();
    journal.append(&json!({ "kind": "test.ahead" })).unwrap();
    journal.close().unwrap();
}

#[test]
fn clock_that_was_ahead_is_reported_and_does_not_hide_real_times() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    write_ahead(&place, Duration::from_hours(72));
    let before = SystemTime::now();
    let serving = Serving::start(&place);
    serving.call(&token, "word_count", &json!({ "text": "to be" }));
    serving.stop();
    let verified = place.ok(&["audit", "verify"]);
    assert!(
        verified.contains("intact") && verified.contains("up to 2 days behind an earlier record"),
        "{verified}"
    );
    let report: Value = serde_json::from_str(&place.ok(&["audit", "verify", "--format", "json"])).unwrap();
    let journal =
        report["journals"].as_array().unwrap().iter().find(|one| one["clock_behind"]["records"] != 0);
    let behind = &journal.unwrap()["clock_behind"];
    assert!(behind["seconds"].as_u64().unwrap() > 2 * 86_400, "{behind}");
    // A query by day uses the real time of the call.
    let today = before.duration_since(UNIX_EPOCH).unwrap().as_secs() / 86_400;
    let day = |days: u64| {
        jiff::Timestamp::from_second((days * 86_400).cast_signed()).unwrap().strftime("%Y-%m-%d").to_string()
    };
    let found = place.ok(&[
        "audit",
        "query",
        "--tool",
        "word_count",
        "--from",
        &day(today),
        "--to",
        &day(today + 1),
        "--format",
        "json",
    ]);
    let found: Value = serde_json::from_str(&found).unwrap();
    let records = found["records"].as_array().unwrap();
    let closed = records
        .iter()
        .find(|record| record["entry"]["kind"] == "call.closed")
        .unwrap_or_else(|| panic!("{found}"));
    assert!(closed["wallClock"].as_str().unwrap() < closed["time"].as_str().unwrap(), "{closed}");
    // Reported at start.
    let mut serving = place.serve_stdio();
    drop(serving.stdin.take());
    let heard = std::io::read_to_string(serving.stderr.take().unwrap()).unwrap();
    serving.wait().unwrap();
    assert!(heard.contains("the system clock is 2 days behind the newest journal record"), "{heard}");
}

const MALFORMED: [(&str, i64, &str); 3] = [
    ("{", -32700, "mcp.parse_error"),
    ("[]", -32600, "mcp.invalid_request"),
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"word_count","arguments":[]}}"#,
        -32602,
        "mcp.invalid_params",
    ),
];

fn check_journal(place: &Place, caller: &str, peer: &Value) {
    let records = place.journal("journal");
    for (_, _, reason) in MALFORMED {
        let refused = records.iter().find(|record| record["reason"] == reason);
        let refused = refused.unwrap_or_else(|| panic!("{reason} is not in the journal"));
        assert_eq!((&refused["kind"], &refused["caller"]), (&json!("door.refused"), &json!(caller)));
        assert_eq!((&refused["peer"], &refused["count"]), (peer, &json!(1)), "{refused}");
    }
    assert!(records.iter().all(|record| record["kind"] != "call.opened"));
}

#[test]
fn malformed_messages_are_in_the_journal() {
    let place = Place::new();
    place.ok(&["publish"]);
    let token = token(&place, &[]);
    let serving = Serving::start(&place);
    for (message, code, reason) in MALFORMED {
        let (status, body) = serving.post_text(&token, message);
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &body["error"]["code"]), (400, &json!(code)), "{reason}: {body}");
    }
    serving.stop();
    check_journal(&place, "token:tests", &json!("127.0.0.1"));
}

#[test]
fn malformed_lines_are_in_the_journal() {
    let place = Place::new();
    let mut child = place.serve_stdio();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for (message, code, reason) in MALFORMED {
        writeln!(input, "{message}").unwrap();
        let answer: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["error"]["code"], code, "{reason}: {answer}");
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    check_journal(&place, "local:local", &Value::Null);
}
