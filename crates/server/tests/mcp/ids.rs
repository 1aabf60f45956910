//! Request ids: one that is in use is refused at once, and only where it is in use.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::{
    client::{Client, Reply},
    fakes::{Does, FakeTool},
    world::{World, until},
};

/// The SDK answers a request with a reserved `_meta` key that Toolgate does not know; all others take the direct path.
fn call(client: &Client, tool: &str, path: Path) -> Value {
    let meta = match path {
        Path::Direct => json!({}),
        Path::Sdk => json!({"io.modelcontextprotocol/unknown": 1}),
    };
    client.message(7, "tools/call", json!({"name": tool, "arguments": {}, "_meta": meta}))
}

#[derive(Clone, Copy, Debug)]
enum Path {
    Direct,
    Sdk,
}

fn post(client: &Client, message: Value) -> JoinHandle<Reply> {
    let client = client.clone();
    tokio::spawn(async move { client.post(&message).await })
}

async fn begun(tool: &FakeTool, count: usize) {
    until("the tool runs", || tool.begun() == count).await;
}

#[tokio::test]
async fn duplicate_id_in_a_session_is_refused_and_the_first_call_is_answered() {
    for era in ["2025-06-18", "2025-11-25"] {
        for (first, second) in [
            (Path::Direct, Path::Direct),
            (Path::Direct, Path::Sdk),
            (Path::Sdk, Path::Direct),
            (Path::Sdk, Path::Sdk),
        ] {
            let world = World::new();
            let slow = world.add("slow", "", Does::Sleeps(1_500));
            let fast = world.add("fast", "", Does::Returns(json!("fast")));
            let client = Client::session(world.serve().await, "ann", era, json!({})).await;
            let waiting = post(&client, call(&client, "slow", first));
            begun(&slow, 1).await;
            for message in [
                call(&client, "fast", second),
                client.message(7, "tools/list", json!({})),
                client.message(7, "ping", json!({})),
            ] {
                let refused = tokio::time::timeout(Duration::from_secs(1), client.post(&message)).await;
                let refused = refused.expect("an answer at once");
                assert_eq!(refused.status, 400, "{era} {first:?} {second:?}: {}", refused.text);
                assert_eq!(refused.headers["content-type"], "application/json");
                assert_eq!((&refused.error()["code"], &refused.last()["id"]), (&json!(-32600), &json!(7)));
            }
            let answered = waiting.await.unwrap();
            assert_eq!(answered.result()["isError"], false, "{era} {first:?} {second:?}: {}", answered.text);
            assert_eq!((slow.begun(), fast.begun()), (1, 0));
            assert_eq!(world.journal.ends(), [("slow".to_owned(), None)], "nothing else was released");
            // The id is free again.
            assert_eq!(client.post(&call(&client, "fast", second)).await.tool_text(), "fast");
        }
    }
}

/// The client of an open question must not hear the answer to another request.
#[tokio::test]
async fn duplicate_id_while_a_person_is_asked_is_refused() {
    let world = World::new();
    let mut waiting = world.begin_to_pay("2025-11-25").await;
    let call = waiting.client.message(7, "tools/call", json!({"name": "pay", "arguments": {"sum": 9}}));
    let refused = waiting.client.post(&call).await;
    assert_eq!((refused.status, &refused.error()["code"]), (400, &json!(-32600)), "{}", refused.text);
    let yes = json!({"jsonrpc": "2.0", "id": waiting.question["id"], "result": {"action": "accept"}});
    assert_eq!(waiting.client.post(&yes).await.status, 202);
    assert_eq!(waiting.events.next().await["result"]["content"][0]["text"], r#"{"sum":5}"#);
    assert_eq!(waiting.tool.begun(), 1);
}

#[tokio::test]
async fn equal_ids_of_other_sessions_and_callers_do_not_collide() {
    let world = World::new();
    let slow = world.add("slow", "", Does::Sleeps(500));
    let server = world.serve().await;
    let clients = [
        Client::session(server, "ann", "2025-11-25", json!({})).await,
        Client::session(server, "ann", "2025-11-25", json!({})).await,
        Client::session(server, "bob", "2025-11-25", json!({})).await,
        Client::modern(server, "ann"),
        Client::modern(server, "ann"),
        Client::modern(server, "bob"),
    ];
    for path in [Path::Direct, Path::Sdk] {
        let before = slow.begun();
        let waiting: Vec<_> = clients.iter().map(|client| post(client, call(client, "slow", path))).collect();
        begun(&slow, before + clients.len()).await;
        for reply in waiting {
            let reply = reply.await.unwrap();
            assert_eq!((&reply.last()["id"], &reply.result()["isError"]), (&json!(7), &json!(false)));
        }
    }
}

/// An id stays in use until its cancelled call has really ended.
#[tokio::test]
async fn id_of_a_cancelled_call_is_free_once_the_call_has_ended() {
    for path in [Path::Direct, Path::Sdk] {
        let world = World::new();
        let hang = world.add("hang", "", Does::Hangs);
        world.add("fast", "", Does::Returns(json!("fast")));
        let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
        let waiting = post(&client, call(&client, "hang", path));
        begun(&hang, 1).await;
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
        assert_eq!(client.post(&cancel).await.status, 202);
        waiting.await.unwrap();
        until("the run was dropped", || hang.dropped() == 1).await;
        until("the call is closed", || world.journal.ends().len() == 1).await;
        free(&client, path).await;
    }
}

#[tokio::test]
async fn id_of_a_call_whose_client_left_is_free_once_the_call_has_ended() {
    for path in [Path::Direct, Path::Sdk] {
        let world = World::new();
        let hang = world.add("hang", "", Does::Hangs);
        world.add("fast", "", Does::Returns(json!("fast")));
        let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
        let waiting = post(&client, call(&client, "hang", path));
        begun(&hang, 1).await;
        waiting.abort();
        until("the run was dropped", || hang.dropped() == 1).await;
        free(&client, path).await;
    }
}

/// A handler ends a moment after its run.
async fn free(client: &Client, path: Path) {
    for _ in 0..200 {
        let reply = client.post(&call(client, "fast", path)).await;
        if reply.status == 200 {
            assert_eq!(reply.tool_text(), "fast", "{path:?}");
            return;
        }
        assert_eq!(reply.error()["code"], -32600, "{}", reply.text);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the id was never free: {path:?}");
}
