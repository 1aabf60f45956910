//! CONNECT tunnels and their SNI check.

use super::*;
use crate::{
    EgressMode, HostRule,
    proxy::client_hello::tests::{client_hello, client_hello_of_rustls, name_extension},
};

/// Sends back and records everything that it receives.
struct EchoServer {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl EchoServer {
    async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let noted = Arc::clone(&noted);
                tokio::spawn(async move {
                    let mut chunk = [0; 4096];
                    while let Ok(count @ 1..) = stream.read(&mut chunk).await {
                        noted.lock().unwrap().extend_from_slice(&chunk[..count]);
                        let _ = stream.write_all(&chunk[..count]).await;
                    }
                });
            }
        });
        Self { address, heard, task }
    }

    fn port(&self) -> u16 {
        self.address.port()
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Opens a tunnel that must be granted.
pub async fn tunnel(jail: &Jail, to: &str) -> TcpStream {
    let mut stream = jail.connect().await;
    stream.write_all(format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\n\r\n").as_bytes()).await.unwrap();
    let mut granted = [0; ESTABLISHED.len()];
    stream.read_exact(&mut granted).await.unwrap();
    assert_eq!(&granted, ESTABLISHED);
    stream
}

const ESTABLISHED: &[u8; 39] = b"HTTP/1.1 200 Connection established\r\n\r\n";

#[tokio::test]
async fn tunnel_supports_half_close() {
    let echo = EchoServer::start().await;
    let jail = Jail::new(open(), tunnelling(echo.port(), Carries::Anything));
    let mut stream = tunnel(&jail, &format!("a.test:{}", echo.port())).await;
    stream.write_all(&vec![7; 100_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(hear(&mut stream).await.len(), 100_000);
    drop(stream);
    let report = jail.proxy.finish().await;
    let [exchange] = &report.exchanges[..] else { panic!("{report:?}") };
    assert_eq!((exchange.kind, exchange.outcome.code()), (ExchangeKind::Connect, "ok"));
    assert_eq!((exchange.host.as_str(), exchange.port), ("a.test", Some(echo.port())));
    assert_eq!(exchange.bytes_down, 100_000);
    assert!(exchange.bytes_up > 100_000, "the head counts too");
}

/// Opens a tunnel to this host with these first bytes. Returns the received bytes and the recorded outcome.
async fn fate(host: &str, first: &[u8]) -> (Vec<u8>, String) {
    let echo = EchoServer::start().await;
    let limits = ProxyLimits {
        head_time: Duration::from_millis(500),
        idle: Duration::from_millis(500),
        ..tunnelling(echo.port(), Carries::Tls)
    };
    let rules = EgressRules {
        hosts: vec![HostRule::exact(host.into())],
        mode: EgressMode::Allowlist,
        guard_private: crate::Guard::Off,
        ..EgressRules::blocked()
    };
    let jail = Jail::new(rules, limits);
    let mut stream = tunnel(&jail, &format!("{host}:{}", echo.port())).await;
    stream.write_all(first).await.unwrap();
    let _ = stream.shutdown().await;
    let mut heard = Vec::new();
    let _ = timeout(Duration::from_mins(1), stream.read_to_end(&mut heard))
        .await
        .expect("the tunnel must end before the test timeout");
    let recorded = jail.recorded().await.pop().unwrap();
    if !recorded.ends_with(" ok") {
        assert_eq!(*echo.heard.lock().unwrap(), Vec::<u8>::new(), "nothing reaches the server: {recorded}");
        assert_eq!(heard, [21, 3, 3, 0, 2, 2, 49], "the client is recorded in TLS: {recorded}");
    }
    (heard, recorded)
}

#[tokio::test]
async fn matching_sni_is_allowed() {
    let hello = client_hello_of_rustls("a.test");
    assert_eq!(fate("a.test", &hello).await, (hello, "connect CONNECT a.test ok".into()));
    let hello = client_hello(&name_extension(b"A.TEST"));
    assert_eq!(fate("a.test", &hello).await.0, hello);
    let hello = client_hello_of_rustls("127.0.0.1");
    assert_eq!(fate("127.0.0.1", &hello).await.0, hello);
}

#[tokio::test]
async fn other_sni_is_refused() {
    let hidden = [name_extension(b"a.test"), vec![0xfe, 0x0d, 0, 1, 0]].concat();
    for (host, first, code) in [
        ("a.test", client_hello_of_rustls("b.test"), "tunnel-name-mismatch"),
        ("a.test", client_hello(&name_extension(b"a.test.")), "tunnel-name-mismatch"),
        ("a.test", client_hello(&name_extension(b"x.a.test")), "tunnel-name-mismatch"),
        ("a.test", client_hello(&[]), "tunnel-name-mismatch"),
        ("127.0.0.1", client_hello_of_rustls("b.test"), "tunnel-name-mismatch"),
        ("127.0.0.1", client_hello(&name_extension(b"127.0.0.1")), "tunnel-name-mismatch"),
        ("a.test", client_hello(&hidden), "tunnel-name-hidden"),
        ("a.test", b"GET / HTTP/1.1\r\nHost: b.test\r\n\r\n".to_vec(), "tunnel-not-tls"),
        ("a.test", b"SSH-2.0-x\r\n".to_vec(), "tunnel-not-tls"),
        ("a.test", client_hello_of_rustls("a.test")[..50].to_vec(), "tunnel-not-tls"),
        ("a.test", Vec::new(), "tunnel-not-tls"),
    ] {
        let (_, recorded) = fate(host, &first).await;
        assert_eq!(recorded, format!("connect CONNECT {host} {code}"));
    }
}

#[tokio::test]
async fn missing_client_hello_is_a_timeout() {
    let echo = EchoServer::start().await;
    let limits =
        ProxyLimits { head_time: Duration::from_millis(50), ..tunnelling(echo.port(), Carries::Tls) };
    let jail = Jail::new(open(), limits);
    let mut stream = tunnel(&jail, &format!("a.test:{}", echo.port())).await;
    hear(&mut stream).await;
    assert_eq!(jail.recorded().await, ["connect CONNECT a.test tunnel-not-tls"]);
}

/// Bytes after CONNECT are part of the tunnel, never a second request.
#[tokio::test]
async fn bytes_after_connect_belong_to_the_tunnel() {
    let echo = EchoServer::start().await;
    let jail = Jail::new(open(), tunnelling(echo.port(), Carries::Anything));
    let mut stream = jail.connect().await;
    let second = "GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n";
    let first = format!("CONNECT a.test:{} HTTP/1.1\r\n\r\n{second}", echo.port());
    stream.write_all(first.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(hear(&mut stream).await.ends_with(second));
    assert_eq!(jail.recorded().await, ["connect CONNECT a.test ok"]);
}

#[tokio::test]
async fn default_tunnels_reach_port_443_only() {
    for port in [80, 22, 25, 8443] {
        let jail = Jail::new(open(), ProxyLimits::default());
        let answer = jail.say(format!("CONNECT a.test:{port} HTTP/1.1\r\n\r\n")).await;
        assert_eq!(header(&answer, "x-toolgate-refusal"), Some("port-blocked"), "{port}");
        assert!(body(&answer).contains(&format!("port {port} are not allowed, only to 443")), "{answer}");
    }
}
