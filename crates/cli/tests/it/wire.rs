//! What the gateway says on the wire and about itself, from outside.

use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token};

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
