//! Results, refusals, progress, messages and cancellation.

use serde_json::{Value, json};
use toolgate_gate::CallRecord;

use crate::{
    client::{Client, MODERN},
    fakes::Does,
    world::{World, until},
};

#[tokio::test]
async fn a_result_is_text_json_or_structured() {
    let world = World::new();
    world.add("text", "", Does::Returns(json!("plain \"words\"")));
    world.add("echo", "", Does::Echo);
    let output = "x-toolgate-output: {type: object, properties: {n: {type: integer}}, required: [n]}";
    world.add("count", output, Does::Returns(json!({"n": 1})));
    let server = world.serve().await;
    for client in
        [Client::modern(server, "ann"), Client::session(server, "ann", "2025-06-18", json!({})).await]
    {
        let text = client.call("text", json!({})).await;
        assert_eq!(text.tool_text(), "plain \"words\"");
        assert!(text.result()["_meta"]["dev.toolgate/callId"].is_string(), "{}", text.text);
        assert_eq!(client.call("echo", json!({"b": 1, "a": "x"})).await.tool_text(), r#"{"a":"x","b":1}"#);
        let structured = client.call("count", json!({})).await;
        assert_eq!(structured.result()["structuredContent"], json!({"n": 1}));
        assert_eq!(structured.tool_text(), r#"{"n":1}"#);
        let expect = (client.era == MODERN).then(|| json!("complete"));
        assert_eq!(structured.result().get("resultType"), expect.as_ref());
    }
}

#[tokio::test]
async fn a_call_without_anything_to_tell_is_answered_in_plain_json() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let reply = Client::modern(world.serve().await, "ann").call("echo", json!({})).await;
    assert_eq!(reply.headers["content-type"], "application/json");
}

#[tokio::test]
async fn what_does_not_exist_and_what_is_hidden_read_the_same() {
    let world = World::new();
    world.add("hidden", "x-toolgate-permissions: {required: [see]}", Does::Echo);
    let server = world.serve().await;
    for client in
        [Client::modern(server, "ann"), Client::session(server, "ann", "2025-11-25", json!({})).await]
    {
        let mut read = Vec::new();
        for name in ["hidden", "absent"] {
            let mut error = client.call(name, json!({})).await.error().clone();
            assert_eq!(error["code"], -32602);
            error["data"]["callId"] = "x".into();
            read.push(error.to_string().replace(name, "it"));
        }
        assert_eq!(read[0], read[1]);
    }
    assert_eq!(Client::modern(server, "bob see").call("hidden", json!({})).await.tool_text(), "{}");
}

#[tokio::test]
async fn a_refusal_and_a_failure_are_results_that_teach() {
    let world = World::new();
    world.add("strict", "params: [{name: n, type: INTEGER, required: true, testValue: '1'}]", Does::Echo);
    world.add("broken", "", Does::Throws("no paper"));
    let client = Client::modern(world.serve().await, "ann");
    let refused = client.call("strict", json!({"n": "many"})).await;
    assert_eq!(refused.result()["isError"], true);
    assert!(
        refused.tool_text().starts_with("not run: the arguments do not fit: `/n`"),
        "{}",
        refused.tool_text()
    );
    assert_eq!(refused.result()["_meta"]["dev.toolgate/denial"]["retry"], "change-arguments");
    let failed = client.call("broken", json!({})).await;
    assert_eq!(failed.result()["isError"], true);
    assert!(failed.tool_text().ends_with("the tool failed: no paper"), "{}", failed.tool_text());
    let denial = &failed.result()["_meta"]["dev.toolgate/denial"];
    assert_eq!((&denial["code"], &denial["stage"]), (&json!("execute.tool_failed"), &json!("execute")));
}

#[tokio::test]
async fn nobody_calls_or_lists_as_nobody() {
    let world = World::new();
    let tool = world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    let mut nobody = Client::modern(server, "ann");
    nobody.caller = None;
    assert_eq!(nobody.call("echo", json!({})).await.status, 401);
    assert_eq!(nobody.list(None).await.status, 401);
    let mut old = Client::session(server, "ann", "2025-11-25", json!({})).await;
    old.caller = None;
    assert_eq!(old.call("echo", json!({})).await.status, 401);
    assert_eq!(old.initialize().await.status, 401);
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn arguments_and_client_names_do_not_make_a_caller() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let client = Client::modern(world.serve().await, "ann");
    let params = json!({
        "name": "echo", "arguments": {"caller": "root"},
        "_meta": {"caller": "root", "dev.toolgate/conversation": "talk-1", "sub": "root"},
    });
    client.request("tools/call", params).await.result();
    let record = world.journal.0.lock().unwrap()[0].clone();
    assert_eq!(record.caller.sub, "ann");
    assert_eq!(record.client.conversation.as_deref(), Some("talk-1"));
    assert_eq!((record.client.name.as_deref(), record.client.transport), (Some("raw"), "http"));
    assert_eq!(record.client.protocol.as_deref(), Some(MODERN));
}

#[tokio::test]
async fn a_session_is_its_conversation() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let client = Client::session(world.serve().await, "ann", "2025-06-18", json!({})).await;
    client.call("echo", json!({})).await.result();
    let said = world.journal.clients();
    assert_eq!(said[0]["conversation"], client.session.unwrap());
    assert_eq!(said[0]["protocol"], "2025-06-18");
}

#[tokio::test]
async fn a_conversation_without_a_usable_name_is_refused() {
    let world = World::new();
    let tool = world.add("echo", "", Does::Echo);
    let client = Client::modern(world.serve().await, "ann");
    for name in [json!(""), json!(5), json!("x".repeat(201)), json!({"n": 1})] {
        let params = json!({"name": "echo", "arguments": {}, "_meta": {"dev.toolgate/conversation": name}});
        assert_eq!(client.request("tools/call", params).await.error()["code"], -32602);
    }
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn progress_is_told_of_calls_that_take_time_and_rises() {
    let world = World::new();
    world.add("slow", "", Does::Sleeps(500));
    world.add("fast", "", Does::Echo);
    let server = world.serve().await;
    for client in
        [Client::modern(server, "ann"), Client::session(server, "ann", "2025-11-25", json!({})).await]
    {
        for (tool, least) in [("slow", 3), ("fast", 0)] {
            let params = json!({"name": tool, "arguments": {}, "_meta": {"progressToken": "p1"}});
            let reply = client.request("tools/call", params).await;
            let told: Vec<f64> = reply
                .messages
                .iter()
                .filter(|message| message["method"] == "notifications/progress")
                .map(|message| {
                    assert_eq!(message["params"]["progressToken"], "p1");
                    message["params"]["progress"].as_f64().unwrap()
                })
                .collect();
            assert!(told.len() >= least, "{tool} {}: {}", client.era, reply.text);
            // On a machine that is busy even that may take its time.
            let kind = if told.is_empty() { "application/json" } else { "text/event-stream" };
            assert_eq!(reply.headers["content-type"], kind, "{tool} {}", client.era);
            assert!(told.is_sorted_by(|a, b| a < b), "{told:?}");
            assert_eq!(reply.result()["isError"], false);
        }
    }
}

#[tokio::test]
async fn a_client_that_wants_messages_reads_how_a_call_ended() {
    let world = World::new();
    world.add("broken", "", Does::Throws("no paper"));
    let server = world.serve().await;
    let old = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let mut events = old.open("GET", None).await;
    old.call("broken", json!({})).await.result();
    old.request("logging/setLevel", json!({"level": "emergency"})).await.result();
    old.call("broken", json!({})).await.result();
    old.request("logging/setLevel", json!({"level": "warning"})).await.result();
    let call_id = old.call("broken", json!({})).await.result()["_meta"]["dev.toolgate/callId"].clone();
    let message = events.next().await;
    assert_eq!(message["method"], "notifications/message", "{message}");
    assert_eq!(message["params"]["level"], "error");
    // The first message is of the third call: the others were not wanted.
    assert_eq!(message["params"]["data"]["callId"], call_id);

    let modern = Client::modern(server, "ann");
    let params =
        json!({"name": "broken", "arguments": {}, "_meta": {"io.modelcontextprotocol/logLevel": "info"}});
    let reply = modern.request("tools/call", params).await;
    assert_eq!(reply.messages[0]["method"], "notifications/message", "{}", reply.text);
    assert_eq!(modern.call("broken", json!({})).await.messages.len(), 1);
    assert_eq!(modern.request("logging/setLevel", json!({"level": "info"})).await.error()["code"], -32601);
}

const LINES: &[(&str, &str)] =
    &[("debug", "fine"), ("log", "one \u{1b}[2J"), ("info", "two"), ("warn", "three"), ("error", "four")];

/// Level, logger and text of a message.
#[track_caller]
fn told(message: &Value) -> [&str; 3] {
    assert_eq!(message["method"], "notifications/message", "{message}");
    let params = &message["params"];
    [&params["level"], &params["logger"], &params["data"]["text"]].map(|part| part.as_str().unwrap())
}

fn logged_at(level: &str, tool: &str) -> Value {
    json!({"name": tool, "arguments": {}, "_meta": {"io.modelcontextprotocol/logLevel": level}})
}

#[tokio::test]
async fn a_client_that_wants_messages_reads_the_console_of_its_call() {
    let world = World::new();
    world.add("chatty", "", Does::Logs(LINES));
    let modern = Client::modern(world.serve().await, "ann");
    let reply = modern.request("tools/call", logged_at("info", "chatty")).await;
    let (result, messages) = reply.messages.split_last().unwrap();
    assert_eq!(result["result"]["content"][0]["text"], "logged");
    let call_id = &result["result"]["_meta"]["dev.toolgate/callId"];
    assert!(messages.iter().all(|message| message["params"]["data"]["callId"] == *call_id), "{}", reply.text);
    let expect = [
        ["info", "chatty", "one \\u{1b}[2J"],
        ["info", "chatty", "two"],
        ["warning", "chatty", "three"],
        ["error", "chatty", "four"],
    ];
    assert_eq!(messages.iter().map(told).collect::<Vec<_>>(), expect);
    let all = modern.request("tools/call", logged_at("debug", "chatty")).await;
    assert_eq!(told(&all.messages[0]), ["debug", "chatty", "fine"]);
    assert_eq!(modern.call("chatty", json!({})).await.messages.len(), 1, "nobody asked");
}

#[tokio::test]
async fn a_session_reads_the_console_of_its_own_calls_only() {
    let world = World::new();
    world.add("chatty", "", Does::Logs(LINES));
    world.add("other", "", Does::Logs(&[("error", "mine")]));
    let server = world.serve().await;
    let ann = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let beside = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let (mut of_ann, mut of_beside) = (ann.open("GET", None).await, beside.open("GET", None).await);
    ann.call("chatty", json!({})).await.result();
    ann.request("logging/setLevel", json!({"level": "warning"})).await.result();
    beside.request("logging/setLevel", json!({"level": "debug"})).await.result();
    assert_eq!(ann.call("chatty", json!({})).await.tool_text(), "logged");
    // The first call was before anybody asked, and the lines below the level are left out.
    assert_eq!(told(&of_ann.next().await), ["warning", "chatty", "three"]);
    assert_eq!(told(&of_ann.next().await), ["error", "chatty", "four"]);
    beside.call("other", json!({})).await.result();
    assert_eq!(told(&of_beside.next().await), ["error", "other", "mine"]);
}

#[tokio::test]
async fn a_tool_with_rules_for_fields_tells_nothing_of_its_console() {
    let world = World::new();
    world.add("ruled", "x-toolgate-outputPolicy: {.name: allow}", Does::Logs(LINES));
    let modern = Client::modern(world.serve().await, "ann");
    let reply = modern.request("tools/call", logged_at("debug", "ruled")).await;
    assert_eq!(reply.messages.len(), 1, "{}", reply.text);
    reply.result();
}

#[tokio::test]
async fn a_cancelled_call_ends_and_is_written_down() {
    let world = World::new();
    let tool = world.add("hang", "", Does::Hangs);
    let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    let call = client.message(31, "tools/call", json!({"name": "hang", "arguments": {}}));
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.post(&call).await }
    });
    until("the tool runs", || tool.begun() == 1).await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 31, "reason": "enough"},
    });
    assert_eq!(client.post(&cancel).await.status, 202);
    until("the run was dropped", || tool.dropped() == 1).await;
    until("it is in the journal", || {
        world.journal.ends() == [("hang".to_owned(), Some("execute.cancelled"))]
    })
    .await;
    assert_eq!(waiting.await.unwrap().messages.len(), 0);
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_call() {
    let world = World::new();
    let tool = world.add("hang", "", Does::Hangs);
    let server = world.serve().await;
    let old = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let mut gone = 0;
    for client in [Client::modern(server, "ann"), old] {
        for meta in [json!({}), json!({"progressToken": 1})] {
            let call = json!({"name": "hang", "arguments": {}, "_meta": meta});
            let message = client.message(40 + gone, "tools/call", call);
            let waiting = tokio::spawn({
                let client = client.clone();
                async move { client.post(&message).await.status }
            });
            gone += 1;
            until("the tool runs", || tool.begun() as u64 == gone).await;
            waiting.abort();
            until("the run was dropped", || tool.dropped() as u64 == gone).await;
        }
    }
    until("all are in the journal", || world.journal.ends().len() == 4).await;
    assert!(world.journal.ends().iter().all(|(_, reason)| *reason == Some("execute.cancelled")));
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused() {
    let world = World::new();
    let tool = world.add("echo", "", Does::Echo);
    let client = Client::modern(world.serve().await, "ann");
    assert_eq!(client.call("echo", json!({"a": "x".repeat(200_000)})).await.status, 413);
    let large = client.call("echo", json!({"a": "x".repeat(60_000)})).await;
    assert!(large.tool_text().contains("code: bind.too_large"), "{}", large.tool_text());
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn a_panic_is_answered_written_down_and_over() {
    let world = World::new();
    world.add("panic", "", Does::Panics);
    world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    let mut ids = Vec::new();
    for client in
        [Client::modern(server, "ann"), Client::session(server, "ann", "2025-11-25", json!({})).await]
    {
        let reply = client.call("panic", json!({})).await;
        assert!(!reply.text.contains("on purpose"), "{}", reply.text);
        let id = reply.result()["_meta"]["dev.toolgate/callId"].clone();
        let told = format!("the gateway failed to run call `{}`", id.as_str().expect("a call's id"));
        assert!(reply.tool_text().starts_with(&told), "{}", reply.text);
        ids.push(id);
        assert_eq!(client.call("echo", json!({})).await.tool_text(), "{}");
    }
    let records = world.journal.0.lock().unwrap();
    let is_end = |record: &&CallRecord| record.kind == "call.closed" && record.tool["name"] == "panic";
    let ends: Vec<_> = records.iter().filter(is_end).collect();
    assert_eq!(ends.iter().map(|end| json!(end.call_id)).collect::<Vec<_>>(), ids);
    for end in ends {
        assert_eq!((end.outcome, end.reason), (Some("broken"), Some("execute.panicked")), "{end:?}");
        assert_eq!(end.message.as_deref(), Some("the gateway panicked; see its standard error"));
    }
    assert_eq!(world.gate.metrics().running(), 0);
}

#[tokio::test]
async fn a_question_is_no_bad_end_to_be_told_of() {
    let world = World::new();
    world.add("pay", crate::world::ASKS, Does::Echo);
    let client = Client::modern(world.serve().await, "ann").asked();
    let params =
        json!({"name": "pay", "arguments": {}, "_meta": {"io.modelcontextprotocol/logLevel": "debug"}});
    let reply = client.request("tools/call", params).await;
    assert_eq!(reply.messages.len(), 1, "{}", reply.text);
    assert_eq!(reply.result()["resultType"], "input_required");
}
