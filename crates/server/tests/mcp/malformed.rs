//! Malformed messages: each gets a JSON-RPC error with the right code, over HTTP in both eras and over stdio.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    client::Client,
    fakes::Does,
    stdio::Pipe,
    world::{World, until},
};

const PARSE: i32 = -32700;
const REQUEST: i32 = -32600;
const PARAMS: i32 = -32602;

/// A malformed message and its answer.
struct Shape {
    message: String,
    code: i32,
    /// The id that the answer repeats.
    id: Value,
    /// Over stdio there is no answer to a notification.
    is_notification: bool,
}

fn shape(message: impl Into<String>, code: i32, id: impl Into<Value>) -> Shape {
    Shape { message: message.into(), code, id: id.into(), is_notification: false }
}

fn shapes() -> Vec<Shape> {
    let mut shapes = not_json();
    shapes.extend(not_requests());
    shapes.extend(wrong_params());
    shapes.extend(wrong_notifications());
    shapes
}

fn not_json() -> Vec<Shape> {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(200), "]".repeat(200));
    let messages = [
        "{",
        "}",
        "{\"jsonrpc\":\"2.0\",",
        "{'jsonrpc':'2.0'}",
        "jsonrpc",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} trailing",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}{}",
        "{\"id\":01}",
        "{\"id\":NaN}",
        "{\"id\":1,}",
        "{\"a\":\"\\ud800\"}",
        "{\"a\":\"\u{1}\"}",
        "{\"a\":1e999}",
        "id=1&method=ping",
        "<xml/>",
        &deep,
    ];
    messages.map(|message| shape(message, PARSE, Value::Null)).into()
}

fn not_requests() -> Vec<Shape> {
    let long = "x".repeat(1025);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let mut shapes: Vec<Shape> = [
        json!(null),
        json!(true),
        json!(1),
        json!("ping"),
        json!([]),
        json!([ping]),
        json!([ping, ping]),
        json!({}),
        json!({"jsonrpc": "2.0"}),
        json!({"jsonrpc": "2.0", "id": null, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": true, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 18_446_744_073_709_551_615_u64, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": long, "method": "tools/call", "params": {"name": "echo"}}),
        json!({"jsonrpc": "2.0", "id": null, "result": {}}),
        json!({"jsonrpc": "2.0", "result": {}}),
    ]
    .map(|message| shape(message.to_string(), REQUEST, Value::Null))
    .into();
    shapes.push(shape(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#, REQUEST, Value::Null));
    shapes.push(shape(r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#, REQUEST, Value::Null));
    shapes.extend(
        [
            json!({"id": 1, "method": "ping"}),
            json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}),
            json!({"jsonrpc": 2.0, "id": 1, "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 1}),
            json!({"jsonrpc": "2.0", "id": 1, "method": null}),
            json!({"jsonrpc": "2.0", "id": 1, "method": 5}),
            json!({"jsonrpc": "2.0", "id": 1, "method": ["ping"]}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "result": {}}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "error": {"code": 1, "message": "x"}}),
            json!({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": 1, "message": "x"}}),
            json!({"jsonrpc": "2.0", "id": 1, "error": "x"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": "x"}),
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": 5}),
        ]
        .map(|message| shape(message.to_string(), REQUEST, 1)),
    );
    shapes
}

fn wrong_params() -> Vec<Shape> {
    let call = |params: Value| json!({"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": params});
    let other = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": "c", "method": method, "params": params});
    [
        call(json!(null)),
        call(json!([])),
        call(json!(["echo", {}])),
        call(json!({})),
        call(json!({"name": null})),
        call(json!({"name": 5})),
        call(json!({"name": ["echo"]})),
        call(json!({"name": "echo", "arguments": "x"})),
        call(json!({"name": "echo", "arguments": 5})),
        call(json!({"name": "echo", "arguments": true})),
        call(json!({"name": "echo", "arguments": []})),
        call(json!({"name": "echo", "arguments": ["a"]})),
        call(json!({"name": "echo", "arguments": {}, "_meta": 5})),
        call(json!({"name": "echo", "arguments": {}, "_meta": []})),
        call(json!({"name": "echo", "arguments": {}, "_meta": {"progressToken": {}}})),
        call(json!({"name": "echo", "arguments": {}, "requestState": 5})),
        other("tools/list", json!({"cursor": 5})),
        other("tools/list", json!([])),
        other("initialize", json!({})),
        other("initialize", json!({"protocolVersion": 5, "capabilities": {}, "clientInfo": {}})),
        other("ping", json!([])),
    ]
    .map(|message| shape(message.to_string(), PARAMS, "c"))
    .into()
}

fn wrong_notifications() -> Vec<Shape> {
    let about = |method: &str, params: Value| {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        Shape { is_notification: true, ..shape(message.to_string(), PARAMS, Value::Null) }
    };
    vec![
        about("notifications/cancelled", json!([])),
        about("notifications/cancelled", json!({"requestId": {}})),
        about("notifications/progress", json!({})),
        about("notifications/initialized", json!({"_meta": 5})),
    ]
}

#[tokio::test]
async fn malformed_messages_get_json_rpc_errors_over_http() {
    let world = World::new();
    let tool = world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    let shapes = shapes();
    assert!(shapes.len() >= 70, "{}", shapes.len());
    let clients = [
        Client::session(server, "ann", "2025-06-18", json!({})).await,
        Client::session(server, "ann", "2025-11-25", json!({"elicitation": {}})).await,
        Client::modern(server, "ann"),
    ];
    let mut wrong = Vec::new();
    for client in &clients {
        // The headers of the stateless era have to name a method and a tool.
        let headers = client.message(1, "tools/call", json!({"name": "echo"}));
        for shape in &shapes {
            let reply = client.post_as(&headers, shape.message.clone()).await;
            let answer = reply.messages.last().cloned().unwrap_or_default();
            let seen = (
                reply.status,
                answer["error"]["code"].as_i64(),
                answer.get("id").cloned().unwrap_or_default(),
            );
            let is_json = reply.headers.get("content-type").is_some_and(|kind| kind == "application/json");
            if seen != (400, Some(shape.code.into()), shape.id.clone())
                || !is_json
                || answer["jsonrpc"] != "2.0"
            {
                wrong.push(format!("{} {:.80}: {seen:?} {:.120}", client.era, shape.message, reply.text));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(tool.begun(), 0);
    // None of it did the sessions any harm.
    for client in &clients {
        assert_eq!(client.call("echo", json!({})).await.tool_text(), "{}");
    }
}

#[tokio::test]
async fn malformed_messages_get_json_rpc_errors_over_stdio() {
    let world = Arc::new(World::new());
    let tool = world.add("echo", "", Does::Echo);
    let mut pipe = Pipe::to(&world);
    pipe.shake_hands("2025-11-25", json!({})).await;
    let mut wrong = Vec::new();
    let shapes = shapes();
    for shape in &shapes {
        pipe.write_line(&shape.message).await;
        if shape.is_notification {
            continue;
        }
        let answer = pipe.hear().await;
        let seen = (answer["error"]["code"].as_i64(), answer.get("id").cloned().unwrap_or_default());
        if seen != (Some(shape.code.into()), shape.id.clone()) {
            wrong.push(format!("{:.80}: {answer}", shape.message));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    let pong = pipe.ask(&json!({"jsonrpc": "2.0", "id": 9, "method": "ping"})).await;
    assert_eq!(
        (&pong["id"], &pong["result"]),
        (&json!(9), &json!({})),
        "no answer to a notification came between"
    );
    assert_eq!(tool.begun(), 0);
    until("the door has counted all of them", || pipe.refusals().len() == shapes.len()).await;
    let counted = |code: &str| pipe.refusals().iter().filter(|(known, _)| known == code).count();
    let expected = |code: i32| shapes.iter().filter(|shape| shape.code == code).count();
    assert_eq!(counted("mcp.parse_error"), expected(PARSE));
    assert_eq!(counted("mcp.invalid_request"), expected(REQUEST));
    assert_eq!(counted("mcp.invalid_params"), expected(PARAMS));
    assert!(pipe.refusals().iter().all(|(_, caller)| caller == "local"));
    pipe.end().await.unwrap();
}

/// Messages that only look odd are served.
#[tokio::test]
async fn unusual_but_valid_messages_are_served() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    for message in [
        json!({"jsonrpc": "2.0", "id": "x".repeat(1024), "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": -1, "method": "ping", "params": null}),
        json!({"jsonrpc": "2.0", "id": 1.0, "method": "tools/list"}),
        json!({"jsonrpc": "2.0", "id": "", "method": "tools/list", "params": {"cursor": null, "more": 1}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": null}}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}, "more": 1}),
    ] {
        let reply = client.post(&message).await;
        assert_eq!(reply.status, 200, "{message:.80}: {}", reply.text);
        assert!(reply.last().get("result").is_some(), "{message:.80}: {}", reply.text);
    }
    let unknown = client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {}})).await;
    assert_eq!((unknown.status, &unknown.error()["code"]), (200, &json!(-32601)));
    let told = client.post(&json!({"jsonrpc": "2.0", "method": "no/such", "params": {}})).await;
    assert_eq!(told.status, 202, "{}", told.text);
}

#[tokio::test]
async fn only_a_wrong_content_type_is_an_unsupported_media_type() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    for mut client in
        [Client::modern(server, "ann"), Client::session(server, "ann", "2025-11-25", json!({})).await]
    {
        let message = client.message(1, "tools/call", json!({"name": "echo"}));
        for good in ["application/json", "Application/JSON", "application/json; charset=utf-8"] {
            client.content_type = good;
            assert_eq!(client.post(&message).await.status, 200, "{good}");
            assert_eq!(client.post_as(&message, "{".to_owned()).await.status, 400, "{good}");
        }
        for bad in
            ["text/plain", "application/jsonx", "application/json-patch+json", "multipart/form-data", ""]
        {
            client.content_type = bad;
            let refused = client.post(&message).await;
            assert_eq!((refused.status, &refused.error()["code"]), (415, &json!(REQUEST)), "{bad}");
        }
    }
}

#[tokio::test]
async fn accept_is_read_as_a_list_of_ranges() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    for mut client in
        [Client::modern(server, "ann"), Client::session(server, "ann", "2025-11-25", json!({})).await]
    {
        for good in ["*/*", "application/*, text/*;q=0.5", "Text/Event-Stream, Application/JSON"] {
            client.accept = good;
            assert_eq!(client.call("echo", json!({})).await.tool_text(), "{}", "{good}");
            assert_eq!(client.list(None).await.status, 200, "{good}");
        }
        for bad in ["application/json", "text/html", "*/*;q=0"] {
            client.accept = bad;
            let refused = client.list(None).await;
            assert_eq!((refused.status, &refused.error()["code"]), (406, &json!(REQUEST)), "{bad}");
        }
    }
    let mut client = Client::session(server, "ann", "2025-11-25", json!({})).await;
    client.accept = "*/*";
    assert_eq!(client.send("GET", None).await.status(), 200);
}
