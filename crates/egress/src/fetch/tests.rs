mod attacks;
mod environment;
mod gateway;
mod tls;

use std::time::Duration;

use super::*;
use crate::{
    EgressMode, HostRule,
    testing::{
        FakeResolver, TestServer, egress, egress_with, fetch, header, limits, loopback, ok, open, redirect,
        slug_of, some_roots,
    },
};

#[tokio::test]
async fn response_is_returned_completely() {
    let server = TestServer::start(|_| {
        b"HTTP/1.1 201 Made\r\nSet-Cookie: a\r\nContent-Type: text/plain\r\nset-cookie: b\r\nX: \xe9\r\n\r\nhello".to_vec()
    })
    .await;
    let request = Request {
        method: "post".into(),
        headers: vec![("X-Mine".into(), "1".into()), ("Host".into(), "evil.org".into())],
        body: "data".into(),
        ..Request::get(server.url("/path?q=1#f"))
    };
    let response = fetch(&egress(), &loopback(), request).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (201, &b"hello"[..]));
    assert_eq!(response.url, server.url("/path?q=1"));
    assert_eq!(response.content_type(), Some("text/plain"));
    let cookies: Vec<_> = response.headers.iter().filter(|(name, _)| name == "set-cookie").collect();
    assert_eq!(cookies.len(), 2);
    assert!(response.headers.contains(&("x".into(), "\u{e9}".into())));
    let [hop] = &response.hops[..] else { panic!("{:?}", response.hops) };
    assert_eq!((&hop.url, hop.address), (&server.url("/path"), Some(server.address)));
    assert_eq!((hop.status, hop.received), (Some(201), 5));
    let seen = server.seen();
    assert!(seen[0].starts_with("POST /path?q=1 HTTP/1.1\r\n"), "{}", seen[0]);
    assert!(seen[0].ends_with("\r\n\r\ndata"));
    assert_eq!(header(&seen[0], "host"), Some(server.address.to_string().as_str()));
    assert_eq!(header(&seen[0], "x-mine"), Some("1"));
    assert_eq!(header(&seen[0], "content-length"), Some("4"));
}

#[tokio::test]
async fn get_and_head_have_no_body() {
    let server =
        TestServer::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n".to_vec()).await;
    let request = Request { method: "HEAD".into(), body: "data".into(), ..Request::get(server.url("/")) };
    let response = fetch(&egress(), &loopback(), request).await.unwrap();
    assert!(response.body.is_empty());
    assert!(server.seen()[0].ends_with("\r\n\r\n") && header(&server.seen()[0], "content-length").is_none());
}

#[tokio::test]
async fn compressed_response_is_decompressed() {
    // `echo hello | gzip`, written by hand as one stored block.
    let server = TestServer::start(|_| {
        let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x05\0\xfa\xffhello\x86\xa6\x10\x36\x05\0\0\0";
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
        [head.as_bytes(), packed].concat()
    })
    .await;
    let response = fetch(&egress(), &loopback(), Request::get(server.url("/"))).await.unwrap();
    assert_eq!(&response.body[..], b"hello");
    assert!(response.headers.is_empty(), "{:?}", response.headers);
    assert_eq!(response.hops[0].received, 28);
}

#[tokio::test]
async fn redirects_are_followed_and_recorded() {
    let server = TestServer::start(|request| match request.split(' ').nth(1) {
        Some("/1") => redirect(302, "/2"),
        Some("/2") => redirect(308, "/3?key=1"),
        _ => ok("end"),
    })
    .await;
    let response = fetch(&egress(), &loopback(), Request::get(server.url("/1"))).await.unwrap();
    assert_eq!((response.url, &response.body[..]), (server.url("/3?key=1"), &b"end"[..]));
    let recorded: Vec<_> = response.hops.iter().map(|hop| (hop.url.clone(), hop.status)).collect();
    assert_eq!(
        recorded,
        [(server.url("/1"), Some(302)), (server.url("/2"), Some(308)), (server.url("/3"), Some(200))]
    );
}

#[tokio::test]
async fn sixth_redirect_is_refused() {
    let server = TestServer::start(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path.trim_start_matches('/').parse::<u32>() {
            Ok(0) | Err(_) => ok("end"),
            Ok(left) => redirect(302, &format!("/{}", left - 1)),
        }
    })
    .await;
    let response = fetch(&egress(), &loopback(), Request::get(server.url("/5"))).await.unwrap();
    assert_eq!(response.hops.len(), 6);
    let error = fetch(&egress(), &loopback(), Request::get(server.url("/6"))).await.unwrap_err();
    let recorded: Vec<_> = error.hops.iter().map(|hop| (hop.url.clone(), hop.status)).collect();
    let led = |left: u32| (server.url(&format!("/{left}")), (left > 0).then_some(302));
    assert_eq!((error.slug(), recorded), ("too-many-redirects", [6, 5, 4, 3, 2, 1, 0].map(led).to_vec()));
}

#[tokio::test]
async fn manual_and_error_redirect_modes() {
    let server = TestServer::start(|_| b"HTTP/1.1 302 Found\r\nlocation: /x\r\n\r\nmoved".to_vec()).await;
    let manual = Request { redirects: Redirects::Manual, ..Request::get(server.url("/")) };
    let response = fetch(&egress(), &loopback(), manual).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (302, &b"moved"[..]));
    let refused = Request { redirects: Redirects::Error, ..Request::get(server.url("/")) };
    assert_eq!(slug_of(&egress(), &loopback(), refused).await, "redirect-refused");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn redirect_status_without_location_is_returned() {
    for head in [
        "HTTP/1.1 304 Not Modified\r\nlocation: /x\r\n\r\n",
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
    ] {
        let server = TestServer::start(move |_| head.into()).await;
        let response = fetch(&egress(), &loopback(), Request::get(server.url("/"))).await.unwrap();
        assert!(matches!(response.status, 302 | 304));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn refused_hosts_are_never_dialled() {
    let server = TestServer::start(|_| ok("secret")).await;
    let listed = |host: &str| EgressRules {
        mode: EgressMode::Allowlist,
        hosts: vec![HostRule::exact(host.into())],
        ..EgressRules::blocked()
    };
    for (rules, url, slug) in [
        (EgressRules::blocked(), server.url("/"), "network-blocked"),
        (
            EgressRules { mode: EgressMode::Strict, ..EgressRules::blocked() },
            server.url("/"),
            "literal-private-ip",
        ),
        (listed("b.test"), server.url_as("a.test", "/"), "host-not-in-allowlist"),
        (listed("a.test"), server.url_as("a.test", "/"), "resolved-private-ip"),
        (open(), "http://unknown.test/".into(), "dns-resolution-failed"),
        (open(), "http://nothing.test/".into(), "dns-no-addresses"),
        (open(), "ftp://a.test/".into(), "unsupported-scheme"),
        (open(), format!("http://a.test/{}", "x".repeat(20_000)), "url-too-long"),
        (
            EgressRules { blocked_ports: vec![server.address.port()], ..open() },
            server.url("/"),
            "port-blocked",
        ),
    ] {
        let error = fetch(&egress(), &rules, Request::get(url)).await.unwrap_err();
        assert_eq!(error.slug(), slug);
        assert_eq!(error.class, error.reason.class());
        assert!(error.hops.iter().all(|hop| hop.address.is_none()), "{:?}", error.hops);
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn unreachable_address_is_skipped() {
    let server = TestServer::start(|_| ok("here")).await;
    // The server listens on 127.0.0.1 only.
    let addresses = ["::1", "127.0.0.2", "127.0.0.3", "127.0.0.1"].map(|address| address.parse().unwrap());
    let names = FakeResolver([("many.test", addresses.to_vec())].into());
    let egress = Egress::new(Arc::new(names), &some_roots(), limits(), Listeners::of_this_process()).unwrap();
    let response = fetch(&egress, &open(), Request::get(server.url_as("many.test", "/"))).await.unwrap();
    assert_eq!(response.hops[0].address, Some(server.address));
}

#[tokio::test]
async fn empty_body_may_have_any_coding() {
    let server = TestServer::start(|_| {
        b"HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\ncontent-length: 9\r\n\r\n".to_vec()
    })
    .await;
    let head = Request { method: "HEAD".into(), ..Request::get(server.url("/")) };
    assert_eq!(fetch(&egress(), &loopback(), head).await.unwrap().status, 200);
    assert_eq!(slug_of(&egress(), &loopback(), Request::get(server.url("/"))).await, "unsupported-encoding");
}

#[tokio::test]
async fn overlong_redirect_is_an_invalid_redirect() {
    let server = TestServer::start(|_| redirect(302, &format!("/{}", "x".repeat(20_000)))).await;
    assert_eq!(slug_of(&egress(), &loopback(), Request::get(server.url("/"))).await, "invalid-redirect");
}

#[tokio::test]
async fn closed_port_is_a_runtime_error() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = fetch(&egress(), &loopback(), Request::get(format!("http://{gone}/"))).await.unwrap_err();
    assert_eq!((error.slug(), error.class.word()), ("connect-failed", "HELPER_RUNTIME"));
}

#[tokio::test]
async fn dropped_request_closes_the_connection() {
    let (sender, recorded) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let server = TestServer::speaking(move |mut stream, _| {
        let sender = sender.lock().unwrap().take();
        async move {
            let mut byte = [0];
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut byte).await;
            let _ = sender.unwrap().send(matches!(read, Ok(0) | Err(_)));
        }
    })
    .await;
    let (egress, rules) = (egress(), loopback());
    let request = Request::get(server.url("/"));
    let task = tokio::spawn(async move { egress.fetch(&rules, request).await.map(drop) });
    while server.seen().is_empty() {
        tokio::task::yield_now().await;
    }
    task.abort();
    assert!(recorded.await.unwrap());
}
