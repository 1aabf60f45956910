//! Sessions belong to the caller who began them, and there are only so many.

use std::time::Duration;

use serde_json::json;

use crate::{client::Client, fakes::Does, world::World};

#[tokio::test]
async fn a_session_is_not_there_for_anybody_else() {
    let world = World::new();
    let tool = world.add("echo", "", Does::Echo);
    let own = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    let mut thief = own.clone();
    thief.caller = Some("eve".to_owned());
    assert_eq!(thief.call("echo", json!({})).await.status, 404);
    assert_eq!(thief.list(None).await.status, 404);
    assert_eq!(thief.send("GET", None).await.status(), 404);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    assert_eq!(thief.post(&cancel).await.status, 404);
    let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept"}});
    assert_eq!(thief.post(&answer).await.status, 404);
    assert_eq!(thief.send("DELETE", None).await.status(), 404);
    assert_eq!(tool.begun(), 0);
    // And it still is there for its owner, who is the same with other permissions.
    assert_eq!(own.call("echo", json!({})).await.tool_text(), "{}");
    let mut more = own.clone();
    more.caller = Some("ann write".to_owned());
    assert_eq!(more.call("echo", json!({})).await.tool_text(), "{}");
}

#[tokio::test]
async fn an_unknown_and_an_ended_session_are_not_found() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let own = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    let mut unknown = own.clone();
    unknown.session = Some("0".repeat(36));
    assert_eq!(unknown.call("echo", json!({})).await.status, 404);
    assert_eq!(own.send("DELETE", None).await.status(), 204);
    assert_eq!(own.call("echo", json!({})).await.status, 404);
}

#[tokio::test]
async fn one_too_many_ends_the_callers_own_least_used() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        sessions.push(Client::session(server, "ann", "2025-11-25", json!({})).await);
    }
    sessions[0].call("echo", json!({})).await.result();
    let fourth = Client::session(server, "ann", "2025-11-25", json!({})).await;
    for (at, expect) in [(0, 200), (1, 404), (2, 200)] {
        assert_eq!(sessions[at].call("echo", json!({})).await.status, expect, "{at}");
    }
    assert_eq!(fourth.call("echo", json!({})).await.status, 200);
}

#[tokio::test]
async fn a_full_house_turns_newcomers_away_and_nobody_out() {
    let world = World::new();
    world.add("echo", "", Does::Echo);
    let server = world.serve().await;
    let mut held = Vec::new();
    for caller in ["ann", "ann", "ann", "bob", "bob"] {
        held.push(Client::session(server, caller, "2025-11-25", json!({})).await);
    }
    let mut eve = Client::modern(server, "eve");
    eve.era = "2025-11-25";
    let away = eve.initialize().await;
    assert_eq!(away.status, 503, "{}", away.text);
    assert_eq!(away.headers["retry-after"], "30");
    for client in &held {
        assert_eq!(client.call("echo", json!({})).await.status, 200);
    }
    // Who needs no session still gets in.
    assert_eq!(Client::modern(server, "eve").call("echo", json!({})).await.status, 200);
    held[0].send("DELETE", None).await;
    assert_eq!(eve.initialize().await.status, 200);
}

#[tokio::test]
async fn an_idle_session_ends() {
    let world = World::with(|_, settings| settings.sessions.idle = Duration::from_millis(50));
    world.add("echo", "", Does::Echo);
    let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    for _ in 0..200 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if client.call("echo", json!({})).await.status == 404 {
            return;
        }
    }
    panic!("the session never ended");
}

#[tokio::test]
async fn shutting_down_ends_open_streams() {
    let world = World::new();
    let client = Client::session(world.serve().await, "ann", "2025-11-25", json!({})).await;
    let stream = client.send("GET", None).await;
    world.shutdown.cancel();
    let read = http_body_util::BodyExt::collect(stream.into_body());
    tokio::time::timeout(Duration::from_secs(30), read).await.expect("an end").unwrap();
}
