//! Streams that only tell of changes: so many for each caller, and only while the caller is let in.

use std::{sync::atomic::Ordering, time::Duration};

use http::Response;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::{Value, json};

use crate::{
    client::{Client, Events},
    fakes::Does,
    world::{World, until},
};

/// As many as the world lets one caller hold.
const MOST: usize = 4;

fn listen(client: &Client) -> Value {
    client.message(5, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}))
}

/// The stream behind its acknowledgement.
async fn listening(client: &Client) -> Events {
    let mut events = client.open("POST", Some(&listen(client))).await;
    let first = events.next().await;
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
    events
}

/// Opened again and again until there is a place: the server hears of a closed stream a little later.
async fn get_in_the_end(client: &Client) -> Response<Incoming> {
    for _ in 0..2_000 {
        let stream = client.send("GET", None).await;
        if stream.status() == 200 {
            return stream;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the place was never given back");
}

#[tokio::test]
async fn a_caller_holds_only_so_many_streams_of_a_session() {
    let world = World::new();
    let server = world.serve().await;
    let ann = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let bob = Client::session(server, "bob", "2025-11-25", json!({})).await;
    let mut held = Vec::new();
    for _ in 0..MOST {
        let stream = ann.send("GET", None).await;
        assert_eq!(stream.status(), 200);
        held.push(stream);
    }
    let away = ann.send("GET", None).await;
    assert_eq!(away.status(), 503);
    assert_eq!(away.headers()["retry-after"], "30");
    // Another session of the same caller does not raise the limit; another caller is not concerned.
    let other = Client::session(server, "ann", "2025-11-25", json!({})).await;
    assert_eq!(other.send("GET", None).await.status(), 503);
    assert_eq!(bob.send("GET", None).await.status(), 200);
    assert_eq!(ann.list(None).await.status, 200, "who holds too many streams may still ask");
    held.pop();
    get_in_the_end(&ann).await;
}

#[tokio::test]
async fn a_caller_listens_only_so_often() {
    let world = World::new();
    let server = world.serve().await;
    let ann = Client::modern(server, "ann");
    let mut held = Vec::new();
    for _ in 0..MOST {
        held.push(listening(&ann).await);
    }
    // A place is taken behind the acknowledgement, so all four have theirs once each has heard of a change.
    world.add("fresh", "", Does::Echo);
    for events in &mut held {
        assert_eq!(events.next().await["method"], "notifications/tools/list_changed");
    }
    let refused = listening(&ann).await.next().await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("too many open streams"), "{refused}");
    let mut bob = listening(&Client::modern(server, "bob")).await;
    world.remove("fresh");
    assert_eq!(bob.next().await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_revoked_token_ends_the_streams_that_it_opened() {
    let world = World::new();
    let server = world.serve().await;
    let old = Client::session(server, "ann", "2025-11-25", json!({})).await;
    let stream = old.send("GET", None).await;
    assert_eq!(stream.status(), 200);
    let mut events = listening(&Client::modern(server, "bob")).await;
    world.is_revoked.store(true, Ordering::SeqCst);
    let read = stream.into_body().collect();
    tokio::time::timeout(Duration::from_secs(30), read).await.expect("an end").unwrap();
    let last = events.next().await;
    assert_eq!(last["error"]["code"], -32600, "{last}");
    assert!(last["error"]["message"].as_str().unwrap().contains("revoked"), "{last}");
}

#[tokio::test]
async fn a_revoked_token_ends_calls_that_wait_for_a_person() {
    let world = World::new();
    let waiting = world.begin_to_pay("2025-11-25").await;
    world.is_revoked.store(true, Ordering::SeqCst);
    until("the call has ended", || !world.journal.ends().is_empty()).await;
    assert_eq!(world.journal.ends(), [("pay".to_owned(), Some("decide.caller_lapsed"))]);
    assert_eq!(waiting.tool.begun(), 0);
}
