//! `serve --autonomous`: the caller comes from the configuration, and approvals from the queue.

use serde_json::{Value, json};

use crate::place::{Place, Serving, token};

const HERE: [&str; 3] = ["--autonomous", "--listen", "127.0.0.1:0"];

#[test]
fn caller_without_a_token_is_the_local_caller() {
    let place = Place::new();
    place.configure("auth:\n  local:\n    subject: agent\n    permissions: [words]\n");
    place.write_tool("say", &json!({ "x-toolgate-permissions": { "required": ["words"] } }));
    place.write_tool("held", &json!({ "humanInTheLoop": { "mode": "REQUIRED" } }));
    place.ok(&["publish"]);
    let own = token(&place, &[]);
    let serving = Serving::start_with(&place, &HERE);
    serving.wait_for("--autonomous is on: anyone who reaches the port");
    let call = |token, tool: &str| {
        serving.ask(token, "tools/call", json!({ "name": tool, "arguments": { "text": "hi" } }))
    };
    let (status, answer) = call(None, "say");
    assert_eq!(status, 200, "{answer}");
    assert!(answer.to_string().contains("hi!"), "{answer}");
    let (_, answer) = call(None, "held");
    assert!(answer.to_string().contains("toolgate approvals approve"), "for the queue: {answer}");
    // A token that is sent is checked: a valid one authenticates its caller, an invalid one is refused.
    let (_, answer) = call(Some(own.as_str()), "say");
    assert!(answer.to_string().contains("admit.unknown_tool"), "{answer}");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(serving.post(Some("tg_wrong"), &list, &[]).0, 401);
    assert_eq!(serving.post(None, &list, &[("authorization", "Basic eDp5")]).0, 401);
    // Requests from web pages (Origin) and rebound DNS names (Host) are refused.
    assert_eq!(serving.post(None, &list, &[("origin", "https://evil.example")]).0, 403);
    assert_eq!(serving.post(None, &list, &[("sec-fetch-site", "cross-site")]).0, 403);
    assert_eq!(serving.post_to("/admin/v1/approvals", None, &Value::Null, &[]).0, 403, "never an admin");
    serving.stop();
    let records = place.journal("journal");
    let closed: Vec<&str> = records
        .iter()
        .filter(|record| record["kind"] == "call.closed")
        .map(|record| record["caller"]["sub"].as_str().unwrap())
        .collect();
    assert_eq!(closed, ["local:agent", "local:agent", "token:tests"]);
}

#[test]
fn without_the_flag_there_is_no_local_caller_over_http() {
    let place = Place::new();
    let serving = Serving::start(&place);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert_eq!(serving.post(None, &list, &[]).0, 401);
    serving.stop();
}

#[test]
fn autonomous_mode_needs_a_loopback_address() {
    let place = Place::new();
    let refused = |more: &[&str]| place.fails(&[&["serve", "--autonomous"], more].concat(), 2);
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"] {
        let said = refused(&["--listen", listen]);
        assert!(said.contains("can be reached from other hosts") && said.contains(listen), "{said}");
    }
    let said = refused(&["--listen", "127.0.0.1:0", "--public-url", "https://gate.example"]);
    assert!(said.contains("https://gate.example"), "{said}");
    place.configure("auth:\n  anonymous:\n    permissions: []\n");
    let said = refused(&["--listen", "127.0.0.1:0"]);
    assert!(said.contains("`auth.anonymous`"), "{said}");
    assert!(!place.path().join(".toolgate/journal").exists(), "nothing was begun");
}
