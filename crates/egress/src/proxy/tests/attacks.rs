//! Malicious commands.

use proptest::prelude::*;

use super::*;
use crate::{EgressMode, HostRule};

/// Sends each request through a new proxy and expects a refusal with this code. The server must receive nothing.
async fn refused(
    rules: &EgressRules,
    limits: &ProxyLimits,
    server: &TestServer,
    requests: &[(String, &str)],
) {
    for (request, code) in requests {
        let jail = Jail::new(rules.clone(), limits.clone());
        let answer = jail.say(request).await;
        assert_eq!(header(&answer, "x-toolgate-refusal"), Some(*code), "{request}\n{answer}");
        let [recorded] = &jail.recorded().await[..] else { panic!("expected one exchange: {request}") };
        assert!(recorded.ends_with(&format!(" {code}")), "{recorded}");
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

fn listed(host: &str) -> EgressRules {
    EgressRules {
        mode: EgressMode::Allowlist,
        hosts: vec![HostRule::exact(host.into())],
        ..EgressRules::blocked()
    }
}

fn plain(url: &str, host: &str) -> String {
    format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n")
}

#[tokio::test]
async fn proxy_refuses_the_same_targets_as_fetch() {
    let server = TestServer::start(|_| ok("secret")).await;
    let port = server.address.port();
    let limits = tunnelling(port, Carries::Anything);
    let both = |host: &str, code: &'static str| {
        let authority = format!("{host}:{port}");
        [
            (plain(&format!("http://{authority}/"), &authority), code),
            (format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n"), code),
        ]
    };
    refused(&EgressRules::blocked(), &limits, &server, &both("a.test", "network-blocked")).await;
    refused(&listed("b.test"), &limits, &server, &both("a.test", "host-not-in-allowlist")).await;
    refused(&listed("a.test"), &limits, &server, &both("a.test", "resolved-private-ip")).await;
    let strict = EgressRules { mode: EgressMode::Strict, ..EgressRules::blocked() };
    for host in
        ["127.0.0.1", "127.1", "0x7f000001", "2130706433", "0177.0.0.1", "[::1]", "[::ffff:127.0.0.1]"]
    {
        refused(&strict, &limits, &server, &both(host, "literal-private-ip")).await;
    }
    for host in ["169.254.169.254", "0xa9fea9fe", "metadata.google.internal", "[fd00:ec2::254]"] {
        refused(&open(), &limits, &server, &both(host, "metadata-endpoint")).await;
    }
    let blocked = EgressRules { blocked_hosts: vec![HostRule::exact("127.0.0.1".into())], ..open() };
    refused(&blocked, &limits, &server, &both("a.test", "host-blocked")).await;
    let blocked = EgressRules { blocked_ports: vec![port], ..open() };
    refused(&blocked, &limits, &server, &both("a.test", "port-blocked")).await;
    refused(&open(), &limits, &server, &both("unknown.test", "dns-resolution-failed")).await;
    refused(&open(), &limits, &server, &both("nothing.test", "dns-no-addresses")).await;
    refused(&open(), &limits, &server, &both("u:pw@a.test", "userinfo-in-url")).await;
}

#[tokio::test]
async fn invalid_targets_are_refused() {
    let server = TestServer::start(|_| ok("secret")).await;
    let (at, port) = (server.address, server.address.port());
    let connect = |target: &str| format!("CONNECT {target} HTTP/1.1\r\n\r\n");
    refused(
        &open(),
        &tunnelling(port, Carries::Anything),
        &server,
        &[
            (plain("/", &at.to_string()), "invalid-request"),
            (plain("*", &at.to_string()), "invalid-request"),
            (plain(&at.to_string(), &at.to_string()), "invalid-request"),
            (plain(&format!("https://{at}/"), &at.to_string()), "unsupported-scheme"),
            (plain("file:///etc/passwd", "a.test"), "unsupported-scheme"),
            (plain(&format!("http://{at}/#x"), &at.to_string()), "invalid-request"),
            (plain("http:///x", "a.test"), "invalid-request"),
            (plain("http://a.test:0/", "a.test"), "port-blocked"),
            (plain(&format!("http://{at}/{}", "x".repeat(20_000)), &at.to_string()), "url-too-long"),
            (format!("TRACE http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"), "forbidden-method"),
            (format!("connect http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"), "forbidden-method"),
            (connect("127.0.0.1"), "invalid-request"),
            (connect("127.0.0.1:"), "invalid-request"),
            (connect("127.0.0.1:http"), "invalid-request"),
            (connect(&format!("http://{at}")), "invalid-url"),
            (connect(&format!("a.test/?:{port}")), "invalid-url"),
            (connect(&format!("a%2etest:{port}")), "invalid-url"),
            (connect(&format!("a.test\\x:{port}")), "invalid-url"),
            (connect(&format!("[fe80::1%25lo]:{port}")), "invalid-url"),
            (connect(&format!(":{port}")), "missing-host"),
            (connect("a.test:0"), "port-blocked"),
            (connect("a.test:65536"), "invalid-url"),
            (connect("a.test:22"), "port-blocked"),
        ],
    )
    .await;
}

#[tokio::test]
async fn request_smuggling_is_refused() {
    let server = TestServer::start(|_| ok("secret")).await;
    let at = server.address;
    let post = |headers: &str, body: &str| {
        (format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n{headers}\r\n{body}"), "invalid-request")
    };
    let connect = |headers: &str| (format!("CONNECT {at} HTTP/1.1\r\n{headers}\r\n"), "invalid-request");
    let other = "GET http://a.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n".to_owned();
    refused(
        &open(),
        &tunnelling(at.port(), Carries::Anything),
        &server,
        &[
            post("Content-Length: 1\r\nContent-Length: 2\r\n", "ab"),
            post("Content-Length: 2\r\nContent-Length: 2\r\n", "ab"),
            post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
            post("Transfer-Encoding: chunked, identity\r\n", "0\r\n\r\n"),
            post("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
            post("X: 1\r\n Content-Length: 2\r\n", "ab"),
            post("X: 1\n", ""),
            post("Transfer-Encoding: chunked\r\n", "2;x=y\r\nab\r\n0\r\n\r\n"),
            post("Transfer-Encoding: chunked\r\n", "2\nab\r\n0\r\n\r\n"),
            post("Transfer-Encoding: chunked\r\n", "2\r\nabc\r\n0\r\n\r\n"),
            post("Transfer-Encoding: chunked\r\n", "0\r\nX: 1\r\n\r\n"),
            post("Transfer-Encoding: chunked\r\n", "-2\r\nab\r\n0\r\n\r\n"),
            post("Transfer-Encoding: chunked\r\n", "000000002\r\nab\r\n0\r\n\r\n"),
            post("Transfer-Encoding: chunked\r\n", "\r\n"),
            post("Host: b.test\r\n", ""),
            (other, "invalid-request"),
            (plain(&format!("http://{at}/"), "127.0.0.1"), "invalid-request"),
            (format!("GET http://{at}/ HTTP/1.1\r\n\r\n"), "invalid-request"),
            (format!("GET http://{at}/ HTTP/1.1\nHost: {at}\n\n"), "invalid-request"),
            (format!("\r\nGET http://{at}/ HTTP/1.1\r\nHost: {at}\r\n\r\n"), "invalid-request"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "invalid-request"),
            connect("Content-Length: 5\r\n"),
            connect("Transfer-Encoding: chunked\r\n"),
            connect("Host: b.test\r\n"),
            connect("Host: 127.0.0.1:1\r\n"),
        ],
    )
    .await;
}

/// A second lookup could return an address that was not checked.
#[tokio::test]
async fn name_is_resolved_once_per_connection() {
    let server = TestServer::start(|_| ok("here")).await;
    let (egress, heard) = listening(HERE);
    let port = server.address.port();
    let jail = Jail::with(&egress, open(), tunnelling(port, Carries::Anything));
    let at = format!("once.test:{port}");
    assert_eq!(body(&jail.say(plain(&format!("http://{at}/"), &at)).await), "here");
    assert_eq!(*heard.lock().unwrap(), ["once.test"]);
    let through = jail.say(format!("CONNECT {at} HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n")).await;
    assert!(through.ends_with("here"), "{through}");
    assert_eq!(*heard.lock().unwrap(), ["once.test", "once.test"]);
}

#[tokio::test]
async fn looked_up_names_are_limited() {
    let server = TestServer::start(|_| ok("here")).await;
    let (egress, heard) = listening(HERE);
    let most = ProxyLimits { names: 2, name_bytes: 20, ..ProxyLimits::default() };
    let jail = Jail::with(&egress, open(), most);
    let long = format!("{}.test", "x".repeat(16));
    for (name, code) in [
        ("one.test", None),
        ("two.test", None),
        ("three.test", Some("too-many-names")),
        ("ONE.test", None),
        (&long, Some("too-many-names")),
    ] {
        let at = format!("{name}:{}", server.address.port());
        let answer = jail.say(plain(&format!("http://{at}/"), &at)).await;
        assert_eq!(header(&answer, "x-toolgate-refusal"), code, "{name}");
    }
    assert_eq!(*heard.lock().unwrap(), ["one.test", "two.test", "one.test"]);
}

/// Journal records of unreadable requests.
#[tokio::test]
async fn records_hold_no_passwords_queries_or_controls() {
    let jail = Jail::new(open(), ProxyLimits::default());
    jail.say("GET http://me:pw@a.test/x?key=1 HTTP/1.1\r\nHost: a.test\r\n\r\n").await;
    jail.say(plain(&format!("ftp://{}", "y".repeat(2_000)), "a.test")).await;
    jail.say("GET / HTTP/1.1\nX\x1b[2J\n\n").await;
    let recorded = jail.recorded().await;
    assert_eq!(recorded[0], "http GET a.test/x userinfo-in-url");
    assert_eq!(recorded[1], "http GET (2006 characters) unsupported-scheme");
    assert_eq!(recorded[2], "http   invalid-request");
}

/// Records all received bytes, one entry per connection.
async fn recorder() -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<Vec<u8>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, recorded) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mut heard = Vec::new();
                while !heard.windows(4).any(|window| window == b"\r\n\r\n") {
                    if stream.read_buf(&mut heard).await.unwrap_or(0) == 0 {
                        break;
                    }
                }
                let _ = stream.write_all(&ok("")).await;
                let _ = stream.read_to_end(&mut heard).await;
                let _ = sender.send(heard);
            });
        }
    });
    (address, recorded)
}

/// Fragments of smuggled requests.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\r\n"),
        Just("\n"),
        Just("\r"),
        Just("\r\n\r\n"),
        Just("Content-Length: 5\r\n"),
        Just("Content-Length: 0\r\n"),
        Just("Transfer-Encoding: chunked\r\n"),
        Just("transfer-encoding:\tchunked\r\n"),
        Just("X: y\r\n"),
        Just("Connection: Content-Length, Host\r\n"),
        Just(" "),
        Just("5\r\nhello\r\n"),
        Just("0\r\n\r\n"),
        Just("hello"),
        Just("GET http://b.test/ HTTP/1.1\r\nHost: b.test\r\n\r\n"),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// A server receives at most one request, and nothing after it.
    #[test]
    fn server_receives_at_most_one_request(soup in soup()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (answer, heard) = runtime.block_on(async {
            let (at, mut recorded) = recorder().await;
            let jail = Jail::new(loopback(), ProxyLimits::default());
            let mut stream = jail.connect().await;
            let request = format!("POST http://{at}/ HTTP/1.1\r\nHost: {at}\r\n{soup}");
            stream.write_all(request.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let answer = hear(&mut stream).await;
            jail.proxy.finish().await;
            let heard = if answer.starts_with("HTTP/1.1 200 ") { recorded.recv().await } else { recorded.try_recv().ok() };
            (answer, heard.map(|heard| (at, heard)))
        });
        prop_assert!(answer.starts_with("HTTP/1.1 "), "{:?}", answer);
        if let Some((at, heard)) = heard {
            let end = head::end(&heard, 0).unwrap().unwrap();
            let head = head::RequestHead::parse(&heard[..end]).unwrap();
            let at = at.to_string();
            prop_assert_eq!(head.single(&http::header::HOST).unwrap(), Some(at.as_str()));
            let length = match head.framing().unwrap() {
                head::BodyFraming::Absent => 0,
                head::BodyFraming::Length(length) => length,
                head::BodyFraming::Chunked => return Err(TestCaseError::fail("we never send chunks")),
            };
            prop_assert_eq!(heard.len() - end, length);
        }
    }
}
