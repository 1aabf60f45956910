//! Direct calls are answered without the SDK's service, and with the same answers.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    client::{Client, Reply},
    fakes::Does,
    world::{World, until},
};

/// Adds a reserved, unknown member of `_meta`, so the SDK answers.
async fn by_sdk(client: &Client, tool: &str, arguments: &Value) -> Reply {
    let params =
        json!({"name": tool, "arguments": arguments, "_meta": {"io.modelcontextprotocol/unknown": 1}});
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

/// In a session the SDK answers by a stream, which every client has to be able to read, as it has to read plain JSON.
#[tokio::test]
async fn plain_calls_in_a_session_and_others_read_the_same() {
    let world = World::new();
    world.add("text", "", Does::Returns(json!("plain \"words\"")));
    world.add("broken", "", Does::Throws("no paper"));
    world.add("asking", "humanInTheLoop: {mode: REQUIRED}", Does::Echo);
    let server = world.serve().await;
    for era in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = Client::session(server, "ann", era, json!({})).await;
        for tool in ["text", "broken", "asking", "absent"] {
            let (plain, other) =
                (client.call(tool, json!({})).await, by_sdk(&client, tool, &json!({})).await);
            assert_eq!(plain.headers["content-type"], "application/json", "{tool}");
            assert_eq!(other.headers["content-type"], "text/event-stream", "{tool}");
            let ((status, _, body), (other_status, _, other_body)) = (comparable(&plain), comparable(&other));
            assert_eq!((status, body), (other_status, other_body), "{tool}");
        }
        client.send("DELETE", None).await;
    }
}

/// A client that can be asked in the middle of a call, one that wants messages, and one whose handshake is not over.
#[tokio::test]
async fn a_session_that_has_to_be_talked_to_is_the_sdks() {
    let world = World::new();
    world.add("text", "", Does::Returns(json!("words")));
    let server = world.serve().await;
    let asked = Client::session(server, "ann", "2025-11-25", json!({"elicitation": {}})).await;
    let told = Client::session(server, "ann", "2025-11-25", json!({})).await;
    told.request("logging/setLevel", json!({"level": "warning"})).await.result();
    let mut other_era = Client::session(server, "ann", "2025-11-25", json!({})).await;
    other_era.era = "2025-06-18";
    for client in [asked, told, other_era] {
        let reply = client.call("text", json!({})).await;
        assert_eq!(reply.tool_text(), "words");
        assert_eq!(reply.headers["content-type"], "text/event-stream");
    }
}

#[tokio::test]
async fn a_plain_call_ends_with_its_session() {
    let world = World::new();
    let tool = world.add("hang", "", Does::Hangs);
    let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    for (begun, meta) in [(1, json!({})), (2, json!({"progressToken": 1}))] {
        let client = Client::session(client.server, "ann", "2025-11-25", json!({})).await;
        let call = client.message(31, "tools/call", json!({"name": "hang", "arguments": {}, "_meta": meta}));
        let waiting = tokio::spawn({
            let client = client.clone();
            async move { client.post(&call).await }
        });
        until("the tool runs", || tool.begun() == begun).await;
        // Long enough for the first word of progress.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(client.send("DELETE", None).await.status(), 204);
        until("the run was dropped", || tool.dropped() == begun).await;
        let reply = waiting.await.unwrap();
        assert!(!reply.text.contains("result"), "{}", reply.text);
    }
    until("both are in the journal", || world.journal.ends().len() == 2).await;
    assert!(world.journal.ends().iter().all(|(_, reason)| *reason == Some("execute.cancelled")));
}

/// The SDK, which ends what is not used, does not see plain calls.
#[tokio::test]
async fn plain_calls_keep_their_session_alive() {
    let world = World::with(|_, settings| settings.sessions.idle = Duration::from_secs(2));
    world.add("echo", "", Does::Echo);
    let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    for _ in 0..60 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let reply = client.call("echo", json!({})).await;
        assert_eq!(
            (reply.status, reply.headers["content-type"].to_str().unwrap()),
            (200, "application/json")
        );
    }
}

#[tokio::test]
async fn who_wants_no_progress_and_waits_long_reads_a_stream() {
    let world = World::new();
    world.add("slow", "", Does::Sleeps(10_500));
    let client = Client::modern(world.serve().await, "ann");
    let reply = client.call("slow", json!({})).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream");
    assert_eq!((reply.messages.len(), reply.headers["cache-control"].to_str().unwrap()), (1, "no-store"));
    assert!(reply.text.starts_with(":\n\ndata: {"), "{}", reply.text);
    assert_eq!(reply.result()["isError"], false);
}

/// The journal tells them apart by nothing either.
#[tokio::test]
async fn the_journal_reads_the_same() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    let modern = Client::modern(server, "ann");
    let session = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let mut seen = 0;
    for client in [modern, session] {
        client.call("echo", json!({"a": 1})).await;
        by_sdk(&client, "echo", &json!({"a": 1})).await;
        let mut clients = world.journal.clients().split_off(seen);
        seen += clients.len();
        assert!(clients.len() > 1, "{clients:?}");
        clients.dedup();
        assert_eq!(clients.len(), 1, "{clients:?}");
    }
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

/// A message that a proxy reads as one call must not be another call at either entrance.
#[tokio::test]
async fn a_message_with_two_readings_is_refused_by_every_way() {
    let world = World::new();
    let takes = "params: [{name: a, description: It, type: OBJECT, required: true, testValue: '{}'}]";
    let tool = world.add("echo", takes, Does::Echo);
    let server = world.serve().await;
    let session = Client::session(server, "ann", "2025-11-25", json!({})).await;
    for client in [Client::modern(server, "ann"), session] {
        for meta in [json!({"k": 1}), json!({"io.modelcontextprotocol/unknown": 1})] {
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
                (r#""_meta":{"#, r#""_meta":{"x.example/y":{"z":1,"z":2},"#),
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
