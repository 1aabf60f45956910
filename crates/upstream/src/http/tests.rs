//! Connections to scripted servers, honest and hostile.

mod hostile;
mod legacy;
mod listen;
mod stateless;

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use url::Url;
use zeroize::Zeroizing;

use super::{
    testing::{
        Piece, ScriptedReply, ScriptedServer, answer, error, event, events, json_reply, session_reply,
        session_server, status, text,
    },
    *,
};
use crate::Era;

fn limits() -> ConnectionLimits {
    ConnectionLimits { message_bytes: 10_000, waiting: 8, setup: Duration::from_secs(5) }
}

fn endpoint() -> HttpEndpoint {
    HttpEndpoint { url: Url::parse("https://up.test/mcp").unwrap(), headers: Vec::new(), bearer: None }
}

async fn open_at(server: &Arc<ScriptedServer>, endpoint: HttpEndpoint) -> Result<Connection, UpstreamError> {
    let identity = ClientIdentity { name: "toolgate".to_owned(), version: "0".to_owned() };
    let http: Arc<dyn HttpClient> = Arc::<ScriptedServer>::clone(server);
    Connection::open_http(http, endpoint, &identity, limits()).await
}

async fn open(server: &Arc<ScriptedServer>) -> Connection {
    open_at(server, endpoint()).await.unwrap()
}

async fn call(connection: &Connection) -> Result<Value, UpstreamError> {
    connection.call_tool("echo", &Map::new(), Duration::from_secs(5)).await
}

const SHORT: Duration = Duration::from_millis(200);

#[tokio::test]
async fn json_and_events_are_answers() {
    for as_events in [false, true] {
        let server = session_server(move |request| {
            let result = json!({ "content": [] });
            if !as_events {
                return answer(request, &result);
            }
            events([
                Piece::Text(": hello\n\n".to_owned()),
                event(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {} })),
                event(&json!({ "jsonrpc": "2.0", "id": request.message()["id"], "result": result })),
            ])
        });
        let connection = open(&server).await;
        assert_eq!((connection.server().era, connection.server().name.as_str()), (Era::Session, "fixture"));
        assert_eq!(connection.list_tools().await.unwrap().len(), 1);
        assert_eq!(call(&connection).await.unwrap(), json!({ "content": [] }));
        let seen = server.seen();
        let kinds: Vec<_> = seen.iter().map(HttpRequest::what).collect();
        assert_eq!(kinds, ["initialize", "notifications/initialized", "tools/list", "tools/call"]);
        for request in &seen {
            assert_eq!(request.header("accept"), Some("application/json, text/event-stream"));
            let is_first = request.what() == "initialize";
            let expect = (!is_first).then_some("2025-06-18");
            assert_eq!(request.header("mcp-protocol-version"), expect);
            assert_eq!(request.header("mcp-session-id"), (!is_first).then_some("s-1"));
            assert_eq!(request.header("mcp-method"), None);
        }
    }
}

#[tokio::test]
async fn configured_headers_are_sent_but_cannot_replace_those_of_the_protocol() {
    let server = session_server(|request| answer(request, &json!({})));
    let headers = [("X-Key", "k"), ("Mcp-Session-Id", "forged"), ("accept", "text/html")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    let connection = open_at(&server, HttpEndpoint { headers, ..endpoint() }).await.unwrap();
    call(&connection).await.unwrap();
    for request in server.seen() {
        assert_eq!(request.header("x-key"), Some("k"));
        assert_ne!(request.header("mcp-session-id"), Some("forged"));
        assert_ne!(request.header("accept"), Some("text/html"));
    }
}

#[tokio::test]
async fn session_is_ended_on_close_and_on_drop() {
    for closes in [true, false] {
        let server = session_server(|request| answer(request, &json!({})));
        let connection = open(&server).await;
        if closes {
            connection.close().await;
        } else {
            drop(connection);
        }
        let last = server.sees(|request| request.method == HttpMethod::Delete).await;
        assert_eq!(last.header("mcp-session-id"), Some("s-1"));
    }
}

#[tokio::test]
async fn forgotten_session_is_reported_and_refuses_new_requests() {
    let calls = AtomicUsize::new(0);
    let server = session_server(move |request| match calls.fetch_add(1, Ordering::SeqCst) {
        // The first call still runs when the server forgets the session.
        0 => events([
            Piece::Text("retry: 1\nid: a\ndata:\n\n".to_owned()),
            Piece::Silence,
            event(&json!({ "jsonrpc": "2.0", "id": request.message()["id"], "result": {} })),
        ]),
        // Common servers add an error that does not carry the id.
        _ => json_reply(
            404,
            &json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32_001, "message": "x" } }),
        ),
    });
    let connection = open(&server).await;
    let arguments = Map::new();
    let first = connection.call_tool("echo", &arguments, SHORT);
    let second = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        call(&connection).await
    };
    let (first, second) = tokio::join!(first, second);
    // The first may have taken effect, so it must not be reported as lost with the session.
    assert!(matches!(first, Err(UpstreamError::TimedOut { .. })), "{first:?}");
    assert_eq!(second, Err(UpstreamError::SessionLost));
    assert!(second.unwrap_err().was_not_sent() && !connection.is_open());
    assert_eq!(call(&connection).await, Err(UpstreamError::SessionLost));
    drop(connection);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(server.seen().iter().all(|request| request.method != HttpMethod::Delete));
}

#[tokio::test]
async fn late_call_closes_its_connection_and_is_cancelled() {
    let server = session_server(|_| events([Piece::Silence]));
    let connection = open(&server).await;
    let late = connection.call_tool("echo", &Map::new(), SHORT).await.unwrap_err();
    assert!(matches!(late, UpstreamError::TimedOut { .. }) && !late.was_not_sent());
    let cancelled = server.sees(|request| request.what() == "notifications/cancelled").await;
    let called = server.sees(|request| request.what() == "tools/call").await;
    assert_eq!(cancelled.message()["params"]["requestId"], called.message()["id"]);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(server.open_bodies(), 0);
}

#[tokio::test]
async fn broken_stream_is_resumed_where_it_ended() {
    let server = ScriptedServer::start(|request| {
        if request.method == HttpMethod::Get && request.header("last-event-id") == Some("e-2") {
            let id = 3; // initialize is 1, tools/list is not sent
            return events([event(
                &json!({ "jsonrpc": "2.0", "id": id - 1, "result": { "resumed": true } }),
            )]);
        }
        session_reply(request, &|_| {
            let start = "retry: 10\nid: e-1\ndata:\n\nid: e-2\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\nid: e-3\ndata: unfinished";
            events([Piece::Text(start.to_owned()), Piece::Break])
        })
    });
    let connection = open(&server).await;
    assert_eq!(call(&connection).await.unwrap(), json!({ "resumed": true }));
    let resumed = server.sees(|request| request.method == HttpMethod::Get).await;
    assert_eq!(resumed.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn broken_stream_without_ids_is_lost() {
    for end in [vec![Piece::Break], vec![]] {
        let server = session_server(move |_| events(end.clone()));
        let connection = open(&server).await;
        let lost = call(&connection).await.unwrap_err();
        assert!(matches!(lost, UpstreamError::Lost(_)) && !lost.was_not_sent(), "{lost:?}");
        assert!(server.seen().iter().all(|request| request.method == HttpMethod::Post));
        assert!(connection.is_open());
    }
}

/// A call that may have run is never reported as certainly not run.
#[tokio::test]
async fn failed_resumption_is_lost() {
    for refusal in [404, 405, 500] {
        let server = ScriptedServer::start(move |request| match request.method {
            HttpMethod::Get => status(refusal),
            _ => session_reply(request, &|_| {
                events([Piece::Text("retry: 1\nid: 1\ndata:\n\n".to_owned()), Piece::Break])
            }),
        });
        let connection = open(&server).await;
        let lost = call(&connection).await.unwrap_err();
        assert!(matches!(lost, UpstreamError::Lost(_)), "{lost:?}");
    }
}

#[tokio::test]
async fn stream_that_always_breaks_is_lost_after_a_few_attempts() {
    let server = ScriptedServer::start(|request| {
        let breaks = || events([Piece::Text("retry: 1\nid: 1\ndata:\n\n".to_owned()), Piece::Break]);
        if request.method == HttpMethod::Get { breaks() } else { session_reply(request, &|_| breaks()) }
    });
    let connection = open(&server).await;
    assert!(matches!(call(&connection).await, Err(UpstreamError::Lost(_))));
    assert_eq!(server.seen().iter().filter(|request| request.method == HttpMethod::Get).count(), 5);
}

#[tokio::test]
async fn refused_access_carries_the_challenge() {
    let challenge = r#"Bearer resource_metadata="https://up.test/meta", scope="a b""#;
    let server = ScriptedServer::start(move |_| status(401).with("www-authenticate", challenge));
    let refused = open_at(&server, endpoint()).await.unwrap_err();
    let UpstreamError::Unauthorized(found) = &refused else { panic!("{refused:?}") };
    assert_eq!((found.status, found.scope.as_deref()), (401, Some("a b")));
    assert_eq!(found.resource_metadata.as_deref(), Some("https://up.test/meta"));
    let server =
        session_server(|_| status(403).with("www-authenticate", "Bearer error=insufficient_scope, scope=w"));
    let refused = call(&open(&server).await).await.unwrap_err();
    assert!(matches!(&refused, UpstreamError::Unauthorized(found) if found.scope.as_deref() == Some("w")));
    // Without a challenge it is an ordinary refusal.
    let server = session_server(|_| status(403));
    assert_eq!(call(&open(&server).await).await, Err(UpstreamError::HttpStatus { status: 403 }));
}

/// Has two tokens; the second replaces the first.
#[derive(Default)]
struct TwoTokens(Mutex<Vec<String>>);

impl BearerSource for TwoTokens {
    fn token(&self) -> HttpFuture<'_, Result<Option<Zeroizing<String>>, UpstreamError>> {
        let is_replaced = !self.0.lock().unwrap().is_empty();
        let token = if is_replaced { "second" } else { "first" };
        Box::pin(async move { Ok(Some(Zeroizing::new(token.to_owned()))) })
    }

    fn replace<'a>(
        &'a self,
        rejected: &'a str,
    ) -> HttpFuture<'a, Result<Option<Zeroizing<String>>, UpstreamError>> {
        self.0.lock().unwrap().push(rejected.to_owned());
        Box::pin(async move { Ok(Some(Zeroizing::new("second".to_owned()))) })
    }
}

#[tokio::test]
async fn rejected_token_is_replaced_once() {
    let valid = Arc::new(Mutex::new("Bearer second"));
    let accepted = Arc::clone(&valid);
    let server = ScriptedServer::start(move |request| {
        if request.header("authorization") == Some(*accepted.lock().unwrap()) {
            return session_reply(request, &|request| answer(request, &json!({})));
        }
        status(401)
    });
    let tokens = Arc::new(TwoTokens::default());
    let bearer: Arc<dyn BearerSource> = Arc::<TwoTokens>::clone(&tokens);
    let connection = open_at(&server, HttpEndpoint { bearer: Some(bearer), ..endpoint() }).await.unwrap();
    call(&connection).await.unwrap();
    assert_eq!(*tokens.0.lock().unwrap(), ["first"]);
    *valid.lock().unwrap() = "none";
    assert!(matches!(call(&connection).await, Err(UpstreamError::Unauthorized(_))));
    assert_eq!(server.seen().iter().filter(|request| request.what() == "tools/call").count(), 3);
}

#[tokio::test]
async fn redirect_is_followed_at_the_same_origin_only() {
    let server = ScriptedServer::start(|request| {
        if request.url.path() == "/mcp" {
            return status(307).with("location", "/v2/mcp");
        }
        session_reply(request, &|request| answer(request, &json!({})))
    });
    let connection = open(&server).await;
    call(&connection).await.unwrap();
    for (code, location, expect) in [
        (307, "https://evil.test/mcp", "another origin"),
        (308, "http://up.test/mcp", "another origin"),
        (307, "https://up.test:444/mcp", "another origin"),
        (302, "/v2", "changes the request"),
        (307, "/mcp", "too often"),
        (307, "https://:bad/", "invalid URL"),
    ] {
        let server = ScriptedServer::start(move |_| status(code).with("location", location));
        let refused = open_at(&server, endpoint()).await.unwrap_err();
        assert!(refused.to_string().contains(expect), "{refused}");
        assert!(server.seen().iter().all(|request| request.url.host_str() == Some("up.test")));
    }
}

#[tokio::test]
async fn failed_exchanges_say_whether_the_request_may_have_run() {
    let server = session_server(|_| status(0));
    assert!(call(&open(&server).await).await.unwrap_err().was_not_sent());
    let server = session_server(|_| status(1));
    assert!(!call(&open(&server).await).await.unwrap_err().was_not_sent());
    let server = session_server(|_| status(503));
    let failed = call(&open(&server).await).await.unwrap_err();
    assert!(failed == UpstreamError::HttpStatus { status: 503 } && !failed.was_not_sent());
    let server = session_server(|request| error(request, 200, -32_000));
    assert!(matches!(call(&open(&server).await).await, Err(UpstreamError::Server { code: -32_000, .. })));
}
