//! Which requests are direct calls, and which go to the SDK.

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use super::{RequestKind, kind_of};

const PLAIN_HEADERS: [(&str, &str); 5] = [
    ("content-type", "application/json"),
    ("accept", "application/json, text/event-stream"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "echo"),
];

fn plain_message() -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {
            "name": "echo", "arguments": {"a": 1},
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            },
        },
    })
}

/// Whether it is a direct call. Otherwise it is rejected, or the body reaches the SDK unchanged.
async fn is_plain(headers: &[(&str, &str)], body: &str) -> bool {
    match kind(headers, body).await {
        RequestKind::Direct(_) => true,
        RequestKind::Sdk(request) => {
            assert_eq!(axum::body::to_bytes(request.into_body(), 100_000).await.unwrap(), body.as_bytes());
            false
        }
        RequestKind::Rejected(..) => false,
        RequestKind::TooLong => panic!("too long: {body:.80}"),
    }
}

async fn kind(headers: &[(&str, &str)], body: &str) -> RequestKind {
    let mut request = Request::post("/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    kind_of(request.body(Body::from(body.to_owned())).unwrap(), 10_000, |_| None).await
}

#[tokio::test]
async fn oversized_and_ambiguous_messages_are_rejected() {
    let message = plain_message().to_string();
    let long = message.replace("\"a\":1", &format!("\"a\":\"{}\"", "x".repeat(10_000)));
    assert!(matches!(kind(&PLAIN_HEADERS, &long).await, RequestKind::TooLong));
    for (once, twice) in [
        ("\"id\":1", "\"id\":1,\"id\":2"),
        ("\"a\":1", "\"a\":1,\"a\":1"),
        ("\"_meta\":{", "\"_meta\":{\"x\":1,\"x\":1,"),
        ("\"_meta\":{", "\"_meta\":{\"x\":{\"y\":1,\"y\":2},"),
        ("\"_meta\":{", "\"_meta\":{\"progressToken\":1,\"progressToken\":1,"),
        ("\"version\":\"1\"", "\"version\":\"1\",\"x\":1,\"x\":2"),
        ("Capabilities\":{", "Capabilities\":{\"x\":1,\"x\":2"),
    ] {
        let doubled = message.replacen(once, twice, 1);
        for headers in [&PLAIN_HEADERS[..], &PLAIN_HEADERS[..1]] {
            let kind = kind(headers, &doubled).await;
            let RequestKind::Rejected(status, rejection) = kind else { panic!("accepted: {doubled}") };
            assert_eq!(status, 400);
            assert!(rejection.detail().contains("names a member twice"), "{doubled}: {rejection:?}");
        }
    }
}

#[tokio::test]
async fn direct_calls_are_recognized() {
    assert!(is_plain(&PLAIN_HEADERS, &plain_message().to_string()).await);
    let mut short = plain_message();
    short["id"] = "a text".into();
    short["params"].as_object_mut().unwrap().remove("arguments");
    short["params"]["_meta"].as_object_mut().unwrap().remove("io.modelcontextprotocol/clientInfo");
    assert!(is_plain(&PLAIN_HEADERS, &short.to_string()).await);
    for (name, value) in
        [("progressToken", json!("p")), ("progressToken", json!(1)), ("other.example/x", json!([1]))]
    {
        let mut more = plain_message();
        more["params"]["_meta"][name] = value;
        assert!(is_plain(&PLAIN_HEADERS, &more.to_string()).await, "{name}");
    }
}

#[tokio::test]
async fn any_different_header_leaves_the_call_to_the_sdk() {
    let body = plain_message().to_string();
    for (index, (name, _)) in PLAIN_HEADERS.into_iter().enumerate() {
        let without: Vec<_> = PLAIN_HEADERS.into_iter().filter(|(other, _)| *other != name).collect();
        assert!(!is_plain(&without, &body).await, "without {name}");
        // `Accept` is a list and may be repeated.
        let twice: Vec<_> = PLAIN_HEADERS.into_iter().chain([PLAIN_HEADERS[index]]).collect();
        assert_eq!(is_plain(&twice, &body).await, name == "accept", "{name} twice");
        let mut other = PLAIN_HEADERS;
        other[index].1 = "other";
        assert!(!is_plain(&other, &body).await, "another {name}");
    }
    let in_a_session: Vec<_> = PLAIN_HEADERS.into_iter().chain([("mcp-session-id", "x")]).collect();
    assert!(!is_plain(&in_a_session, &body).await);
}

#[tokio::test]
async fn any_different_member_leaves_the_call_to_the_sdk() {
    type Change = fn(&mut Value);
    let changes: [(&str, Change); 17] = [
        ("another version of JSON-RPC", |message| message["jsonrpc"] = "1.0".into()),
        ("another method", |message| message["method"] = "tools/list".into()),
        ("another name", |message| message["params"]["name"] = "other".into()),
        ("no id", |message| drop(message.as_object_mut().unwrap().remove("id"))),
        ("an invalid id", |message| message["id"] = json!({})),
        ("more members", |message| message["more"] = 1.into()),
        ("more params", |message| message["params"]["task"] = json!({})),
        ("an answer", |message| message["params"]["inputResponses"] = json!({})),
        ("a state", |message| message["params"]["requestState"] = "x".into()),
        ("arguments that are a list", |message| message["params"]["arguments"] = json!([])),
        ("another era", |message| {
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2025-11-25".into();
        }),
        ("a client without a name", |message| {
            message["params"]["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({});
        }),
        ("progress of nothing", |message| message["params"]["_meta"]["progressToken"] = json!({})),
        ("a level for messages", |message| {
            message["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "info".into();
        }),
        ("a conversation", |message| message["params"]["_meta"]["dev.toolgate/conversation"] = "x".into()),
        ("much beside the call", |message| {
            for number in 0..9 {
                message["params"]["_meta"][format!("x{number}")] = 1.into();
            }
        }),
        ("no `_meta`", |message| drop(message["params"].as_object_mut().unwrap().remove("_meta"))),
    ];
    for (what, change) in changes {
        let mut message = plain_message();
        change(&mut message);
        assert!(!is_plain(&PLAIN_HEADERS, &message.to_string()).await, "{what}");
    }
}

/// serde reads a struct from an array of its members. The SDK rejects such messages, so they must not run here.
#[tokio::test]
async fn arrays_in_place_of_objects_are_left_to_the_sdk() {
    let plain = plain_message();
    let params = &plain["params"];
    let can = json!({});
    let meta_list = json!(["2026-07-28", null, can]);
    let params_list = json!(["echo", {"a": 1}, params["_meta"]]);
    let bodies = [
        ("everything", json!(["2.0", 1, "tools/call", ["echo", {"a": 1}, meta_list]])),
        ("the message", json!(["2.0", 1, "tools/call", params])),
        ("the params", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params_list})),
        ("`_meta`", with_meta(&meta_list)),
        ("the client", with_meta_member("clientInfo", json!(["raw", null, "1", null, null, null]))),
        ("the client, short", with_meta_member("clientInfo", json!([]))),
        ("no client", with_meta_member("clientInfo", Value::Null)),
        ("the capabilities", with_meta_member("clientCapabilities", json!([null, null, null, null, null]))),
        ("the capabilities, short", with_meta_member("clientCapabilities", json!([]))),
    ];
    for (what, body) in bodies {
        assert!(!is_plain(&PLAIN_HEADERS, &body.to_string()).await, "{what} as a list");
    }
}

fn with_meta(meta: &Value) -> Value {
    let mut message = plain_message();
    message["params"]["_meta"] = meta.clone();
    message
}

fn with_meta_member(name: &str, value: Value) -> Value {
    let mut message = plain_message();
    message["params"]["_meta"][format!("io.modelcontextprotocol/{name}")] = value;
    message
}

#[tokio::test]
async fn other_bodies_are_not_direct_calls() {
    let message = plain_message().to_string();
    let escaped = message.replace("tools/call", "tools\\/call");
    let deep = message.replace("\"a\":1", &format!("\"a\":{}{}", "[".repeat(200), "]".repeat(200)));
    let followed = format!("{message} {message}");
    for body in ["", "[]", "null", "{", &followed, &format!("[{message}]"), &escaped, &deep] {
        assert!(!is_plain(&PLAIN_HEADERS, body).await, "{body:.80}");
    }
}

/// Headers may encode such names; the SDK compares them.
#[tokio::test]
async fn encoded_names_are_left_to_the_sdk() {
    let name = "=?base64?ZWNobw==?=";
    let mut headers = PLAIN_HEADERS;
    headers[4].1 = name;
    let mut message = plain_message();
    message["params"]["name"] = name.into();
    assert!(!is_plain(&headers, &message.to_string()).await);
}
