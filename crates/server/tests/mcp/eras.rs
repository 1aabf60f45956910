//! Requirements of each protocol version.

use serde_json::json;

use crate::{
    client::{Client, MODERN, SESSION_ERAS},
    fakes::Does,
    world::World,
};

#[tokio::test]
async fn every_era_shakes_hands_lists_and_calls() {
    for era in SESSION_ERAS {
        let world = World::new();
        world.add("echo", "", Does::Echo);
        let client = Client::session(world.serve().await, "ann", era, json!({})).await;
        assert_eq!(client.list(None).await.result()["tools"][0]["name"], "echo", "{era}");
        assert_eq!(client.call("echo", json!({"n": 1})).await.tool_text(), r#"{"n":1}"#, "{era}");
        assert_eq!(client.request("ping", json!({})).await.result(), &json!({}), "{era}");
    }
}

#[tokio::test]
async fn a_server_says_who_it_is_and_what_it_can() {
    let world = World::new();
    let server = world.serve().await;
    let mut client = Client::modern(server, "ann");
    let discovered = client.request("server/discover", json!({})).await;
    let found = discovered.result();
    assert_eq!(found["capabilities"], json!({"logging": {}, "tools": {"listChanged": true}}));
    let versions = found["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!("2025-06-18")), "{found}");
    assert_eq!(found["cacheScope"], "private");
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolgate");
    client.era = "2025-11-25";
    let hello = client.initialize().await;
    assert_eq!(hello.result()["serverInfo"]["name"], "toolgate");
    assert_eq!(hello.result()["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
}

#[tokio::test]
async fn a_version_that_nobody_knows_is_refused() {
    let world = World::new();
    let tool = world.add("echo", "", Does::Echo);
    let mut client = Client::modern(world.serve().await, "ann");
    client.era = "1999-01-01";
    assert_eq!(client.initialize().await.status, 400);
    assert_eq!(client.call("echo", json!({})).await.status, 400);
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn what_the_server_has_not_is_not_found() {
    let world = World::new();
    let server = world.serve().await;
    let old = Client::session(server, "ann", "2025-11-25", json!({})).await;
    for client in [Client::modern(server, "ann"), old] {
        for (method, params) in [
            ("prompts/list", json!({})),
            ("prompts/get", json!({"name": "x"})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": "test://x"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": "b"}}),
            ),
            ("tasks/get", json!({"taskId": "x"})),
            ("no/such/thing", json!({})),
        ] {
            let reply = client.request(method, params).await;
            assert_eq!(reply.error()["code"], -32601, "{} {method}: {}", client.era, reply.text);
            assert_eq!(reply.status, if client.era == MODERN { 404 } else { 200 }, "{method}");
        }
    }
}

#[tokio::test]
async fn headers_that_contradict_the_body_are_refused() {
    let world = World::new();
    let tool = world.add("echo", "", Does::Echo);
    let mut client = Client::modern(world.serve().await, "ann");
    let message = client.message(1, "tools/call", json!({"name": "echo", "arguments": {}}));
    client.era = "2025-11-25";
    assert_eq!(client.post(&message).await.status, 400);
    assert_eq!(tool.begun(), 0);
}
