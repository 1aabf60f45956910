mod attacks;
mod bounds;
mod gateway;
mod methods;
mod name_server;
mod tunnels;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::Mutex,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;
use crate::{
    Listeners, Resolve, Resolving,
    guard::tests::WordGuard,
    testing::{TestServer, egress, header, limits, loopback, ok, open, some_roots},
};

/// A proxy as in a sandbox, but on this machine's loopback.
struct Jail {
    proxy: Proxy,
    http: SocketAddr,
    dns: SocketAddr,
}

impl Jail {
    fn new(rules: EgressRules, limits: ProxyLimits) -> Self {
        Self::with(&egress(), rules, limits)
    }

    fn with(egress: &Egress, rules: EgressRules, limits: ProxyLimits) -> Self {
        let http = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let dns = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (http_at, dns_at) = (http.local_addr().unwrap(), dns.local_addr().unwrap());
        let proxy = Proxy::serve(egress, rules, limits, http, dns).unwrap();
        Self { proxy, http: http_at, dns: dns_at }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.http).await.unwrap()
    }

    /// Sends these bytes and returns the whole response.
    async fn say(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // The refusal may arrive before everything is sent.
        let _ = stream.write_all(bytes.as_ref()).await;
        hear(&mut stream).await
    }

    /// Kind, method, host and outcome of every exchange.
    async fn recorded(self) -> Vec<String> {
        let recorded = |exchange: Exchange| {
            let Exchange { kind, method, host, outcome, .. } = exchange;
            format!("{} {method} {host} {}", kind.word(), outcome.code())
        };
        self.proxy.finish().await.exchanges.into_iter().map(recorded).collect()
    }
}

/// Reads until the peer closes, with a timeout for the test.
async fn hear(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let heard = timeout(Duration::from_mins(1), stream.read_to_end(&mut bytes)).await;
    // A reset also ends the stream.
    let _ = heard.expect("the connection must end before the test timeout");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Allows tunnels to this port.
fn tunnelling(port: u16, carries: Carries) -> ProxyLimits {
    ProxyLimits { tunnels: vec![Tunnel { port, carries }], ..ProxyLimits::default() }
}

fn get(server: &TestServer, headers: &str) -> String {
    format!("GET {} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", server.url("/x?y=1"), server.address)
}

#[tokio::test]
async fn plain_request_is_forwarded_and_recorded() {
    let server = TestServer::start(|_| {
        b"HTTP/1.1 200 OK\r\nX-Theirs: 1\r\nConnection: x-hop\r\nX-Hop: 1\r\nX-Toolgate-Refusal: fake\r\n\
          Proxy-Authenticate: Basic\r\nContent-Length: 5\r\n\r\nhello"
            .to_vec()
    })
    .await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let hops = "Proxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\nConnection: x-mine, close\r\n\
                X-Mine: 1\r\nTE: trailers\r\nUpgrade: h2c\r\nAccept-Encoding: gzip\r\nX-Yours: 2\r\n";
    let answer = jail.say(get(&server, hops)).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert_eq!(body(&answer), "hello");
    assert_eq!((header(&answer, "x-theirs"), header(&answer, "connection")), (Some("1"), Some("close")));
    for name in ["x-hop", "x-toolgate-refusal", "proxy-authenticate"] {
        assert_eq!(header(&answer, name), None, "{name}");
    }
    let [seen] = &server.seen()[..] else { panic!("expected one request") };
    assert!(seen.starts_with("GET /x?y=1 HTTP/1.1\r\n"), "{seen}");
    assert_eq!(header(seen, "host"), Some(server.address.to_string().as_str()));
    assert_eq!((header(seen, "accept-encoding"), header(seen, "x-yours")), (Some("gzip"), Some("2")));
    for name in ["proxy-authorization", "proxy-connection", "x-mine", "te", "upgrade"] {
        assert_eq!(header(seen, name), None, "{name}");
    }
    let report = jail.proxy.finish().await;
    let [exchange] = &report.exchanges[..] else { panic!("{report:?}") };
    assert_eq!((exchange.kind, exchange.outcome), (ExchangeKind::Http, ExchangeOutcome::Ok));
    assert_eq!((exchange.method.as_str(), exchange.host.as_str()), ("GET", "127.0.0.1"));
    assert_eq!(exchange.port, Some(server.address.port()));
    assert_eq!(exchange.bytes_up, get(&server, hops).len() as u64);
    assert_eq!(exchange.bytes_down, answer.len() as u64);
    assert_eq!(report.dropped, 0);
}

#[tokio::test]
async fn bodies_are_forwarded_in_every_framing() {
    let server = TestServer::start(|request| ok(body(request))).await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let head = |method: &str, headers: &str| {
        format!("{method} {} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", server.url("/"), server.address)
    };
    for request in [
        head("POST", "Content-Length: 5\r\n") + "hello",
        head("GET", "Content-Length: 5\r\n") + "hello",
        head("PUT", "Transfer-Encoding: chunked\r\n") + "3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n",
        // Bytes after the body are ignored.
        head("POST", "Content-Length: 5\r\n") + "helloGET http://a.test/ HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(body(&jail.say(&request).await), "hello", "{request}");
    }
    assert_eq!(server.seen().len(), 4);
    assert!(server.seen().iter().all(|seen| header(seen, "content-length") == Some("5")));
}

#[tokio::test]
async fn expect_100_is_answered_or_refused() {
    let server = TestServer::start(|request| ok(body(request))).await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let mut stream = jail.connect().await;
    let head = |host: &str| {
        format!(
            "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
        )
    };
    stream.write_all(head(&server.address.to_string()).as_bytes()).await.unwrap();
    let mut invitation = [0; 25];
    stream.read_exact(&mut invitation).await.unwrap();
    assert_eq!(&invitation, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hi").await.unwrap();
    assert_eq!(body(&hear(&mut stream).await), "hi");
    assert!(jail.say(head("a.test")).await.starts_with("HTTP/1.1 403 "));
}

#[tokio::test]
async fn response_framing_is_kept() {
    let server = TestServer::start(|request| match request.split(' ').next() {
        Some("HEAD") => b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n".to_vec(),
        Some("PUT") => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        Some("POST") => b"HTTP/1.1 200 OK\r\n\r\nuntil the end".to_vec(),
        _ => b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nX: 1\r\n\r\n"
            .to_vec(),
    })
    .await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let ask = |method: &str, version: &str| {
        format!("{method} {} HTTP/{version}\r\nHost: {}\r\n\r\n", server.url("/"), server.address)
    };
    let answer = jail.say(ask("HEAD", "1.1")).await;
    assert_eq!((header(&answer, "content-length"), body(&answer)), (Some("99"), ""));
    let answer = jail.say(ask("PUT", "1.1")).await;
    assert!(answer.starts_with("HTTP/1.1 204 ") && body(&answer).is_empty(), "{answer}");
    let answer = jail.say(ask("POST", "1.1")).await;
    assert_eq!(
        (header(&answer, "transfer-encoding"), body(&answer)),
        (Some("chunked"), "d\r\nuntil the end\r\n0\r\n\r\n")
    );
    let answer = jail.say(ask("GET", "1.0")).await;
    assert_eq!((header(&answer, "transfer-encoding"), body(&answer)), (None, "hello"));
}

/// An interrupted response must not look complete.
#[tokio::test]
async fn truncated_response_stays_truncated() {
    let server = TestServer::start(|_| {
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec()
    });
    let server = server.await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let answer = jail.say(get(&server, "")).await;
    assert!(answer.ends_with("hello\r\n"), "{answer}");
    assert_eq!(jail.recorded().await, ["http GET 127.0.0.1 response-truncated"]);
}

#[tokio::test]
async fn network_failures_are_reported_as_failures() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let jail = Jail::new(loopback(), tunnelling(gone.port(), Carries::Anything));
    for request in [
        format!("GET http://{gone}/ HTTP/1.1\r\nHost: {gone}\r\n\r\n"),
        format!("CONNECT {gone} HTTP/1.1\r\n\r\n"),
    ] {
        let answer = jail.say(request).await;
        assert!(answer.starts_with("HTTP/1.1 502 "), "{answer}");
        assert!(body(&answer).starts_with("toolgate: failed: connect-failed\n"), "{answer}");
    }
    let nonsense = TestServer::start(|_| b"SSH-2.0-x\r\n".to_vec()).await;
    let answer = jail.say(get(&nonsense, "")).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("invalid-response"));
}

#[tokio::test]
async fn refusal_names_the_remedy() {
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let answer = jail.say("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 toolgate refused: host-not-in-allowlist\r\n"), "{answer}");
    assert_eq!(header(&answer, "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("host-not-in-allowlist"));
    assert_eq!(
        body(&answer),
        "toolgate: refused: host-not-in-allowlist\n\
         host `a.test` is not in the allow list; add it there (`network.allowedHosts`)\n\
         this is a policy decision, not a network failure; the proxy cannot be bypassed\n"
    );
}

#[tokio::test]
async fn guard_sees_every_part_of_a_plain_request() {
    let server = TestServer::start(|_| ok("")).await;
    let guarded = egress().with_guard(Arc::new(WordGuard));
    let jail = Jail::with(&guarded, loopback(), ProxyLimits::default());
    let host = server.address;
    for request in [
        format!("GET http://{host}/?s3cret HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nCookie: s3cret\r\n\r\n"),
        format!("s3cret http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nX-s3cret: 1\r\n\r\n"),
        format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nAccept-Encoding: s3cret\r\n\r\n"),
        format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\nContent-Length: 6\r\n\r\ns3cret"),
        format!(
            "POST http://{host}/ HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\ns3c\r\n3\r\nret\r\n0\r\n\r\n"
        ),
    ] {
        let answer = jail.say(&request).await;
        assert_eq!(header(&answer, "x-toolgate-refusal"), Some("content-refused"), "{request}");
    }
    let connect = "CONNECT s3cret.test:443 HTTP/1.1\r\n\r\n";
    assert_eq!(header(&guarded_open(connect).await, "x-toolgate-refusal"), Some("content-refused"));
    assert_eq!(server.seen(), Vec::<String>::new());
    assert!(jail.say(get(&server, "")).await.starts_with("HTTP/1.1 200 "));
}

async fn guarded_open(request: &str) -> String {
    let guarded = egress().with_guard(Arc::new(WordGuard));
    Jail::with(&guarded, open(), ProxyLimits::default()).say(request).await
}

#[test]
fn proxy_needs_a_runtime() {
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let dns = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(Proxy::serve(&egress(), open(), ProxyLimits::default(), http, dns).is_err());
}

/// Records the names that it resolves, all to the same addresses.
struct Listener {
    addresses: &'static [&'static str],
    heard: Arc<Mutex<Vec<String>>>,
}

impl Resolve for Listener {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        self.heard.lock().unwrap().push(name.to_owned());
        let addresses = self.addresses.iter().map(|address| address.parse().unwrap()).collect();
        Box::pin(async { Ok(addresses) })
    }
}

fn listening(addresses: &'static [&'static str]) -> (Egress, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = Listener { addresses, heard: Arc::clone(&heard) };
    (Egress::new(Arc::new(listener), &some_roots(), limits(), Listeners::of_this_process()).unwrap(), heard)
}

/// Never dialled; a test that connects to it has failed.
const PUBLIC: &[&str] = &["8.8.8.8", "2000::8"];
const HERE: &[&str] = &["127.0.0.1"];
