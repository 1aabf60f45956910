//! Malicious servers.

use tokio::io::AsyncWriteExt as _;

use super::*;

fn says(bytes: &'static [u8]) -> impl Fn(&str) -> Vec<u8> + Send + Sync + 'static {
    move |_| bytes.to_vec()
}

/// The slug of a GET that the server answers with exactly these bytes.
async fn fate(bytes: impl Into<Vec<u8>>) -> &'static str {
    let bytes = bytes.into();
    let server = TestServer::start(move |_| bytes.clone()).await;
    match fetch(&egress(), &loopback(), Request::get(server.url("/"))).await {
        Ok(_) => "answered",
        Err(error) => error.slug(),
    }
}

#[tokio::test]
async fn redirects_are_checked_like_first_requests() {
    for (location, recorded, slug) in [
        ("http://169.254.169.254/latest?x#y", "http://169.254.169.254/latest", "metadata-endpoint"),
        ("http://0xa9fea9fe/", "http://169.254.169.254/", "metadata-endpoint"),
        ("http://127.0.0.2/", "http://127.0.0.2/", "host-not-in-allowlist"),
        ("http://[::1]/", "http://[::1]/", "host-not-in-allowlist"),
        ("http://a.test/", "http://a.test/", "host-not-in-allowlist"),
        ("//evil.org/", "http://evil.org/", "host-not-in-allowlist"),
        ("file:///etc/passwd", "file:///etc/passwd", "unsupported-scheme"),
        ("http://user:pw@127.0.0.1/", "http://127.0.0.1/", "userinfo-in-url"),
    ] {
        let server = TestServer::start(move |_| redirect(302, location)).await;
        let error = fetch(&egress(), &loopback(), Request::get(server.url("/"))).await.unwrap_err();
        let [first, refused] = &error.hops[..] else { panic!("{location}: {:?}", error.hops) };
        assert_eq!((error.slug(), first.status), (slug, Some(302)), "{location}");
        assert_eq!((refused.url.as_str(), refused.address, refused.status), (recorded, None, None));
    }
    let server = TestServer::start(|_| redirect(307, "http://169.254.169.254/")).await;
    assert_eq!(slug_of(&egress(), &open(), Request::get(server.url("/"))).await, "metadata-endpoint");
}

#[tokio::test]
async fn credentials_are_sent_to_the_first_origin_only() {
    let b = TestServer::start(|request| {
        let home = header(request, "x-home").map(str::to_owned);
        assert_eq!(home, None);
        let port = request.split("/to/").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        redirect(302, &format!("http://a.test:{port}/end"))
    })
    .await;
    let to_b = b.url_as("b.test", "/to/");
    let a = TestServer::start(move |request| {
        let port = header(request, "host").and_then(|host| host.split(':').nth(1)).unwrap_or_default();
        if request.starts_with("GET /end") { ok("end") } else { redirect(302, &format!("{to_b}{port}")) }
    })
    .await;
    let pair = |name: &str| (name.to_owned(), "s3cret".to_owned());
    let request = Request {
        headers: ["Authorization", "Cookie", "X-Api-Key", "Accept-Language", "Accept"].map(pair).into(),
        sensitive_headers: vec!["accept-language".into()],
        ..Request::get(a.url_as("a.test", "/"))
    };
    let response = fetch(&egress(), &open(), request).await.unwrap();
    assert_eq!(response.hops.len(), 3);
    let (of_a, of_b) = (a.seen(), b.seen());
    for name in ["authorization", "cookie", "x-api-key", "accept-language"] {
        assert_eq!(header(&of_a[0], name), Some("s3cret"), "{name}");
        assert_eq!(header(&of_b[0], name), None, "{name}");
        assert_eq!(header(&of_a[1], name), None, "{name}");
    }
    assert_eq!(header(&of_b[0], "accept"), Some("s3cret"));
}

#[tokio::test]
async fn oversized_body_is_refused_in_every_framing() {
    let cap = limits().response_body_bytes;
    assert_eq!(fate(ok(&"x".repeat(cap))).await, "answered");
    assert_eq!(fate(ok(&"x".repeat(cap + 1))).await, "response-body-too-large");
    // Announced but never sent.
    assert_eq!(fate("HTTP/1.1 200 OK\r\ncontent-length: 100001\r\n\r\n").await, "response-body-too-large");
    assert_eq!(
        fate("HTTP/1.1 200 OK\r\ncontent-length: 999999999999999999\r\n\r\n").await,
        "response-body-too-large"
    );
    // Ends with the connection.
    assert_eq!(
        fate(format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(cap + 1))).await,
        "response-body-too-large"
    );
}

#[tokio::test]
async fn endless_body_is_refused() {
    let server = TestServer::speaking(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
        while stream.write_all(b"5\r\nhello\r\n").await.is_ok() {}
    })
    .await;
    let slug = slug_of(&egress(), &loopback(), Request::get(server.url("/"))).await;
    assert_eq!(slug, "response-body-too-large");
}

#[tokio::test]
async fn decompression_bomb_is_refused() {
    // 10 MiB of zeroes, compressed to about 10 KiB.
    let zeroes = vec![0; 10 * 1024 * 1024];
    let mut encoder = async_compression::tokio::bufread::GzipEncoder::new(&zeroes[..]);
    let mut bomb = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut encoder, &mut bomb).await.unwrap();
    assert!(bomb.len() < limits().response_body_bytes);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", bomb.len());
    assert_eq!(fate([head.into_bytes(), bomb].concat()).await, "response-body-too-large");
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let most = "x: y\r\n".repeat(limits().response_headers);
    assert_eq!(fate(format!("HTTP/1.1 200 OK\r\n{most}\r\n")).await, "answered");
    let many = "x: y\r\n".repeat(limits().response_headers + 1);
    assert_eq!(fate(format!("HTTP/1.1 200 OK\r\n{many}\r\n")).await, "response-headers-too-large");
    let long = "y".repeat(70_000);
    assert_eq!(fate(format!("HTTP/1.1 200 OK\r\nx: {long}\r\n\r\n")).await, "response-headers-too-large");
    let server = TestServer::speaking(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(&[b'y'; 1000]).await.is_ok() {}
    })
    .await;
    let slug = slug_of(&egress(), &loopback(), Request::get(server.url("/"))).await;
    assert_eq!(slug, "response-headers-too-large");
}

/// A byte beyond ASCII takes one byte on the wire and two as text. The limit also applies to the text.
#[tokio::test]
async fn headers_are_counted_again_as_text() {
    let with = |bytes: usize| {
        let head = [&b"HTTP/1.1 200 OK\r\nx: "[..], &vec![0xe9; bytes], b"\r\n\r\n"].concat();
        fate(head)
    };
    let cap = limits().response_header_bytes;
    assert_eq!(with(cap / 2 - 1).await, "answered");
    assert_eq!(with(cap / 2).await, "response-headers-too-large");
    assert_eq!(with(40_000).await, "response-headers-too-large");
}

#[tokio::test]
async fn endless_interim_heads_are_refused() {
    for head in ["HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
        let server = TestServer::endless(head).await;
        let slug = slug_of(&egress(), &loopback(), Request::get(server.url("/"))).await;
        assert_eq!(slug, "response-headers-too-large");
    }
}

#[tokio::test]
async fn interim_heads_count_against_the_cap() {
    let hint = |bytes: usize| format!("HTTP/1.1 103 Early Hints\r\nlink: {}\r\n\r\n", "x".repeat(bytes));
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(fate(format!("{}{answer}", hint(10_000).repeat(6))).await, "answered");
    assert_eq!(fate(format!("{}{answer}", hint(10_000).repeat(7))).await, "response-headers-too-large");
    assert_eq!(fate(format!("{}{answer}", hint(1).repeat(17))).await, "response-headers-too-large");
    // A body of any length may follow.
    let body = "y".repeat(90_000);
    let long = format!("{}HTTP/1.1 200 OK\r\ncontent-length: 90000\r\n\r\n{body}", hint(1));
    assert_eq!(fate(long).await, "answered");
}

#[tokio::test]
async fn invalid_http_is_refused() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\nx y: z\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n",
        b"220 smtp.example.com ESMTP\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n",
    ] {
        let shown = String::from_utf8_lossy(bytes);
        let slug = fate(bytes).await;
        assert!(matches!(slug, "invalid-response" | "connection-lost"), "{slug} for {shown}");
    }
}

#[tokio::test]
async fn truncated_response_is_an_error() {
    for bytes in [
        "",
        "HTTP/1.1 200 OK\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
    ] {
        assert_eq!(fate(bytes).await, "response-truncated", "{bytes}");
    }
}

#[tokio::test]
async fn every_phase_has_a_timeout() {
    let short = Duration::from_millis(150);
    let quiet = TestServer::speaking(|stream, _| async move {
        std::future::pending::<()>().await;
        drop(stream);
    })
    .await;
    let stuck = TestServer::speaking(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhel").await;
        std::future::pending::<()>().await;
    })
    .await;
    // A byte now and then resets every timeout but the last.
    let drip = TestServer::speaking(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n").await;
        while stream.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let clocks = EgressLimits { tls: short, response_head: short, body_idle: short, ..limits() };
    let get = |server: &TestServer| Request::get(server.url("/"));
    let egress = egress_with(clocks.clone());
    assert_eq!(slug_of(&egress, &loopback(), get(&quiet)).await, "response-headers-timeout");
    assert_eq!(slug_of(&egress, &loopback(), get(&stuck)).await, "response-body-timeout");
    let secure = Request::get(quiet.url("/").replace("http:", "https:"));
    assert_eq!(slug_of(&egress, &loopback(), secure).await, "tls-timeout");
    let hurried =
        egress.with_limits(EgressLimits { body_idle: Duration::from_secs(30), whole: short * 3, ..clocks });
    let error = fetch(&hurried, &loopback(), get(&drip)).await.unwrap_err();
    assert_eq!(error.slug(), "request-timeout");
    // The journal records a server that never responded.
    assert_eq!(error.hops.len(), 1);
    assert_eq!(error.hops[0].status, None);
}

#[tokio::test]
async fn line_ends_in_a_path_are_encoded() {
    let server = TestServer::start(says(b"HTTP/1.1 200 OK\r\n\r\n")).await;
    let url = server.url("/a%0d%0aX-Evil:%201%0d%0a%0d%0aGET%20/b%20HTTP/1.1");
    fetch(&egress(), &loopback(), Request::get(url)).await.unwrap();
    let seen = server.seen();
    assert_eq!((seen.len(), header(&seen[0], "x-evil")), (1, None));
    assert!(seen[0].starts_with("GET /a%0d%0aX-Evil:%201%0d%0a%0d%0aGET%20/b%20HTTP/1.1 HTTP/1.1\r\n"));
}
