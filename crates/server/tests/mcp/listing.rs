//! Pages, order, cursors, and what a caller may know of.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::{
    client::{Client, MODERN, SESSION_ERAS},
    fakes::Does,
    world::World,
};

fn names(result: &Value) -> Vec<String> {
    let tools = result["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Seven tools, of which the second and the fourth need a permission.
fn world() -> World {
    let world = World::new();
    for (at, name) in
        ["zeta", "hidden_one", "alpha", "hidden_two", "mid", "last", "beyond"].into_iter().enumerate()
    {
        let more = if at % 2 == 1 && at < 4 { "x-toolgate-permissions: {required: [see]}" } else { "" };
        world.add(name, more, Does::Echo);
    }
    world
}

async fn all_pages(client: &Client) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None);
    loop {
        let reply = client.list(cursor.as_deref()).await;
        pages.push(names(reply.result()));
        cursor = reply.result()["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            return pages;
        }
    }
}

#[tokio::test]
async fn every_era_pages_in_declared_order_through_what_the_caller_may_know() {
    let world = world();
    let server = world.serve().await;
    let mut clients = vec![Client::modern(server, "ann")];
    for era in SESSION_ERAS.into_iter().take(3) {
        clients.push(Client::session(server, "ann", era, json!({})).await);
    }
    for client in clients {
        let pages = all_pages(&client).await;
        assert_eq!(pages, [vec!["zeta", "alpha", "mid"], vec!["last", "beyond"]], "{}", client.era);
    }
    let seeing = all_pages(&Client::modern(server, "bob see")).await;
    assert_eq!(
        seeing,
        [vec!["zeta", "hidden_one", "alpha"], vec!["hidden_two", "mid", "last"], vec!["beyond"]]
    );
}

#[tokio::test]
async fn a_bad_a_vanished_and_a_hidden_place_are_one_error() {
    let world = world();
    let client = Client::modern(world.serve().await, "ann");
    let mut errors = Vec::new();
    for cursor in [
        URL_SAFE_NO_PAD.encode("never_was"),
        URL_SAFE_NO_PAD.encode("hidden_one"),
        URL_SAFE_NO_PAD.encode([0xff, 0xfe]),
        "!!!".to_owned(),
        String::new(),
        "A".repeat(10_000),
    ] {
        let reply = client.list(Some(&cursor)).await;
        assert_eq!(reply.error()["code"], -32602, "{cursor}");
        errors.push(reply.error().clone());
    }
    let first = client.list(None).await.result()["nextCursor"].as_str().unwrap().to_owned();
    world.remove("mid");
    errors.push(client.list(Some(&first)).await.error().clone());
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
}

#[tokio::test]
async fn a_page_is_for_its_caller_alone() {
    let world = world();
    let server = world.serve().await;
    let modern = Client::modern(server, "ann").list(None).await;
    assert_eq!(modern.result()["cacheScope"], "private");
    assert!(modern.result()["ttlMs"].as_u64().is_some_and(|ttl| ttl <= 5_000), "{}", modern.text);
    assert_eq!(modern.headers["cache-control"], "no-store");
    let old = Client::session(server, "ann", "2025-11-25", json!({})).await.list(None).await;
    assert_eq!(old.result().get("cacheScope"), None);
    assert_eq!(old.headers["cache-control"], "no-store");
}

#[tokio::test]
async fn an_entry_is_the_gates_listing() {
    let world = World::new();
    let output = "x-toolgate-output: {type: object, properties: {n: {type: integer}}, required: [n]}";
    world.add("count", output, Does::Returns(json!({"n": 1})));
    let reply = Client::modern(world.serve().await, "ann").list(None).await;
    let listed = &reply.result()["tools"][0];
    assert_eq!(listed, world.tools.lock().unwrap()[0].listing());
    assert_eq!(listed["annotations"]["readOnlyHint"], true);
    assert_eq!(listed["outputSchema"]["type"], "object");
}

#[tokio::test]
async fn a_changed_tool_is_listed_as_it_is_now() {
    let world = World::new();
    world.add("t", "", Does::Echo);
    let client = Client::modern(world.serve().await, "ann");
    assert_eq!(client.list(None).await.result()["tools"][0]["inputSchema"].get("required"), None);
    world.remove("t");
    assert_eq!(names(client.list(None).await.result()), Vec::<String>::new());
    world.add("t", "params: []", Does::Echo);
    assert_eq!(names(client.list(None).await.result()), ["t"]);
}

#[tokio::test]
async fn clients_hear_that_the_tools_have_changed() {
    let world = World::new();
    let server = world.serve().await;
    let old = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let mut old_events = old.open("GET", None).await;
    let modern = Client::modern(server, "bob");
    let listen =
        modern.message(5, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut modern_events = modern.open("POST", Some(&listen)).await;
    let first = modern_events.next().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    world.add("fresh", "", Does::Echo);
    for (era, events) in [("2025-11-25", &mut old_events), (MODERN, &mut modern_events)] {
        let event = events.next().await;
        assert_eq!(event["method"], "notifications/tools/list_changed", "{era}: {event}");
    }
}
