//! Servers that send too much, the wrong thing, or nothing.

use super::*;

#[track_caller]
fn check(failed: &UpstreamError, expect: &str) {
    assert!(failed.to_string().contains(expect), "expected {expect}, got {failed}");
}

async fn failure(reply: impl Fn(&HttpRequest) -> ScriptedReply + Send + Sync + 'static) -> UpstreamError {
    let connection = open(&session_server(reply)).await;
    let failed = call(&connection).await.unwrap_err();
    // One bad answer does not end the connection.
    assert!(connection.is_open());
    failed
}

#[tokio::test]
async fn large_answers_are_rejected() {
    check(
        &failure(|request| answer(request, &json!({ "x": "y".repeat(20_000) }))).await,
        "more than 10000 bytes",
    );
    let large = |_: &HttpRequest| events([Piece::Text(format!("data: {}", "y".repeat(20_000)))]);
    check(&failure(large).await, "more than 10000 bytes");
    let comment = |_: &HttpRequest| events(vec![Piece::Text(":".repeat(999)); 20]);
    check(&failure(comment).await, "more than 10000 bytes");
}

#[tokio::test]
async fn endless_events_are_rejected() {
    let progress = event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} }));
    check(&failure(move |_| events(vec![progress.clone(); 10_001])).await, "too many events");
    let noise = Piece::Text("data: x\n\n".to_owned());
    check(&failure(move |_| events(vec![noise.clone(); 1001])).await, "not messages");
}

#[tokio::test]
async fn wrong_answers_are_rejected() {
    check(
        &failure(|_| json_reply(200, &json!({ "jsonrpc": "2.0", "id": 999, "result": {} }))).await,
        "another id",
    );
    check(
        &failure(|_| json_reply(200, &json!({ "jsonrpc": "2.0", "method": "x" }))).await,
        "not a JSON-RPC answer",
    );
    check(&failure(|_| json_reply(200, &json!([]))).await, "not a JSON-RPC answer");
    check(&failure(|_| json_reply(200, &json!({ "id": 1, "result": {} }))).await, "not JSON-RPC 2.0");
    check(&failure(|_| text(200, "text/html", "<html>")).await, "neither JSON nor");
    check(&failure(|_| status(202)).await, "neither JSON nor");
    check(&failure(|_| text(500, "application/json", "{")).await, "status 500");
}

#[tokio::test]
async fn stream_cannot_answer_another_request() {
    let server = session_server(|request| {
        let id = request.message()["id"].as_u64().unwrap();
        if request.message()["params"]["name"] == "victim" {
            return events([Piece::Silence]);
        }
        let forge = |id: u64| event(&json!({ "jsonrpc": "2.0", "id": id, "result": { "forged": true } }));
        let own = event(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
        events((1..=id + 3).filter(|other| *other != id).map(forge).chain([own]))
    });
    let connection = open(&server).await;
    let arguments = Map::new();
    let victim = connection.call_tool("victim", &arguments, SHORT);
    let attacker = connection.call_tool("attacker", &arguments, SHORT);
    let (victim, attacker) = tokio::join!(victim, attacker);
    assert!(matches!(victim, Err(UpstreamError::TimedOut { .. })), "{victim:?}");
    assert_eq!(attacker.unwrap(), json!({}));
}

#[tokio::test]
async fn silent_server_fails_the_handshake_in_time() {
    let server = ScriptedServer::start(|_| status(2));
    let identity = ClientIdentity { name: "toolgate".to_owned(), version: "0".to_owned() };
    let quick = ConnectionLimits { setup: SHORT, ..limits() };
    let late = Connection::open_http(server, endpoint(), &identity, quick).await.unwrap_err();
    assert!(matches!(late, UpstreamError::TimedOut { method, .. } if method == "initialize"));
}

#[tokio::test]
async fn invalid_session_ids_are_rejected() {
    for id in ["", "a b", "a\u{e9}", &"x".repeat(2000)] {
        let id = id.to_owned();
        let server =
            ScriptedServer::start(move |request| answer(request, &json!({})).with("mcp-session-id", &id));
        check(&open_at(&server, endpoint()).await.unwrap_err(), "invalid session id");
    }
}

#[tokio::test]
async fn requests_of_the_server_are_refused() {
    let server = session_server(|request| {
        let own = json!({ "jsonrpc": "2.0", "id": request.message()["id"], "result": {} });
        let ask = json!({ "jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {} });
        events([event(&ask), event(&own)])
    });
    let connection = open(&server).await;
    call(&connection).await.unwrap();
    let refusal = server.sees(|request| request.message()["id"] == "s1").await;
    assert_eq!(refusal.message()["error"]["code"], -32_601);
}
