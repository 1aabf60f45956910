//! The admin API: its JSON, and that only admins can use it.

use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use toolgate_gate::IsolationLayer;
use toolgate_server::{DoorCode, DoorEvents, RefusalLog, prometheus_text};

use crate::{
    client::Client,
    fakes::Does,
    world::{ASKS, World},
};

async fn ask(server: SocketAddr, admin: Option<&str>, method: &str, path: &str, body: &str) -> (u16, Value) {
    let stream = TcpStream::connect(server).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    if let Some(admin) = admin {
        request = request.header("x-admin", admin);
    }
    let request = request.body(Full::new(Bytes::from(body.to_owned()))).unwrap();
    let response = sender.send_request(request).await.unwrap();
    let status = response.status().as_u16();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&text).unwrap_or(Value::Null))
}

/// Replaces values that differ between runs.
fn steady(mut approval: Value) -> Value {
    for key in ["toolDigest", "argumentsDigest", "policyDigest"] {
        assert!(approval[key].as_str().unwrap().starts_with("sha256:"), "{approval}");
        approval[key] = "sha256:…".into();
    }
    for key in ["created", "expires", "decidedAt"] {
        if let Some(time) = approval[key].as_str() {
            assert!(time.len() == 24 && time.ends_with('Z') && time.contains('T'), "{time}");
            approval[key] = "time".into();
        }
    }
    approval
}

#[tokio::test]
async fn an_approval_is_shown_and_decided() {
    let world = World::new();
    let tool = world.add("pay", ASKS, Does::Echo);
    let server = world.serve().await;
    Client::modern(server, "ann").call("pay", json!({"sum": 5})).await.result();
    let id = world.queue.ids()[0].to_string();
    let (status, listed) = ask(server, Some("olga"), "GET", "/admin/v1/approvals?state=pending", "").await;
    assert_eq!(status, 200);
    let expect = json!({
        "id": id, "state": "pending", "caller": "ann", "tool": "pay",
        "toolDigest": "sha256:…", "argumentsDigest": "sha256:…", "policyDigest": "sha256:…",
        "prompt": "Run the tool pay with {\"sum\":5}?", "arguments": "{\"sum\":5}",
        "hiddenBytes": 0, "revealedTo": [], "remembered": null, "because": ["human_in_the_loop: the tool wants every call confirmed"], "risk": "L0",
        "created": "time", "expires": "time", "decidedBy": null, "decidedAt": null, "note": null,
    });
    assert_eq!(steady(listed["approvals"][0].clone()), expect);
    let path = format!("/admin/v1/approvals/{id}");
    let (_, shown) = ask(server, Some("olga"), "GET", &path, "").await;
    assert_eq!(steady(shown), expect);
    let approve = format!("{path}/approve");
    let (status, approved) = ask(server, Some("olga"), "POST", &approve, r#"{"note": "for once"}"#).await;
    assert_eq!(status, 200);
    assert_eq!(
        (&approved["state"], &approved["decidedBy"], &approved["note"]),
        (&json!("approved"), &json!("olga"), &json!("for once"))
    );
    let (status, again) = ask(server, Some("olga"), "POST", &format!("{path}/deny"), "").await;
    let expect = json!({"error": {"code": "not_pending", "message": "the approval is already approved"}});
    assert_eq!((status, again), (409, expect));
    Client::modern(server, "ann").call("pay", json!({"sum": 5})).await.result();
    assert_eq!(tool.begun(), 1);
}

#[tokio::test]
async fn an_admin_does_not_approve_an_own_call_unless_configured() {
    for self_approval in [false, true] {
        let world = World::with(|approvals, _| approvals.self_approval = self_approval);
        let tool = world.add("pay", ASKS, Does::Echo);
        let server = world.serve().await;
        Client::modern(server, "ann").call("pay", json!({"sum": 5})).await.result();
        let approve = format!("/admin/v1/approvals/{}/approve", world.queue.ids()[0]);
        let (status, reply) = ask(server, Some("ann"), "POST", &approve, "").await;
        let expect = if self_approval { (200, &Value::Null) } else { (403, &json!("own_call")) };
        assert_eq!((status, &reply["error"]["code"]), expect, "{reply}");
        Client::modern(server, "ann").call("pay", json!({"sum": 5})).await.result();
        assert_eq!(tool.begun(), usize::from(self_approval));
    }
}

#[tokio::test]
async fn hidden_arguments_are_revealed_before_they_are_approved() {
    let world = World::new();
    world.add("pay", ASKS, Does::Echo);
    let server = world.serve().await;
    let token = format!("xox{}-481236795021-730918264513-{}", 'b', "q7Zk2mVx9TbLw4Rs8NyPd3Hc");
    let reply = Client::modern(server, "ann").asked().call("pay", json!({"text": token})).await;
    let denial = &reply.result()["_meta"]["dev.toolgate/denial"];
    assert_eq!(denial["code"], "decide.approval_pending", "the client is not asked: {}", reply.text);
    let path = format!("/admin/v1/approvals/{}", world.queue.ids()[0]);
    let (_, shown) = ask(server, Some("olga"), "GET", &path, "").await;
    assert_eq!(shown["hiddenBytes"], token.len());
    assert!(!shown.to_string().contains(&token), "{shown}");
    let (status, refused) = ask(server, Some("olga"), "POST", &format!("{path}/approve"), "").await;
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("unrevealed")), "{refused}");
    let (status, whole) = ask(server, Some("olga"), "POST", &format!("{path}/reveal"), "").await;
    assert_eq!((status, &whole["arguments"]), (200, &json!(json!({"text": token}).to_string())));
    assert_eq!(whole["revealedTo"], json!(["olga"]));
    assert_eq!(ask(server, Some("eve"), "POST", &format!("{path}/approve"), "").await.0, 409);
    assert_eq!(ask(server, Some("olga"), "POST", &format!("{path}/approve"), "").await.0, 200);
}

#[tokio::test]
async fn approvals_come_in_pages_that_leave_nothing_out() {
    let world = World::new();
    world.add("pay", ASKS, Does::Echo);
    let server = world.serve().await;
    for sum in 1..=3 {
        Client::modern(server, "ann").call("pay", json!({ "sum": sum })).await.result();
    }
    let (mut seen, mut path) = (Vec::new(), "/admin/v1/approvals?state=pending&limit=2".to_owned());
    for expected in [2, 1] {
        let (status, page) = ask(server, Some("olga"), "GET", &path, "").await;
        assert_eq!((status, page["approvals"].as_array().unwrap().len()), (200, expected), "{page}");
        seen.extend(page["approvals"].as_array().unwrap().iter().map(|one| one["id"].clone()));
        assert_eq!(page["next"].is_null(), expected == 1, "{page}");
        if let Some(next) = page["next"].as_str() {
            path = format!("/admin/v1/approvals?state=pending&limit=2&before={next}");
        }
    }
    let mut all: Vec<String> = world.queue.ids().iter().map(ToString::to_string).collect();
    let mut seen: Vec<&str> = seen.iter().map(|id| id.as_str().unwrap()).collect();
    all.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, all);
}

#[tokio::test]
async fn a_denied_call_does_not_run() {
    let world = World::new();
    let tool = world.add("pay", ASKS, Does::Echo);
    let server = world.serve().await;
    Client::modern(server, "ann").call("pay", json!({})).await.result();
    let id = world.queue.ids()[0].to_string();
    let (status, denied) =
        ask(server, Some("olga"), "POST", &format!("/admin/v1/approvals/{id}/deny"), "").await;
    assert_eq!((status, &denied["state"]), (200, &json!("denied")));
    Client::modern(server, "ann").call("pay", json!({})).await.result();
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn nobody_but_an_admin_gets_an_answer() {
    let world = World::new();
    let tool = world.add("pay", ASKS, Does::Echo);
    let server = world.serve().await;
    Client::modern(server, "ann").call("pay", json!({})).await.result();
    let id = world.queue.ids()[0].to_string();
    for (method, path) in [
        ("GET", "/admin/v1/state".to_owned()),
        ("GET", "/admin/v1/tools".to_owned()),
        ("GET", "/admin/v1/approvals".to_owned()),
        ("GET", format!("/admin/v1/approvals/{id}")),
        ("POST", format!("/admin/v1/approvals/{id}/approve")),
        ("POST", format!("/admin/v1/approvals/{id}/deny")),
        ("GET", "/admin/v1/nothing".to_owned()),
    ] {
        let (status, body) = ask(server, None, method, &path, "").await;
        assert_eq!((status, &body["error"]["code"]), (403, &json!("no_admin")), "{path}");
    }
    Client::modern(server, "ann").call("pay", json!({})).await.result();
    assert_eq!(tool.begun(), 0);
}

#[tokio::test]
async fn bad_requests_are_told_what_is_wrong() {
    let world = World::new();
    let server = world.serve().await;
    let unknown = format!("/admin/v1/approvals/apr_{}", "0".repeat(32));
    let large = format!(r#"{{"note": "{}"}}"#, "x".repeat(2_000));
    for (method, path, body, status) in [
        ("GET", "/admin/v1/approvals?state=maybe", "", 400),
        ("GET", "/admin/v1/approvals?sort=up", "", 400),
        ("GET", "/admin/v1/approvals?limit=many", "", 400),
        ("GET", "/admin/v1/approvals?before=nothing", "", 404),
        ("GET", "/admin/v1/tools?limit=-1", "", 400),
        ("GET", "/admin/v1/tools?after=nothing", "", 404),
        ("GET", unknown.as_str(), "", 404),
        ("GET", "/admin/v1/approvals/..%2f..%2fstate", "", 404),
        ("POST", &format!("{unknown}/approve"), "", 404),
        ("POST", &format!("{unknown}/approve"), "[]", 400),
        ("POST", &format!("{unknown}/approve"), r#"{"nota": "x"}"#, 400),
        ("POST", &format!("{unknown}/approve"), &large, 400),
        ("GET", "/admin/v1/nothing", "", 404),
    ] {
        let (came, answer) = ask(server, Some("olga"), method, path, body).await;
        assert_eq!(came, status, "{method} {path} {answer}");
        assert!(answer["error"]["message"].is_string(), "{method} {path} {answer}");
    }
}

#[tokio::test]
async fn the_state_and_the_tools_are_shown() {
    let world = World::new();
    world.add("echo", "x-toolgate-permissions: {required: [see]}", Does::Echo);
    world.add("broken", "", Does::Throws("no paper"));
    let server = world.serve().await;
    let client = Client::modern(server, "ann see");
    client.call("echo", json!({})).await.result();
    client.call("broken", json!({})).await.result();
    let (_, state) = ask(server, Some("olga"), "GET", "/admin/v1/state", "").await;
    let expect = json!({
        "version": env!("CARGO_PKG_VERSION"), "tools": 2,
        "calls": {"running": 0, "released": 1, "ended": {"execute.tool_failed": 1}},
    });
    assert_eq!(state, expect);
    let (_, first) = ask(server, Some("olga"), "GET", "/admin/v1/tools?limit=1", "").await;
    let annotations = json!({"readOnlyHint": true, "openWorldHint": false});
    let expect = json!({
        "tools": [{"name": "echo", "description": "Does echo.", "level": "L0", "annotations": annotations}],
        "next": "echo",
    });
    assert_eq!(first, expect);
    let (_, rest) = ask(server, Some("olga"), "GET", "/admin/v1/tools?after=echo", "").await;
    assert_eq!((&rest["tools"][0]["name"], &rest["next"]), (&json!("broken"), &json!(null)));
    let refusals = RefusalLog::default();
    refusals.refused(DoorCode::TokenMissing, None, "detail");
    world.gate.metrics().escape_attempted();
    let layer = |name: &str, in_force| IsolationLayer { name: name.to_owned(), in_force };
    world.gate.metrics().set_isolation(vec![layer("landlock", 1.0), layer("jail_for_commands", 0.0)]);
    let text = prometheus_text(&world.gate, &refusals);
    for line in [
        "toolgate_tools 2",
        "toolgate_calls_running 0",
        "toolgate_observer_panics_total 0",
        "toolgate_calls_total{end=\"released\",code=\"\"} 1",
        "toolgate_calls_total{end=\"failed\",code=\"execute.tool_failed\"} 1",
        "toolgate_calls_total{end=\"refused\",code=\"execute.busy\"} 0",
        "# TYPE toolgate_calls_total counter",
        "toolgate_door_refusals_total{reason=\"auth.token_missing\"} 1",
        "toolgate_door_refusals_total{reason=\"http.too_large\"} 0",
        "# TYPE toolgate_door_refusals_total counter",
        "toolgate_secrets_total{tier=\"possible\"} 0",
        "# TYPE toolgate_isolation_layer gauge",
        "toolgate_isolation_layer{layer=\"landlock\"} 1",
        "toolgate_isolation_layer{layer=\"jail_for_commands\"} 0",
        "toolgate_worker_escape_attempts_total 1",
        "# TYPE toolgate_worker_escape_attempts_total counter",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
}
