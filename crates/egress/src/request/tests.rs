use proptest::prelude::*;

use super::*;

fn with_headers(headers: &[(&str, &str)]) -> Request {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Request { headers, ..Request::get("http://a.test/") }
}

fn sent(request: &Request) -> Result<http::Request<Full<Bytes>>, &'static str> {
    let target = RequestTarget::parse(&request.url).unwrap();
    let outgoing = Outgoing::of(request, &EgressLimits::default());
    outgoing.and_then(|outgoing| outgoing.to_http(&target)).map_err(|error| error.slug())
}

#[track_caller]
fn check_header(headers: &[(&str, &str)], name: &str, expect: &[&str]) {
    let request = sent(&with_headers(headers)).unwrap();
    let found: Vec<_> = request.headers().get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(found, expect, "{name}");
}

#[test]
fn default_headers_are_set_and_user_agent_can_be_replaced() {
    check_header(&[], "user-agent", &[DEFAULT_USER_AGENT]);
    check_header(&[("User-Agent", "mine")], "user-agent", &["mine"]);
    check_header(&[], "accept", &["*/*"]);
    check_header(
        &[("Accept", "text/html"), ("accept", "text/plain")],
        "accept",
        &["text/html", "text/plain"],
    );
    check_header(&[("X-A", "1"), ("X-B", "2"), ("x-a", "3")], "x-a", &["1", "3"]);
}

#[test]
fn connection_headers_are_dropped() {
    check_header(&[("Host", "evil.org")], "host", &["a.test"]);
    check_header(&[("Connection", "keep-alive, x-a")], "connection", &["close"]);
    check_header(&[("Accept-Encoding", "zstd")], "accept-encoding", &["gzip, deflate, br"]);
    for name in [
        "Content-Length",
        "Expect",
        "Upgrade",
        "Transfer-Encoding",
        "TE",
        "Trailer",
        "Keep-Alive",
        "Proxy-Authorization",
        "Proxy-Connection",
        "HTTP2-Settings",
    ] {
        check_header(&[(name, "5")], name, &[]);
    }
}

#[test]
fn invalid_headers_are_refused() {
    for (name, value) in [
        ("X-A", "1\r\nX-Evil: 2"),
        ("X-A", "1\nX-Evil: 2"),
        ("X-A", "1\0"),
        ("X-A", "\u{7f}"),
        ("X-A", "\u{e9}"),
        ("X-A: 1\r\nX-B", "2"),
        ("X A", "1"),
        ("X-A:", "1"),
        ("", "1"),
        ("\u{e9}", "1"),
        // Dropped headers are validated, too.
        ("Host", "a\r\nX-Evil: 1"),
    ] {
        assert_eq!(sent(&with_headers(&[(name, value)])).unwrap_err(), "invalid-header", "{name}: {value}");
    }
    let request = Request { sensitive_headers: vec!["a b".into()], ..Request::get("http://a.test/") };
    assert_eq!(sent(&request).unwrap_err(), "invalid-header");
}

#[test]
fn invalid_and_forbidden_methods_are_refused() {
    let method = |text: &str| {
        let request = Request { method: text.into(), ..Request::get("http://a.test/") };
        sent(&request).map(|request| request.method().to_string())
    };
    assert_eq!(method("get"), Ok("GET".into()));
    assert_eq!(method("PURGE"), Ok("PURGE".into()));
    for forbidden in ["CONNECT", "trace", "Track"] {
        assert_eq!(method(forbidden), Err("forbidden-method"));
    }
    for invalid in ["", "GET /", "GET\r\n", "GET HTTP/1.1", "\u{e9}", &"A".repeat(33)] {
        assert_eq!(method(invalid), Err("invalid-method"), "{invalid}");
    }
}

#[test]
fn oversized_requests_are_refused() {
    let many: Vec<_> = (0..65).map(|number| (format!("x-{number}"), String::new())).collect();
    let request = Request { headers: many, ..Request::get("http://a.test/") };
    assert_eq!(sent(&request).unwrap_err(), "request-headers-too-large");
    assert_eq!(sent(&with_headers(&[("x", &"y".repeat(40_000))])).unwrap_err(), "request-headers-too-large");
    let body = Bytes::from(vec![0; EgressLimits::default().request_body_bytes + 1]);
    let request = Request { method: "POST".into(), body, ..Request::get("http://a.test/") };
    assert_eq!(sent(&request).unwrap_err(), "request-body-too-large");
}

#[test]
fn request_line_contains_only_path_and_query() {
    let line = |url: &str| sent(&Request::get(url)).unwrap().uri().to_string();
    assert_eq!(line("http://a.test"), "/");
    assert_eq!(line("http://a.test//evil.org/x"), "//evil.org/x");
    assert_eq!(line("http://a.test/http://evil.org/"), "/http://evil.org/");
    assert_eq!(line("http://a.test/a b\u{e9}?q=\"{x}|y^#z"), "/a%20b%C3%A9?q=%22{x}|y^");
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let mut request = with_headers(&[("Authorization", "Bearer s3cret")]);
    request.url = "http://a.test/x?key=s3cret".into();
    request.body = Bytes::from_static(b"s3cret");
    let shown = format!("{request:?}");
    assert!(shown.contains("Authorization") && !shown.contains("s3cret"), "{shown}");
}

proptest! {
    #[test]
    fn accepted_headers_are_one_line(name in "\\PC{0,12}|[a-z-]{1,9}", value: String) {
        if let Ok(request) = sent(&with_headers(&[(&name, &value)])) {
            for value in request.headers().values() {
                prop_assert!(value.as_bytes().iter().all(|byte| *byte == b'\t' || (32..127).contains(byte)));
            }
        }
    }
}
