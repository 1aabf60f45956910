//! `toolgate call` uses a running gateway with the same configuration.

use std::{
    fs,
    io::{Read as _, Write as _},
    os::unix::{
        fs::PermissionsExt as _,
        net::{UnixListener, UnixStream},
    },
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::place::{Place, Serving};

fn place() -> Place {
    let place = Place::new();
    place.configure("approvals:\n  ask_from: never\n");
    place.write_tool("word_count", &json!({ "code": "return text.split(' ').length" }));
    place.ok(&["publish", "--yes"]);
    place
}

fn socket(place: &Place) -> PathBuf {
    place.path().join(".toolgate/call.sock")
}

/// The closing records of calls from the command line.
fn calls(place: &Place, folder: &str) -> Vec<Value> {
    let entries = place.journal_so_far(folder).into_iter();
    let is_call = |entry: &Value| {
        entry["kind"] == "call.closed"
            && entry["purpose"] == "call"
            && entry["client"]["transport"] == "command-line"
    };
    entries.filter(is_call).collect()
}

#[test]
fn call_goes_through_the_running_gateway_and_without_one_works_alone() {
    let place = place();
    let call = ["call", "word_count", "text=to be or not", "--format", "json"];
    let alone: Value = serde_json::from_str(&place.ok(&call)).unwrap();
    let serving = Serving::start(&place);
    assert_eq!(fs::metadata(socket(&place)).unwrap().permissions().mode() & 0o777, 0o600);
    let through: Value = serde_json::from_str(&place.ok(&call)).unwrap();
    assert_eq!((&through["outcome"], &through["result"]), (&alone["outcome"], &alone["result"]));
    let recorded = calls(&place, "journal");
    assert_eq!(recorded.len(), 1, "the gateway wrote the record");
    assert_eq!(recorded[0]["callId"], through["callId"]);
    // The same messages as without a gateway.
    let said = place.fails(&["call", "word_cuont", "text=hi"], 1);
    assert!(said.contains("admit.unknown_tool"), "{said}");
    let said = place.fails(&["call", "word_count", "txt=hi"], 2);
    assert!(said.contains("unknown argument `txt`"), "{said}");
    place.write_tool("draft", &json!({}));
    serving.wait_for("reloaded");
    let said = place.fails(&["call", "draft", "text=hi"], 1);
    assert!(said.contains("`draft` is not served to you: DRAFT"), "{said}");
    serving.stop();
    assert!(!socket(&place).exists());
    assert_eq!(place.ok(&["call", "word_count", "text=a b"]).trim(), "2");
    assert_eq!(calls(&place, "journal").len(), 3, "the last call has a record in the journal of commands");
}

#[test]
fn socket_of_a_killed_gateway_is_replaced() {
    let place = place();
    drop(UnixListener::bind(socket(&place)).unwrap());
    assert_eq!(place.ok(&["call", "word_count", "text=a b"]).trim(), "2", "nothing listens");
    let serving = Serving::start(&place);
    assert_eq!(place.ok(&["call", "word_count", "text=a b c"]).trim(), "3");
    assert_eq!(calls(&place, "journal").len(), 1);
    serving.stop();
}

/// A sandboxed command runs as the same user but cannot read the key.
#[test]
fn peer_without_the_key_gets_no_answer() {
    let place = place();
    let serving = Serving::start(&place);
    let config = fs::canonicalize(place.path().join("toolgate.yaml")).unwrap();
    for key in ["", "00", &"0".repeat(64)] {
        let mut peer = UnixStream::connect(socket(&place)).unwrap();
        let request = json!({
            "key": key, "config": config, "tool": "word_count", "arguments": ["text=a"], "answer": null,
        });
        writeln!(peer, "{request}").unwrap();
        let mut answer = String::new();
        let _ = peer.read_to_string(&mut answer);
        assert_eq!(answer, "");
    }
    assert_eq!(calls(&place, "journal").len(), 0);
    serving.stop();
}

/// A gateway with other settings is not asked.
#[test]
fn gateway_for_another_configuration_is_not_used() {
    let place = place();
    let serving = Serving::start(&place);
    fs::copy(place.path().join("toolgate.yaml"), place.path().join("other.yaml")).unwrap();
    assert_eq!(place.ok(&["call", "word_count", "text=a b", "--config", "other.yaml"]).trim(), "2");
    assert_eq!(calls(&place, "journal").len(), 0);
    serving.stop();
}

/// More of them than the gateway serves at once.
#[test]
fn idle_connections_do_not_block_the_socket() {
    let place = place();
    let serving = Serving::start(&place);
    let idle: Vec<UnixStream> = (0..300).map(|_| UnixStream::connect(socket(&place)).unwrap()).collect();
    let begin = Instant::now();
    assert_eq!(place.ok(&["call", "word_count", "text=a b"]).trim(), "2");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert_eq!(calls(&place, "journal").len(), 1, "the gateway made the call");
    drop(idle);
    serving.stop();
}

/// A gateway that stops takes some time, and the next one may listen before it has ended.
#[test]
fn stopping_gateway_leaves_the_socket_of_its_successor() {
    let place = place();
    let serving = Serving::start(&place);
    fs::remove_file(socket(&place)).unwrap();
    let successor = UnixListener::bind(socket(&place)).unwrap();
    serving.stop();
    assert!(UnixStream::connect(socket(&place)).is_ok(), "the socket is still there");
    drop(successor);
}
