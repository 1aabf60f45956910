//! Headers of every answer, and limits of bodies.

use crate::gateway::{Gateway, limits, with_tokens};

fn post(body: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\nHost: {{host}}\nAuthorization: Bearer tg_caller\nContent-Length: {}\n\n{body}",
        body.len()
    )
}

const CHUNKED: &str =
    "POST /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\nTransfer-Encoding: chunked\n\n";

#[tokio::test]
async fn nothing_is_sniffed_or_stored() {
    let gateway = Gateway::start().await;
    for request in [
        post("hi"),
        "GET /healthz HTTP/1.1\nHost: {host}\n\n".into(),
        "GET /mcp HTTP/1.1\nHost: {host}\n\n".into(),
        "GET /mcp HTTP/1.1\nHost: evil\n\n".into(),
        "GET /rich HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n".into(),
        "GET /none HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n".into(),
    ] {
        let answer = gateway.ask(&request).await;
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{request}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{request}");
    }
}

#[tokio::test]
async fn what_the_router_refuses_is_explained_in_json() {
    let gateway = Gateway::start().await;
    let get =
        |path: &str| format!("GET {path} HTTP/1.1\nHost: {{host}}\nAuthorization: Bearer tg_caller\n\n");
    assert_eq!(gateway.ask(&get("/none")).await.code(), "http.not_found");
    let answer = gateway.ask(&get("/only-post")).await;
    assert_eq!((answer.code().as_str(), answer.header("allow")), ("http.method_not_allowed", Some("POST")));
    let trace = "TRACE /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n\n";
    assert_eq!(gateway.ask(trace).await.code(), "http.method_not_allowed");
}

#[tokio::test]
async fn a_body_fits_or_is_refused_by_its_declared_length_alone() {
    let gateway = Gateway::start().await;
    assert_eq!(gateway.ask(&post(&"x".repeat(1000))).await.body, "token:caller Caller 1000");
    assert_eq!(gateway.ask(&post(&"x".repeat(1001))).await.code(), "http.too_large");
    let promised =
        "POST /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\nContent-Length: 99999999999\n\n";
    assert_eq!(gateway.ask(promised).await.code(), "http.too_large");
    assert_eq!(gateway.calls(), 1);
}

#[tokio::test]
async fn chunks_add_up_and_are_cut_off_at_the_same_size() {
    let gateway = Gateway::start().await;
    let answer = gateway.ask(&format!("{CHUNKED}3\nabc\n2\nde\n0\n\n")).await;
    assert_eq!(answer.body, "token:caller Caller 5");
    let mut client = gateway.client().await;
    client.send(gateway.fill(CHUNKED).as_bytes()).await;
    // Never ends: only the cap can.
    while client.send_if_open(format!("200\r\n{}\r\n", "x".repeat(0x200)).as_bytes()).await {
        if gateway.refusals().contains(&"http.too_large".to_owned()) {
            break;
        }
        tokio::task::yield_now().await;
    }
    client.closed().await;
    assert_eq!(gateway.refusals(), ["http.too_large"]);
    assert_eq!(gateway.calls(), 1);
}

/// A thousand callers who announce a body and never send it.
#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let settings = limits(|limits| limits.body_time = std::time::Duration::from_millis(100));
    let gateway = Gateway::with(settings, with_tokens()).await;
    let answer = gateway.ask(&post("hi").replace("Content-Length: 2", "Content-Length: 3")).await;
    assert_eq!((answer.status, answer.code().as_str()), (408, "http.timeout"));
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(gateway.calls(), 0);
}

/// A stranger must not make us read, or ask for, a body.
#[tokio::test]
async fn who_is_not_let_in_is_not_listened_to() {
    let gateway = Gateway::start().await;
    let request = "POST /mcp HTTP/1.1\nHost: {host}\nExpect: 100-continue\nContent-Length: 900\n\n";
    let mut client = gateway.client().await;
    client.send(gateway.fill(request).as_bytes()).await;
    let said = client.rest().await;
    assert!(said.starts_with("HTTP/1.1 401") && !said.contains("100 Continue"), "{said}");
}

/// CR and LF that reach a header as text would start another one.
#[tokio::test]
async fn nothing_a_client_sends_becomes_a_header_of_the_answer() {
    let gateway = Gateway::start().await;
    for request in [
        "GET /mcp%0d%0aX-Evil:%201 HTTP/1.1\nHost: {host}\n\n",
        "GET /mcp HTTP/1.1\nHost: {host}\nOrigin: https://app.example%0d%0aX-Evil: 1\n\n",
        "GET /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer a%0d%0aX-Evil: 1\n\n",
        "GET /mcp HTTP/1.1\nHost: evil%0d%0aX-Evil: 1\n\n",
    ] {
        let answer = gateway.ask(request).await;
        assert!(!answer.head.to_ascii_lowercase().contains("x-evil"), "{request}: {answer:?}");
        assert!(answer.status >= 400, "{request}");
    }
}
