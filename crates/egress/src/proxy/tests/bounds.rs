//! Commands that exceed their limits.

use super::{tunnels::tunnel, *};

fn outcomes(report: &ProxyReport) -> Vec<&'static str> {
    report.exchanges.iter().map(|exchange| exchange.outcome.code()).collect()
}

#[tokio::test]
async fn bytes_are_counted_over_all_connections() {
    let server = TestServer::start(|_| ok(&"x".repeat(1000))).await;
    let request = get(&server, "");
    let up = request.len() as u64;
    let jail = Jail::new(loopback(), ProxyLimits { bytes_up: up * 2 + 1, ..ProxyLimits::default() });
    assert!(jail.say(&request).await.starts_with("HTTP/1.1 200 "));
    assert!(jail.say(&request).await.starts_with("HTTP/1.1 200 "));
    let answer = jail.say(&request).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("traffic-limit-reached"));
    assert_eq!(server.seen().len(), 2);

    let jail = Jail::new(loopback(), ProxyLimits { bytes_down: 1500, ..ProxyLimits::default() });
    assert!(jail.say(&request).await.ends_with(&"x".repeat(1000)));
    let answer = jail.say(&request).await;
    assert!(answer.len() < 1000, "{answer}");
    assert_eq!(outcomes(&jail.proxy.finish().await), ["ok", "traffic-limit-reached"]);
}

#[tokio::test]
async fn body_is_counted_before_it_is_read() {
    let server = TestServer::start(|_| ok("")).await;
    let jail = Jail::new(loopback(), ProxyLimits { bytes_up: 1000, ..ProxyLimits::default() });
    let at = server.address;
    let head = |framing: &str| format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n{framing}\r\n");
    for request in [head("Content-Length: 1000\r\n"), head("Transfer-Encoding: chunked\r\n") + "3e8\r\n"] {
        let answer = jail.say(request).await;
        assert_eq!(header(&answer, "x-toolgate-refusal"), Some("traffic-limit-reached"), "{answer}");
    }
    let jail = Jail::new(loopback(), ProxyLimits { bytes_up: u64::MAX, ..ProxyLimits::default() });
    for request in [
        head("Content-Length: 18446744073709551615\r\n"),
        head("Content-Length: 10485761\r\n"),
        head("Transfer-Encoding: chunked\r\n") + "ffffffff\r\n",
    ] {
        let answer = jail.say(request).await;
        assert_eq!(header(&answer, "x-toolgate-refusal"), Some("request-body-too-large"), "{answer}");
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn tunnel_is_closed_at_the_traffic_limit() {
    let server =
        TestServer::speaking(
            |mut stream, _| async move { while stream.write_all(&[7; 4096]).await.is_ok() {} },
        )
        .await;
    let port = server.address.port();
    let jail = Jail::new(open(), ProxyLimits { bytes_down: 50_000, ..tunnelling(port, Carries::Anything) });
    let mut stream = tunnel(&jail, &format!("a.test:{port}")).await;
    stream.write_all(b"\r\n\r\n").await.unwrap();
    assert!(hear(&mut stream).await.chars().count() <= 50_000);
    let report = jail.proxy.finish().await;
    assert_eq!(outcomes(&report), ["traffic-limit-reached"]);
    assert!(report.exchanges[0].bytes_down <= 50_000);
}

#[tokio::test]
async fn heads_are_limited_in_size_and_time() {
    let limits = ProxyLimits { head_time: Duration::from_millis(100), ..ProxyLimits::default() };
    let jail = Jail::new(open(), limits);
    let long = format!("GET http://a.test/ HTTP/1.1\r\nX: {}", "x".repeat(40_000));
    let answer = jail.say(long).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("request-headers-too-large"));
    let answer = jail.say("GET http://a.test/ HTT").await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("request-timeout"));
}

#[tokio::test]
async fn endless_interim_heads_are_refused() {
    let server = TestServer::endless("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n").await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let answer = jail.say(get(&server, "")).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("response-headers-too-large"), "{answer}");
    assert_eq!(outcomes(&jail.proxy.finish().await), ["response-headers-too-large"]);
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let (server, at) = silent_server().await;
    let limits = ProxyLimits { idle: Duration::from_millis(100), ..tunnelling(at.port(), Carries::Anything) };
    let jail = Jail::new(open(), limits);
    hear(&mut tunnel(&jail, &at.to_string()).await).await;
    let answer = jail.say(format!("GET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n")).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("response-headers-timeout"));
    let answer =
        jail.say(format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\nContent-Length: 9\r\n\r\n")).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("connection-idle"));
    let recorded = outcomes(&jail.proxy.finish().await);
    assert_eq!(recorded, ["connection-idle", "response-headers-timeout", "connection-idle"]);
    drop(server);
}

/// Accepts connections and never sends anything.
async fn silent_server() -> (JoinHandle<()>, SocketAddr) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        let mut kept = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            kept.push(stream);
        }
    });
    (task, address)
}

#[tokio::test]
async fn connection_lifetime_is_limited() {
    let (_server, at) = silent_server().await;
    let limits =
        ProxyLimits { lifetime: Duration::from_millis(100), ..tunnelling(at.port(), Carries::Anything) };
    let jail = Jail::new(open(), limits);
    hear(&mut tunnel(&jail, &at.to_string()).await).await;
    assert_eq!(jail.recorded().await, ["connect CONNECT 127.0.0.1 request-timeout"]);
}

#[tokio::test]
async fn connections_are_limited() {
    let server = TestServer::start(|_| ok("here")).await;
    let limits = ProxyLimits { connections_at_once: 1, connections: 2, ..ProxyLimits::default() };
    let jail = Jail::new(loopback(), limits);
    // The second connection waits until the first has sent its request.
    let (mut first, mut second) = (jail.connect().await, jail.connect().await);
    second.write_all(get(&server, "").as_bytes()).await.unwrap();
    first.write_all(get(&server, "X: first\r\n").as_bytes()).await.unwrap();
    assert_eq!(body(&hear(&mut first).await), "here");
    drop(first);
    assert_eq!(body(&hear(&mut second).await), "here");
    assert_eq!(header(&server.seen()[0], "x"), Some("first"));
    let answer = jail.say(get(&server, "")).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("too-many-connections"));
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn records_are_limited_per_group() {
    let server = TestServer::start(|_| ok("")).await;
    let jail = Jail::new(loopback(), ProxyLimits { records: 2, ..ProxyLimits::default() });
    for _ in 0..5 {
        jail.say("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    }
    for _ in 0..3 {
        jail.say(get(&server, "")).await;
    }
    let report = jail.proxy.finish().await;
    assert_eq!(outcomes(&report), ["host-not-in-allowlist", "host-not-in-allowlist", "ok", "ok"]);
    assert_eq!(report.dropped, 4);
}

#[tokio::test]
async fn open_exchange_is_reported_as_stopped() {
    let (_server, at) = silent_server().await;
    let jail = Jail::new(open(), tunnelling(at.port(), Carries::Anything));
    let mut stream = tunnel(&jail, &at.to_string()).await;
    assert_eq!(jail.recorded().await, ["connect CONNECT 127.0.0.1 stopped"]);
    assert_eq!(hear(&mut stream).await, "");
}

/// The report is available after the proxy is dropped and includes open tunnels.
#[tokio::test]
async fn witness_reports_open_exchanges_after_the_proxy() {
    let (_server, at) = silent_server().await;
    let jail = Jail::new(open(), tunnelling(at.port(), Carries::Anything));
    let witness = jail.proxy.witness();
    assert_eq!(witness(), ProxyReport::default());
    let _stream = tunnel(&jail, &at.to_string()).await;
    let report = witness();
    let [exchange] = &report.exchanges[..] else { panic!("{report:?}") };
    assert_eq!((exchange.kind, exchange.outcome), (ExchangeKind::Connect, ExchangeOutcome::Stopped));
    assert_eq!((exchange.host.as_str(), exchange.port), ("127.0.0.1", Some(at.port())));
    drop(jail);
    assert_eq!(outcomes(&witness()), ["stopped"]);
}

#[tokio::test]
async fn dropping_the_proxy_closes_everything() {
    let (_server, at) = silent_server().await;
    let jail = Jail::new(open(), tunnelling(at.port(), Carries::Anything));
    let mut stream = tunnel(&jail, &at.to_string()).await;
    let (http, dns) = (jail.http, jail.dns);
    drop(jail);
    assert_eq!(hear(&mut stream).await, "");
    assert!(TcpStream::connect(http).await.is_err());
    // Its socket is closed, so the address is free again.
    assert!(UdpSocket::bind(dns).is_ok());
}
