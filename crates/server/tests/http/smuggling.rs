//! Requests that two readers would read differently are refused, or nothing after them is read.

use crate::gateway::Gateway;

const HEAD: &str = "POST /mcp HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_caller\n";
/// The bytes that the attacker wants to be read as a separate request.
const HIDDEN: &str = "GET /admin/tools HTTP/1.1\nHost: {host}\nAuthorization: Bearer tg_admin\n\n";

/// The outer request may be answered, once; the hidden one must never be.
async fn check_hidden(request: &str) {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(request).as_bytes()).await;
    // Left open on our side: the other one has to hang up.
    let said = client.rest().await;
    assert!(!said.contains("token:admin"), "{request:?}: {said}");
    assert!(gateway.calls() <= 1, "{request:?}");
    assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{request:?}: {said}");
}

#[tokio::test]
async fn a_length_beside_chunks_hides_nothing() {
    check_hidden(&format!("{HEAD}Content-Length: 6\nTransfer-Encoding: chunked\n\n0\n\n{HIDDEN}")).await;
    check_hidden(&format!("{HEAD}Transfer-Encoding: chunked\nContent-Length: 6\n\n0\n\n{HIDDEN}")).await;
    check_hidden(&format!("{HEAD}Content-Length: 200\nTransfer-Encoding: chunked\n\n0\n\n{HIDDEN}")).await;
}

#[tokio::test]
async fn lengths_that_differ_or_are_no_number_are_refused() {
    let gateway = Gateway::start().await;
    for lines in [
        "Content-Length: 0\nContent-Length: 5",
        "Content-Length: 5\nContent-Length: 0",
        "Content-Length: 0, 5",
        "Content-Length: +5",
        "Content-Length: -1",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length: 99999999999999999999999",
        "Content-Length:",
    ] {
        gateway.refuses(&format!("{HEAD}{lines}\n\n{HIDDEN}")).await;
    }
}

#[tokio::test]
async fn encodings_other_than_chunked_are_refused() {
    let gateway = Gateway::start().await;
    for line in [
        "Transfer-Encoding: gzip",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked\nTransfer-Encoding: identity",
        "Transfer-Encoding : chunked",
        " Transfer-Encoding: chunked",
        "Transfer-Encoding: \u{b}chunked",
        "Transfer-Encoding: \"chunked\"",
    ] {
        gateway.refuses(&format!("{HEAD}{line}\n\n0\n\n{HIDDEN}")).await;
    }
}

/// The request is answered once, and the connection is closed.
async fn check_answer(request: &str, status: u16) {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    client.send(gateway.fill(request).as_bytes()).await;
    let said = client.rest().await;
    assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{request:?}: {said}");
    assert!(said.to_lowercase().contains("connection: close"), "{request:?}: {said}");
    assert_eq!((said.matches("HTTP/1.1 ").count(), gateway.calls()), (1, 0), "{request:?}: {said}");
    assert_eq!(gateway.refusals().len(), 1, "{request:?}");
}

#[tokio::test]
async fn ambiguous_framing_is_answered_with_400() {
    for lines in [
        "Content-Length: 0\nContent-Length: 0",
        "Content-Length: 0\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\nContent-Length: 0",
        "Content-Length: 0, 0",
    ] {
        check_answer(&format!("{HEAD}{lines}\n\n0\n\n{HIDDEN}"), 400).await;
    }
}

#[tokio::test]
async fn bare_line_feeds_are_answered_with_400() {
    let gateway = Gateway::start().await;
    let head = gateway.fill(HEAD);
    for request in [
        head.replace("\r\n", "\n") + "Content-Length: 0\n\n",
        format!("{head}Content-Length: 0\n\r\n"),
        format!("{head}Content-Length: 0\r\n\n"),
        format!("{head}X: a\nContent-Length: 0\r\n\r\n"),
    ] {
        let mut client = gateway.client().await;
        client.send(request.as_bytes()).await;
        let said = client.rest().await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{request:?}: {said}");
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{request:?}: {said}");
    }
    assert_eq!(gateway.calls(), 0);
    let details = || {
        gateway.world.refusals.lock().unwrap().iter().filter(|(_, _, why)| why.contains("bare LF")).count()
    };
    for _ in 0..200 {
        if details() == 4 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(details(), 4, "operators read why");
}

#[tokio::test]
async fn unknown_codings_before_chunked_are_answered_with_501() {
    for line in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: gzip\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: x, chunked",
    ] {
        check_answer(&format!("{HEAD}{line}\n\n0\n\n{HIDDEN}"), 501).await;
    }
}

/// The end of chunks is known to hyper only, so nothing is read behind it.
#[tokio::test]
async fn connection_closes_after_a_chunked_body() {
    check_hidden(&format!("{HEAD}Transfer-Encoding: chunked\n\n3\nabc\n0\n\n{HIDDEN}")).await;
    let gateway = Gateway::start().await;
    let answer = gateway.ask(&format!("{HEAD}Transfer-Encoding: chunked\n\n3\nabc\n0\n\n")).await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "token:caller Caller 3"));
}

/// A request that was sent right behind another one is checked like the first.
#[tokio::test]
async fn pipelined_heads_are_checked_too() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    let good = format!("{HEAD}Content-Length: 2\n\nab");
    let bad = format!("{HEAD}Content-Length: 0\nContent-Length: 0\n\n");
    client.send(gateway.fill(&format!("{good}{bad}{HIDDEN}")).as_bytes()).await;
    assert_eq!(client.answer().await.unwrap().body, "token:caller Caller 2");
    assert_eq!(client.answer().await.unwrap().status, 400);
    assert!(client.answer().await.is_none());
    assert_eq!(gateway.calls(), 1);
}

#[tokio::test]
async fn folded_lines_and_stray_characters_are_refused() {
    let gateway = Gateway::start().await;
    for lines in [
        "X-Folded: one\n two",
        "X-Folded: one\n\ttwo",
        "X-Nul: a\0b",
        "X Space: 1",
        "X-Name : 1",
        ": nameless",
        "no colon",
        "X-Bad(name): 1",
    ] {
        gateway.refuses(&format!("{HEAD}{lines}\nContent-Length: 0\n\n{HIDDEN}")).await;
    }
}

#[tokio::test]
async fn chunks_that_are_not_sound_are_refused() {
    let gateway = Gateway::start().await;
    for chunks in [
        "zz\nabc\n0\n\n",
        "-1\nabc\n0\n\n",
        "3\nabcX0\n\n",
        "FFFFFFFFFFFFFFFFF\nabc\n0\n\n",
        "\n0\n\n",
        "0x3\nabc\n0\n\n",
        "3 3\nabc\n0\n\n",
    ] {
        let said = gateway.refuses(&format!("{HEAD}Transfer-Encoding: chunked\n\n{chunks}{HIDDEN}")).await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{chunks:?}: {said}");
    }
}

#[tokio::test]
async fn request_lines_that_are_not_sound_are_refused() {
    let gateway = Gateway::start().await;
    for line in [
        "GET  /mcp HTTP/1.1",
        "GET /mcp HTTP/1.1 ",
        "GET /mcp",
        "GET /mcp HTTP/2.0",
        "GET /mcp HTTP/0.9",
        "GET /m cp HTTP/1.1",
        " GET /mcp HTTP/1.1",
        "G\0T /mcp HTTP/1.1",
        "PRI * HTTP/2.0",
        "\u{16}\u{3}\u{1}",
    ] {
        gateway.refuses(&format!("{line}\nHost: {{host}}\nAuthorization: Bearer tg_caller\n\n")).await;
    }
}

/// Pipelining is allowed: each request is read, checked and answered by itself, in order.
#[tokio::test]
async fn pipelined_requests_are_each_checked_by_themselves() {
    let gateway = Gateway::start().await;
    let one = |body: &str| format!("{HEAD}Content-Length: {}\n\n{body}", body.len());
    let mut client = gateway.client().await;
    let stranger = "GET /mcp HTTP/1.1\nHost: {host}\n\n";
    client.send(gateway.fill(&format!("{}{}{stranger}{HIDDEN}", one("a"), one("bb"))).as_bytes()).await;
    assert_eq!(client.answer().await.unwrap().body, "token:caller Caller 1");
    assert_eq!(client.answer().await.unwrap().body, "token:caller Caller 2");
    let refused = client.answer().await.unwrap();
    assert_eq!((refused.status, refused.header("connection")), (401, Some("close")));
    assert!(client.answer().await.is_none(), "nothing is read after a refusal");
    assert_eq!(gateway.calls(), 2);
}

#[tokio::test]
async fn http_1_0_is_served_once_and_closed() {
    let gateway = Gateway::start().await;
    let mut client = gateway.client().await;
    let request = "GET /mcp HTTP/1.0\nHost: {host}\nAuthorization: Bearer tg_caller\n\n";
    client.send(gateway.fill(&format!("{request}{request}")).as_bytes()).await;
    let said = client.rest().await;
    assert_eq!(said.matches("token:caller").count(), 1, "{said}");
    let chunked = "POST /mcp HTTP/1.0\nHost: {host}\nAuthorization: Bearer tg_caller\nTransfer-Encoding: chunked\n\n0\n\n";
    let gateway = Gateway::start().await;
    gateway.refuses(chunked).await;
}
