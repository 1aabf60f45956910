use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Instant,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::*;
use crate::{
    EgressMode, HostRule, RequestPart,
    guard::OutgoingPart,
    testing::{TestServer, egress, header, loopback, ok, open, redirect},
};

const LIMITS: StreamLimits =
    StreamLimits { head: Duration::from_secs(5), idle: Duration::from_secs(5), body_bytes: 100_000 };

async fn opened(client: &PooledEgress, url: &str) -> Result<StreamResponse, EgressError> {
    client.open_stream(&Request::get(url), LIMITS, &HopTrail::default()).await
}

async fn whole(mut body: StreamedBody) -> Result<String, EgressError> {
    let mut text = String::new();
    while let Some(piece) = body.next().await? {
        text.push_str(&String::from_utf8_lossy(&piece));
    }
    Ok(text)
}

async fn slug(client: &PooledEgress, url: &str, limits: StreamLimits) -> &'static str {
    let outcome = async {
        let response = client.open_stream(&Request::get(url), limits, &HopTrail::default()).await?;
        whole(response.body).await
    };
    outcome.await.unwrap_err().slug()
}

/// A server that keeps connections open. `answer` gets the number of the connection and of its request.
struct KeepAliveServer {
    address: std::net::SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl KeepAliveServer {
    async fn start(answer: impl Fn(usize, usize) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (answer, count) = (Arc::new(answer), Arc::clone(&connections));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(talk(stream, number, Arc::clone(&answer)));
            }
        });
        Self { address, connections }
    }

    fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn talk(mut stream: TcpStream, number: usize, answer: Arc<impl Fn(usize, usize) -> Vec<u8>>) {
    let mut chunk = [0; 4096];
    for request in 0.. {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read(&mut chunk).await {
                Ok(count) if count > 0 => head.extend_from_slice(&chunk[..count]),
                _ => return,
            }
        }
        let bytes = answer(number, request);
        if bytes.is_empty() || stream.write_all(&bytes).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn body_arrives_piece_by_piece() {
    let server = TestServer::speaking(|mut stream, _| async move {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}5\r\nfirst\r\n").as_bytes()).await.unwrap();
        // The rest never arrives.
        tokio::time::sleep(Duration::from_mins(1)).await;
    })
    .await;
    let mut response = opened(&egress().pooled(loopback()), &server.url("/")).await.unwrap();
    assert_eq!(response.status, 200);
    assert!(response.headers.contains(&("content-type".into(), "text/event-stream".into())));
    assert_eq!(response.body.next().await.unwrap().unwrap(), "first");
    assert_eq!(header(&server.seen()[0], "accept-encoding"), Some("identity"));
    assert_eq!(header(&server.seen()[0], "connection"), None);
}

#[tokio::test]
async fn connection_is_reused_after_a_complete_response() {
    let server = KeepAliveServer::start(|_, _| ok("here")).await;
    let client = egress().pooled(loopback());
    for _ in 0..3 {
        let trail = HopTrail::default();
        let response = client.open_stream(&Request::get(server.url()), LIMITS, &trail).await.unwrap();
        assert_eq!(whole(response.body).await.unwrap(), "here");
        let [hop] = &trail.hops()[..] else { panic!("{trail:?}") };
        assert_eq!((hop.address, hop.status), (Some(server.address), Some(200)));
    }
    // A clone with a guard shares the connection.
    let guarded = client.with_guard(Arc::new(NoSecrets));
    assert_eq!(whole(opened(&guarded, &server.url()).await.unwrap().body).await.unwrap(), "here");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn connection_is_not_reused_for_other_rules_origins_or_unfinished_bodies() {
    let server = KeepAliveServer::start(|_, _| ok("here")).await;
    let egress = egress();
    let client = egress.pooled(loopback());
    whole(opened(&client, &server.url()).await.unwrap().body).await.unwrap();
    whole(opened(&egress.pooled(loopback()), &server.url()).await.unwrap().body).await.unwrap();
    assert_eq!(server.connections(), 2);
    // Dropped before its end.
    drop(opened(&client, &server.url()).await.unwrap());
    whole(opened(&client, &server.url()).await.unwrap().body).await.unwrap();
    assert_eq!(server.connections(), 3);
    let by_name = egress.pooled(open());
    for name in ["a.test", "b.test"] {
        let url = format!("http://{name}:{}/", server.address.port());
        whole(opened(&by_name, &url).await.unwrap().body).await.unwrap();
    }
    assert_eq!(server.connections(), 5);
}

#[tokio::test]
async fn rules_are_checked_for_every_request() {
    let server = KeepAliveServer::start(|_, _| ok("here")).await;
    let client = egress().pooled(loopback());
    whole(opened(&client, &server.url()).await.unwrap().body).await.unwrap();
    for (rules, expect) in [
        (EgressRules::blocked(), "network-blocked"),
        (EgressRules { mode: EgressMode::Strict, ..EgressRules::blocked() }, "literal-private-ip"),
        (
            EgressRules { hosts: vec![HostRule::exact("b.test".into())], ..loopback() },
            "host-not-in-allowlist",
        ),
    ] {
        // Even with the connection of the first client at hand.
        let other = PooledEgress { rules: Arc::new(rules), ..client.clone() };
        let error = opened(&other, &server.url()).await.unwrap_err();
        assert_eq!((error.slug(), error.was_not_sent()), (expect, true));
    }
    let name = format!("http://a.test:{}/", server.address.port());
    let private = EgressRules { hosts: vec![HostRule::exact("a.test".into())], ..loopback() };
    assert_eq!(slug(&egress().pooled(private), &name, LIMITS).await, "resolved-private-ip");
}

struct NoSecrets;

impl BodyGuard for NoSecrets {
    fn judge(&self, leaving: &OutgoingPart<'_>) -> Option<String> {
        let holds = leaving.bytes.windows(6).any(|window| window == b"secret");
        (holds && !matches!(leaving.part, RequestPart::Written)).then(|| "it holds a secret".to_owned())
    }
}

#[tokio::test]
async fn guard_sees_url_headers_and_body_before_the_pool_is_used() {
    let server = KeepAliveServer::start(|_, _| ok("here")).await;
    let client = egress().pooled(loopback()).with_guard(Arc::new(NoSecrets));
    whole(opened(&client, &server.url()).await.unwrap().body).await.unwrap();
    let plain = Request { method: "POST".into(), ..Request::get(server.url()) };
    for request in [
        Request { body: "a secret".into(), ..plain.clone() },
        Request { headers: vec![("x".into(), "secret".into())], ..plain.clone() },
        Request { url: format!("{}?k=secret", plain.url), ..plain.clone() },
    ] {
        let refused = client.open_stream(&request, LIMITS, &HopTrail::default()).await.unwrap_err();
        assert_eq!(refused.slug(), "content-refused");
    }
}

#[tokio::test]
async fn redirect_is_returned() {
    let server = TestServer::start(|_| redirect(307, "http://b.test/")).await;
    let response = opened(&egress().pooled(loopback()), &server.url("/")).await.unwrap();
    assert_eq!(response.status, 307);
    assert!(response.headers.contains(&("location".into(), "http://b.test/".into())));
}

#[tokio::test]
async fn slow_endless_and_compressed_bodies_are_errors() {
    let client = egress().pooled(loopback());
    let silent = TestServer::speaking(|stream, _| async move {
        tokio::time::sleep(Duration::from_mins(1)).await;
        drop(stream);
    })
    .await;
    let quick = StreamLimits { head: Duration::from_millis(100), idle: Duration::from_millis(100), ..LIMITS };
    assert_eq!(slug(&client, &silent.url("/"), quick).await, "response-headers-timeout");
    let stuck = TestServer::speaking(|mut stream, _| async move {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await;
        tokio::time::sleep(Duration::from_mins(1)).await;
    })
    .await;
    assert_eq!(slug(&client, &stuck.url("/"), quick).await, "response-body-timeout");
    let endless = TestServer::endless("HTTP/1.1 200 OK\r\n\r\n").await;
    let started = Instant::now();
    assert_eq!(slug(&client, &endless.url("/"), LIMITS).await, "response-body-too-large");
    assert!(started.elapsed() < Duration::from_secs(5));
    let packed = TestServer::start(|_| {
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx".to_vec()
    })
    .await;
    assert_eq!(slug(&client, &packed.url("/"), LIMITS).await, "unsupported-encoding");
    let truncated = TestServer::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec()).await;
    assert_eq!(slug(&client, &truncated.url("/"), LIMITS).await, "response-truncated");
}

/// Interim heads before a later response count as much as before the first.
#[tokio::test]
async fn heads_are_limited_on_a_reused_connection() {
    let server = KeepAliveServer::start(|_, request| {
        let interim =
            "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(if request == 0 { 1 } else { 1000 });
        [interim.into_bytes(), ok("here")].concat()
    })
    .await;
    let client = egress().pooled(loopback());
    assert_eq!(whole(opened(&client, &server.url()).await.unwrap().body).await.unwrap(), "here");
    assert_eq!(slug(&client, &server.url(), LIMITS).await, "response-headers-too-large");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn connection_that_the_server_closed_is_replaced() {
    // Each connection answers once and then closes without saying so.
    let server =
        KeepAliveServer::start(|_, request| if request == 0 { ok("here") } else { Vec::new() }).await;
    let closing = TestServer::start(|_| ok("here")).await;
    let client = egress().pooled(loopback());
    for _ in 0..3 {
        assert_eq!(whole(opened(&client, &closing.url("/")).await.unwrap().body).await.unwrap(), "here");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(closing.seen().len(), 3);
    // A server that closes after it received the request may have acted on it: no second attempt.
    whole(opened(&client, &server.url()).await.unwrap().body).await.unwrap();
    let lost = opened(&client, &server.url()).await.unwrap_err();
    assert!(!lost.was_not_sent(), "{lost}");
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn announced_idle_time_is_respected() {
    let short = KeepAliveServer::start(|_, _| {
        b"HTTP/1.1 200 OK\r\nkeep-alive: max=9, timeout=1\r\ncontent-length: 0\r\n\r\n".to_vec()
    })
    .await;
    let client = egress().pooled(loopback());
    for _ in 0..2 {
        whole(opened(&client, &short.url()).await.unwrap().body).await.unwrap();
    }
    assert_eq!(short.connections(), 2);
}

#[tokio::test]
async fn dropped_body_closes_the_connection() {
    let (sender, closed) = tokio::sync::oneshot::channel();
    let sender = std::sync::Mutex::new(Some(sender));
    let server = TestServer::speaking(move |mut stream, _| {
        let sender = sender.lock().unwrap().take();
        async move {
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n").await;
            let read = stream.read(&mut [0]).await;
            let _ = sender.unwrap().send(matches!(read, Ok(0) | Err(_)));
        }
    })
    .await;
    let mut response = opened(&egress().pooled(loopback()), &server.url("/")).await.unwrap();
    response.body.next().await.unwrap();
    drop(response);
    assert!(timeout(Duration::from_secs(5), closed).await.unwrap().unwrap());
}
