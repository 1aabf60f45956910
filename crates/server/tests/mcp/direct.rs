//! Plain calls are answered without the SDK's service. Nobody can tell by the answer.

use serde_json::{Value, json};

use crate::{
    client::{Client, Reply},
    fakes::Does,
    world::World,
};

/// With a member of `_meta` that nobody knows: the SDK answers it.
async fn by_sdk(client: &Client, tool: &str, arguments: &Value) -> Reply {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"test.example/unknown": 1}});
    client.request("tools/call", params).await
}

/// The body with what differs from call to call taken out.
fn comparable(reply: &Reply) -> (u16, String, Value) {
    let mut body = reply.last().clone();
    let mut hidden = Vec::new();
    for pointer in [
        "/result/_meta/dev.toolgate~1callId",
        "/result/_meta/dev.toolgate~1denial/callId",
        "/result/_meta/dev.toolgate~1denial/approval",
        "/result/_meta/dev.toolgate~1denial/expiresInSeconds",
        "/result/requestState",
        "/error/data/callId",
    ] {
        if let Some(value) = body.pointer_mut(pointer) {
            hidden.push(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            *value = "x".into();
        }
    }
    let mut text = body.to_string();
    for value in hidden {
        text = text.replace(&value, "x");
    }
    let kind = reply.headers["content-type"].to_str().unwrap().to_owned();
    (reply.status, kind, serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn plain_calls_and_others_read_the_same() {
    let world = World::new();
    world.add("text", "", Does::Returns(json!("plain \"words\"")));
    world.add("echo", "", Does::Echo);
    let output = "x-toolgate-output: {type: object, properties: {n: {type: integer}}, required: [n]}";
    world.add("count", output, Does::Returns(json!({"n": 1})));
    world.add("strict", "params: [{name: n, type: INTEGER, required: true, testValue: '1'}]", Does::Echo);
    world.add("broken", "", Does::Throws("no paper"));
    world.add("asking", "humanInTheLoop: {mode: REQUIRED}", Does::Echo);
    world.add("hidden", "x-toolgate-permissions: {required: [see]}", Does::Echo);
    let server = world.serve().await;
    for client in [Client::modern(server, "ann"), Client::modern(server, "ann").asked()] {
        for (tool, arguments) in [
            ("text", json!({})),
            ("echo", json!({"b": 1, "a": ["x", null, {"y": 1.5}]})),
            ("count", json!({})),
            ("strict", json!({"n": "many"})),
            ("broken", json!({})),
            ("hidden", json!({})),
            ("absent", json!({})),
        ] {
            let plain = comparable(&client.call(tool, arguments.clone()).await);
            let other = comparable(&by_sdk(&client, tool, &arguments).await);
            assert_eq!(plain, other, "{tool}");
        }
    }
    let asked = Client::modern(server, "ann").asked();
    let plain = asked.call("asking", json!({})).await;
    assert_eq!(plain.result()["resultType"], "input_required", "{}", plain.text);
    assert_eq!(comparable(&plain), comparable(&by_sdk(&asked, "asking", &json!({})).await));
}

/// The journal tells them apart by nothing either.
#[tokio::test]
async fn the_journal_reads_the_same() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let client = Client::modern(world.serve().await, "ann");
    client.call("echo", json!({"a": 1})).await;
    by_sdk(&client, "echo", &json!({"a": 1})).await;
    let mut clients = world.journal.clients();
    assert!(clients.len() > 1, "{clients:?}");
    clients.dedup();
    assert_eq!(clients.len(), 1, "{clients:?}");
}

/// A question asked by the plain way is answered by the other, for an answer is never plain.
#[tokio::test]
async fn what_was_asked_directly_is_answered() {
    let world = World::new();
    let tool = world.add("asking", "humanInTheLoop: {mode: REQUIRED}", Does::Echo);
    let client = Client::modern(world.serve().await, "ann").asked();
    let question = client.call("asking", json!({})).await;
    assert_eq!(tool.begun(), 0);
    let params = json!({
        "name": "asking", "arguments": {}, "requestState": question.result()["requestState"],
        "inputResponses": {"approval": {"action": "accept", "content": {}}},
    });
    assert_eq!(client.request("tools/call", params).await.tool_text(), "{}");
    assert_eq!(tool.begun(), 1);
}

/// What a proxy, or a person, reads as one call must not be another one here, whichever way it takes.
#[tokio::test]
async fn a_message_with_two_readings_is_refused_by_every_way() {
    let world = World::new();
    let takes = "params: [{name: a, description: It, type: OBJECT, required: true, testValue: '{}'}]";
    let tool = world.add("echo", takes, Does::Echo);
    let server = world.serve().await;
    let session = Client::session(server, "ann", "2025-11-25", json!({})).await;
    for client in [Client::modern(server, "ann"), session] {
        for meta in [json!({}), json!({"test.example/unknown": 1})] {
            let params = json!({"name": "echo", "arguments": {"a": {"b": 1}}, "_meta": meta});
            let message = client.message(7, "tools/call", params);
            let sound = client.post(&message).await;
            assert_eq!(sound.tool_text(), r#"{"a":{"b":1}}"#);
            let text = message.to_string();
            for (once, twice) in [
                (r#""b":1"#, r#""b":1,"b":2"#),
                (r#""b":1"#, r#""b":1,"\u0062":2"#),
                (r#""a":{"b":1}"#, r#""a":{"b":1},"a":{}"#),
                (r#""name":"echo","arg"#, r#""name":"echo","name":"echo","arg"#),
                (r#""id":7"#, r#""id":7,"id":8"#),
            ] {
                let doubled = text.replacen(once, twice, 1);
                assert_ne!(doubled, text);
                let reply = client.post_as(&message, doubled.clone()).await;
                assert_eq!((reply.status, &reply.error()["code"]), (400, &json!(-32600)), "{doubled}");
                assert!(reply.text.contains("names a member twice"), "{}", reply.text);
            }
        }
    }
    assert_eq!(tool.begun(), 4, "only the sound ones");
}
