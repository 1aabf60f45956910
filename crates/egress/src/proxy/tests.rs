mod attacks;
mod bounds;
mod gateway;
mod methods;
mod names;
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
    guard::tests::Watchman,
    testing::{Server, egress, header, limits, loopback, ok, open, some_roots},
};

/// A proxy as a jail would have it, on this machine's loopback.
struct Jail {
    proxy: Proxy,
    http: SocketAddr,
    dns: SocketAddr,
}

impl Jail {
    fn new(rules: Rules, limits: ProxyLimits) -> Self {
        Self::with(&egress(), rules, limits)
    }

    fn with(egress: &Egress, rules: Rules, limits: ProxyLimits) -> Self {
        let http = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let dns = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (http_at, dns_at) = (http.local_addr().unwrap(), dns.local_addr().unwrap());
        let proxy = Proxy::serve(egress, rules, limits, http, dns).unwrap();
        Self { proxy, http: http_at, dns: dns_at }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.http).await.unwrap()
    }

    /// Says these bytes and hears everything that comes back.
    async fn say(&self, bytes: impl AsRef<[u8]>) -> String {
        let mut stream = self.connect().await;
        // A refusal may come before everything is said.
        let _ = stream.write_all(bytes.as_ref()).await;
        hear(&mut stream).await
    }

    /// Kind, method, host and outcome of everything that passed.
    async fn told(self) -> Vec<String> {
        let told = |exchange: Exchange| {
            let Exchange { kind, method, host, outcome, .. } = exchange;
            format!("{} {method} {host} {}", kind.word(), outcome.code())
        };
        self.proxy.finish().await.exchanges.into_iter().map(told).collect()
    }
}

/// Everything until the other side closes, guarded against hanging for ever.
async fn hear(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let heard = timeout(Duration::from_mins(1), stream.read_to_end(&mut bytes)).await;
    // A reset ends it too.
    let _ = heard.expect("a connection ends by itself");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)
}

/// Everything may pass but metadata, and tunnels to this port carry anything.
fn tunnelling(port: u16, carries: Carries) -> ProxyLimits {
    ProxyLimits { tunnels: vec![Tunnel { port, carries }], ..ProxyLimits::default() }
}

fn get(server: &Server, headers: &str) -> String {
    format!("GET {} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", server.url("/x?y=1"), server.address)
}

#[tokio::test]
async fn a_plain_request_passes_and_is_told() {
    let server = Server::start(|_| {
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
    let [seen] = &server.seen()[..] else { panic!("one request comes") };
    assert!(seen.starts_with("GET /x?y=1 HTTP/1.1\r\n"), "{seen}");
    assert_eq!(header(seen, "host"), Some(server.address.to_string().as_str()));
    assert_eq!((header(seen, "accept-encoding"), header(seen, "x-yours")), (Some("gzip"), Some("2")));
    for name in ["proxy-authorization", "proxy-connection", "x-mine", "te", "upgrade"] {
        assert_eq!(header(seen, name), None, "{name}");
    }
    let report = jail.proxy.finish().await;
    let [exchange] = &report.exchanges[..] else { panic!("{report:?}") };
    assert_eq!((exchange.kind, exchange.outcome), (ExchangeKind::Http, Outcome::Ok));
    assert_eq!((exchange.method.as_str(), exchange.host.as_str()), ("GET", "127.0.0.1"));
    assert_eq!(exchange.port, Some(server.address.port()));
    assert_eq!(exchange.bytes_up, get(&server, hops).len() as u64);
    assert_eq!(exchange.bytes_down, answer.len() as u64);
    assert_eq!(report.dropped, 0);
}

#[tokio::test]
async fn bodies_pass_in_every_framing() {
    let server = Server::start(|request| ok(body(request))).await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let head = |method: &str, headers: &str| {
        format!("{method} {} HTTP/1.1\r\nHost: {}\r\n{headers}\r\n", server.url("/"), server.address)
    };
    for request in [
        head("POST", "Content-Length: 5\r\n") + "hello",
        head("GET", "Content-Length: 5\r\n") + "hello",
        head("PUT", "Transfer-Encoding: chunked\r\n") + "3\r\nhel\r\n02\r\nlo\r\n0\r\n\r\n",
        // What follows the body is not looked at.
        head("POST", "Content-Length: 5\r\n") + "helloGET http://a.test/ HTTP/1.1\r\n\r\n",
    ] {
        assert_eq!(body(&jail.say(&request).await), "hello", "{request}");
    }
    assert_eq!(server.seen().len(), 4);
    assert!(server.seen().iter().all(|seen| header(seen, "content-length") == Some("5")));
}

#[tokio::test]
async fn whoever_waits_for_leave_to_send_gets_it_or_a_refusal() {
    let server = Server::start(|request| ok(body(request))).await;
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
async fn answers_keep_their_shape() {
    let server = Server::start(|request| match request.split(' ').next() {
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

/// A server that breaks off must not look as if it had finished.
#[tokio::test]
async fn a_broken_answer_stays_broken() {
    let server =
        Server::start(|_| b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n".to_vec());
    let server = server.await;
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let answer = jail.say(get(&server, "")).await;
    assert!(answer.ends_with("hello\r\n"), "{answer}");
    assert_eq!(jail.told().await, ["http GET 127.0.0.1 response-truncated"]);
}

#[tokio::test]
async fn the_world_failing_is_told_as_such() {
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
    let nonsense = Server::start(|_| b"SSH-2.0-x\r\n".to_vec()).await;
    let answer = jail.say(get(&nonsense, "")).await;
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("invalid-response"));
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let jail = Jail::new(loopback(), ProxyLimits::default());
    let answer = jail.say("GET http://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 403 toolgate refused: host-not-in-allowlist\r\n"), "{answer}");
    assert_eq!(header(&answer, "content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(header(&answer, "x-toolgate-refusal"), Some("host-not-in-allowlist"));
    assert_eq!(
        body(&answer),
        "toolgate: refused: host-not-in-allowlist\n\
         host `a.test` is not in the allow list; add it there (`network.allowedHosts`)\n\
         this is the decision of a policy and no fault of the network; there is no way around the proxy\n"
    );
}

#[tokio::test]
async fn the_guard_sees_what_a_plain_request_carries() {
    let server = Server::start(|_| ok("")).await;
    let guarded = egress().with_guard(Arc::new(Watchman));
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
    let guarded = egress().with_guard(Arc::new(Watchman));
    Jail::with(&guarded, open(), ProxyLimits::default()).say(request).await
}

#[test]
fn there_is_no_proxy_without_a_runtime() {
    let http = TcpListener::bind("127.0.0.1:0").unwrap();
    let dns = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(Proxy::serve(&egress(), open(), ProxyLimits::default(), http, dns).is_err());
}

/// Remembers which names it was asked for, and says that all have the same addresses.
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

/// Never dialled: a test that gets so far has failed.
const PUBLIC: &[&str] = &["8.8.8.8", "2000::8"];
const HERE: &[&str] = &["127.0.0.1"];
