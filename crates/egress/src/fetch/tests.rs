mod attacks;
mod environment;
mod gateway;
mod tls;

use std::time::Duration;

use super::*;
use crate::{
    HostRule, Mode,
    testing::{
        Names, Server, egress, egress_with, fetch, header, limits, loopback, ok, open, redirect, slug_of,
        some_roots,
    },
};

#[tokio::test]
async fn an_answer_comes_back_whole() {
    let server = Server::start(|_| {
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
    let server = Server::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n".to_vec()).await;
    let request = Request { method: "HEAD".into(), body: "data".into(), ..Request::get(server.url("/")) };
    let response = fetch(&egress(), &loopback(), request).await.unwrap();
    assert!(response.body.is_empty());
    assert!(server.seen()[0].ends_with("\r\n\r\n") && header(&server.seen()[0], "content-length").is_none());
}

#[tokio::test]
async fn a_packed_answer_is_unpacked_and_says_so() {
    // `echo hello | gzip`, by hand: one stored block.
    let server = Server::start(|_| {
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
async fn redirects_are_followed_and_told() {
    let server = Server::start(|request| match request.split(' ').nth(1) {
        Some("/1") => redirect(302, "/2"),
        Some("/2") => redirect(308, "/3?key=1"),
        _ => ok("end"),
    })
    .await;
    let response = fetch(&egress(), &loopback(), Request::get(server.url("/1"))).await.unwrap();
    assert_eq!((response.url, &response.body[..]), (server.url("/3?key=1"), &b"end"[..]));
    let told: Vec<_> = response.hops.iter().map(|hop| (hop.url.clone(), hop.status)).collect();
    assert_eq!(
        told,
        [(server.url("/1"), Some(302)), (server.url("/2"), Some(308)), (server.url("/3"), Some(200))]
    );
}

#[tokio::test]
async fn five_redirects_are_followed_and_a_sixth_is_not() {
    let server = Server::start(|request| {
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
    let told: Vec<_> = error.hops.iter().map(|hop| (hop.url.clone(), hop.status)).collect();
    let led = |left: u32| (server.url(&format!("/{left}")), (left > 0).then_some(302));
    assert_eq!((error.slug(), told), ("too-many-redirects", [6, 5, 4, 3, 2, 1, 0].map(led).to_vec()));
}

#[tokio::test]
async fn the_caller_may_see_redirects_or_refuse_them() {
    let server = Server::start(|_| b"HTTP/1.1 302 Found\r\nlocation: /x\r\n\r\nmoved".to_vec()).await;
    let manual = Request { redirects: Redirects::Manual, ..Request::get(server.url("/")) };
    let response = fetch(&egress(), &loopback(), manual).await.unwrap();
    assert_eq!((response.status, &response.body[..]), (302, &b"moved"[..]));
    let refused = Request { redirects: Redirects::Error, ..Request::get(server.url("/")) };
    assert_eq!(slug_of(&egress(), &loopback(), refused).await, "redirect-refused");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn an_answer_without_a_place_to_go_is_an_answer() {
    for head in [
        "HTTP/1.1 304 Not Modified\r\nlocation: /x\r\n\r\n",
        "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n",
    ] {
        let server = Server::start(move |_| head.into()).await;
        let response = fetch(&egress(), &loopback(), Request::get(server.url("/"))).await.unwrap();
        assert!(matches!(response.status, 302 | 304));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn nothing_is_dialled_that_the_rules_refuse() {
    let server = Server::start(|_| ok("secret")).await;
    let listed = |host: &str| Rules {
        mode: Mode::Allowlist,
        hosts: vec![HostRule::exact(host.into())],
        ..Rules::blocked()
    };
    for (rules, url, slug) in [
        (Rules::blocked(), server.url("/"), "network-blocked"),
        (Rules { mode: Mode::Strict, ..Rules::blocked() }, server.url("/"), "literal-private-ip"),
        (listed("b.test"), server.url_as("a.test", "/"), "host-not-in-allowlist"),
        (listed("a.test"), server.url_as("a.test", "/"), "resolved-private-ip"),
        (open(), "http://unknown.test/".into(), "dns-resolution-failed"),
        (open(), "http://nothing.test/".into(), "dns-no-addresses"),
        (open(), "ftp://a.test/".into(), "unsupported-scheme"),
        (open(), format!("http://a.test/{}", "x".repeat(20_000)), "url-too-long"),
        (Rules { blocked_ports: vec![server.address.port()], ..open() }, server.url("/"), "port-blocked"),
    ] {
        let error = fetch(&egress(), &rules, Request::get(url)).await.unwrap_err();
        assert_eq!(error.slug(), slug);
        assert_eq!(error.class, error.reason.class());
        assert!(error.hops.iter().all(|hop| hop.address.is_none()), "{:?}", error.hops);
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_dead_address_is_passed_over() {
    let server = Server::start(|_| ok("here")).await;
    // The server listens on 127.0.0.1 alone.
    let addresses = ["::1", "127.0.0.2", "127.0.0.3", "127.0.0.1"].map(|address| address.parse().unwrap());
    let names = Names([("many.test", addresses.to_vec())].into());
    let egress = Egress::new(Arc::new(names), &some_roots(), limits(), Listeners::of_this_process()).unwrap();
    let response = fetch(&egress, &open(), Request::get(server.url_as("many.test", "/"))).await.unwrap();
    assert_eq!(response.hops[0].address, Some(server.address));
}

#[tokio::test]
async fn an_answer_without_body_may_name_any_coding() {
    let server =
        Server::start(|_| b"HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\ncontent-length: 9\r\n\r\n".to_vec())
            .await;
    let head = Request { method: "HEAD".into(), ..Request::get(server.url("/")) };
    assert_eq!(fetch(&egress(), &loopback(), head).await.unwrap().status, 200);
    assert_eq!(slug_of(&egress(), &loopback(), Request::get(server.url("/"))).await, "unsupported-encoding");
}

#[tokio::test]
async fn a_redirect_to_an_endless_place_is_the_servers_fault() {
    let server = Server::start(|_| redirect(302, &format!("/{}", "x".repeat(20_000)))).await;
    assert_eq!(slug_of(&egress(), &loopback(), Request::get(server.url("/"))).await, "invalid-redirect");
}

#[tokio::test]
async fn a_closed_port_is_the_world_failing() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = fetch(&egress(), &loopback(), Request::get(format!("http://{gone}/"))).await.unwrap_err();
    assert_eq!((error.slug(), error.class.word()), ("connect-failed", "HELPER_RUNTIME"));
}

#[tokio::test]
async fn a_dropped_request_hangs_up() {
    let (tell, told) = tokio::sync::oneshot::channel();
    let tell = std::sync::Mutex::new(Some(tell));
    let server = Server::speaking(move |mut stream, _| {
        let tell = tell.lock().unwrap().take();
        async move {
            let mut byte = [0];
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut byte).await;
            let _ = tell.unwrap().send(matches!(read, Ok(0) | Err(_)));
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
    assert!(told.await.unwrap());
}
