//! Edits of `auth` apply to a running gateway at once, also to existing sessions.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
};

use serde_json::{Value, json};

use crate::place::{Place, Serving, token, until};

#[test]
fn revoked_access_ends_at_once() {
    let place = Place::new();
    place.configure("auth:\n  anonymous:\n    permissions: []\n");
    place.ok(&["publish"]);
    let own = token(&place, &[]);
    let serving = Serving::start(&place);
    let status = |token: Option<&str>| serving.ask(token, "tools/list", json!({})).0;
    assert_eq!((status(None), status(Some(&own))), (200, 200));
    place.configure("");
    until("no token, no entry", || status(None) == 401);
    assert_eq!(status(Some(&own)), 200, "others are let in as before");
    place.configure("auth:\n  tokens: false\n");
    until("tokens do not count", || status(Some(&own)) == 401);
    place.configure("auth:\n  anonymous:\n    permissions: []\n");
    serving.wait_for("`auth.anonymous` is on");
    until("anybody comes in", || status(None) == 200);
    serving.stop();
}

#[test]
fn invalid_auth_settings_keep_the_last_valid_ones() {
    let place = Place::new();
    place.write_tool("say", &json!({}));
    place.ok(&["publish"]);
    let own = token(&place, &[]);
    let serving = Serving::start(&place);
    let issuer = "auth:\n  tokens: false\n  jwt:\n    - {issuer: 'https://login.example/', audience: gate, key: {pem_file: login.pem}}\n";
    place.configure(&format!("{issuer}exposure:\n  excluded: [say]\n"));
    serving.wait_for("change rejected");
    serving.wait_for("login.pem");
    assert_eq!(serving.ask(Some(&own), "tools/list", json!({})).0, 200, "tokens still count");
    let key = include_str!("../../../server/src/auth/testdata/rsa_a_public.pem");
    fs::write(place.path().join("login.pem"), key).unwrap();
    until("the mended key counts", || serving.ask(Some(&own), "tools/list", json!({})).0 == 401);
    serving.stop();
}

/// The address is fixed at start, even if the edited file says loopback.
#[test]
fn tokenless_access_is_refused_on_a_public_port() {
    let place = Place::new();
    place.configure("server:\n  listen: 0.0.0.0:0\n");
    let serving = Serving::start_as_configured(&place);
    place.configure("server:\n  listen: 127.0.0.1:0\nauth:\n  anonymous:\n    permissions: []\n");
    serving.wait_for("change rejected");
    serving.wait_for("`auth.anonymous` allows calls without a token");
    assert_eq!(serving.ask(None, "tools/list", json!({})).0, 401);
    serving.stop();
}

#[test]
fn local_caller_loses_permissions_at_once() {
    let place = Place::new();
    place.configure("auth:\n  local:\n    permissions: [words]\n");
    place.write_tool("say", &json!({ "x-toolgate-permissions": { "required": ["words"] } }));
    place.ok(&["publish"]);
    let http = Serving::start_with(&place, &["--autonomous", "--listen", "127.0.0.1:0"]);
    let over_http = || {
        let listed = http.ask(None, "tools/list", json!({})).1["result"]["tools"].take();
        names(&listed)
    };
    let mut child = place.serve_stdio();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = |message: Value| -> Value {
        writeln!(input, "{message}").unwrap();
        loop {
            let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if line.get("id").is_some() {
                return line;
            }
        }
    };
    ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tests", "version": "1" },
    } }));
    let mut over_stdio = || {
        let listed =
            ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }))["result"]["tools"].take();
        names(&listed)
    };
    assert_eq!((over_http(), over_stdio()), (both(), both()));
    place.configure("auth:\n  local:\n    permissions: []\n");
    until("it is hidden over HTTP", || over_http() == ["word_count"]);
    until("it is hidden over stdio", || over_stdio() == ["word_count"]);
    http.stop();
    drop(input);
    assert!(child.wait().unwrap().success());
}

fn both() -> Vec<String> {
    vec!["say".to_owned(), "word_count".to_owned()]
}

fn names(tools: &Value) -> Vec<String> {
    let tools = tools.as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}
