//! Streams for announcements of the server.

use tokio::time::timeout;

use super::*;

const CHANGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;

fn session_with(
    capabilities: Value,
    get: impl Fn(&HttpRequest) -> ScriptedReply + Send + Sync + 'static,
) -> Arc<ScriptedServer> {
    ScriptedServer::start(move |request| {
        match (request.method, request.what().as_str()) {
        (HttpMethod::Get, _) => get(request),
        (_, "initialize") => answer(request, &json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": { "name": "x", "version": "1" },
        }))
        .with("mcp-session-id", "s-1"),
        _ => session_reply(request, &|request| answer(request, &json!({}))),
    }
    })
}

#[tokio::test]
async fn changed_listing_is_announced_and_the_stream_is_resumed() {
    let server = session_with(json!({ "tools": { "listChanged": true } }), |request| {
        match request.header("last-event-id") {
            None => events([Piece::Text(format!("id: 7\ndata: {CHANGED}\n\n"))]),
            Some(_) => events([Piece::Text(format!("data: {CHANGED}\n\n")), Piece::Silence]),
        }
    });
    let connection = open(&server).await;
    let mut changes = connection.listing_changes();
    while *changes.borrow_and_update() < 2 {
        timeout(Duration::from_secs(10), changes.changed()).await.unwrap().unwrap();
    }
    let resumed = server.sees(|request| request.header("last-event-id") == Some("7")).await;
    assert_eq!(resumed.header("accept"), Some("text/event-stream"));
    assert_eq!(resumed.header("mcp-session-id"), Some("s-1"));
    drop(connection);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.open_bodies(), 0);
}

/// The server may have announced a change while no stream was open.
#[tokio::test]
async fn stream_that_cannot_be_resumed_counts_as_a_change() {
    let gets = AtomicUsize::new(0);
    let server = session_with(json!({ "tools": { "listChanged": true } }), move |_| {
        events(if gets.fetch_add(1, Ordering::SeqCst) == 0 { vec![] } else { vec![Piece::Silence] })
    });
    let connection = open(&server).await;
    let mut changes = connection.listing_changes();
    timeout(Duration::from_secs(10), changes.changed()).await.unwrap().unwrap();
    assert_eq!(server.seen().iter().filter(|request| request.method == HttpMethod::Get).count(), 2);
}

#[tokio::test]
async fn answers_on_the_stream_reach_nobody() {
    let forged = r#"{"jsonrpc":"2.0","id":2,"result":{"forged":true}}"#;
    let stream = format!("data: {forged}\n\n").repeat(3) + &format!("data: {CHANGED}\n\n");
    let server = session_with(json!({ "tools": { "listChanged": true } }), move |_| {
        events([Piece::Text(stream.clone()), Piece::Silence])
    });
    let connection = open(&server).await;
    let mut changes = connection.listing_changes();
    let (called, _) = tokio::join!(call(&connection), timeout(Duration::from_secs(10), changes.changed()));
    assert_eq!(called.unwrap(), json!({}));
}

#[tokio::test]
async fn no_stream_is_opened_without_need_and_none_again_after_a_refusal() {
    for (capabilities, gets) in
        [(json!({ "tools": {} }), 0), (json!({ "tools": { "listChanged": true } }), 1)]
    {
        let server = session_with(capabilities, |_| status(405));
        let connection = open(&server).await;
        call(&connection).await.unwrap();
        tokio::time::sleep(Duration::from_millis(800)).await;
        assert_eq!(server.seen().iter().filter(|request| request.method == HttpMethod::Get).count(), gets);
    }
}

#[tokio::test]
async fn stream_notices_a_forgotten_session() {
    let server = session_with(json!({ "tools": { "listChanged": true } }), |_| status(404));
    let connection = open(&server).await;
    server.sees(|request| request.method == HttpMethod::Get).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(call(&connection).await, Err(UpstreamError::SessionLost));
}

#[tokio::test]
async fn stateless_server_is_asked_with_a_subscription() {
    let server = ScriptedServer::start(|request| match request.what().as_str() {
        "server/discover" => answer(
            request,
            &json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": { "listChanged": true }, "prompts": {} },
            }),
        ),
        "subscriptions/listen" => {
            let acknowledged =
                json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged" });
            events([event(&acknowledged), Piece::Text(format!("data: {CHANGED}\n\n")), Piece::Silence])
        }
        _ => error(request, 400, -32_022),
    });
    let connection = open(&server).await;
    let mut changes = connection.listing_changes();
    timeout(Duration::from_secs(10), changes.changed()).await.unwrap().unwrap();
    let asked = server.sees(|request| request.what() == "subscriptions/listen").await;
    assert_eq!(asked.message()["params"]["notifications"], json!({ "toolsListChanged": true }));
    assert_eq!(asked.header("mcp-method"), Some("subscriptions/listen"));
    assert_eq!(
        asked.message()["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
        json!("2026-07-28")
    );
}
