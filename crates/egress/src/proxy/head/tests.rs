use http::header::HOST;
use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(head: &str, expect: &str) {
    let framing = RequestHead::parse(head.as_bytes()).and_then(|head| head.framing());
    let said = framing.map_or_else(|error| error.message, |framing| format!("{framing:?}"));
    assert!(said.contains(expect), "{head:?}: {said}");
}

#[test]
fn request_head_is_parsed() {
    let head = "POST http://a.test/x?y HTTP/1.1\r\nHost: a.test\r\nX:\t 1 2 \r\nx: 3\r\n\r\n";
    let head = RequestHead::parse(head.as_bytes()).unwrap();
    assert_eq!((head.method.as_str(), head.target.as_str()), ("POST", "http://a.test/x?y"));
    assert_eq!(head.version, HttpVersion::Http11);
    assert_eq!(head.single(&HOST).unwrap(), Some("a.test"));
    let x = HeaderName::from_static("x");
    assert_eq!(head.values(&x).collect::<Vec<_>>(), ["1 2", "3"]);
    assert!(head.single(&x).is_err());
}

#[test]
fn ambiguous_body_length_is_refused() {
    let with = |headers: &str| format!("POST / HTTP/1.1\r\n{headers}\r\n");
    check(&with(""), "Absent");
    check(&with("Content-Length: 12\r\n"), "Length(12)");
    check(&with("Transfer-Encoding: Chunked\r\n"), "Chunked");
    check(&with("Content-Length: 1\r\nContent-Length: 1\r\n"), "repeated");
    check(&with("Content-Length: 1, 1\r\n"), "not a number");
    check(&with("Content-Length: +1\r\n"), "not a number");
    check(&with("Content-Length: 0x1\r\n"), "not a number");
    check(&with("Content-Length:\r\n"), "not a number");
    check(&with("Content-Length: 99999999999999999999999\r\n"), "not a number");
    check(&with("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), "both");
    check(&with("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), "repeated");
    check(&with("Transfer-Encoding: gzip, chunked\r\n"), "not `chunked`");
    check(&with("Transfer-Encoding: xchunked\r\n"), "not `chunked`");
    check("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "not `chunked`");
}

#[test]
fn ambiguous_heads_are_refused() {
    for (head, why) in [
        ("GET / HTTP/1.1\r\nA: 1\r\n B: 2\r\n\r\n", "next line"),
        ("GET / HTTP/1.1\r\n A: 1\r\n\r\n", "next line"),
        ("GET / HTTP/1.1\r\nA : 1\r\n\r\n", "not a header name"),
        ("GET / HTTP/1.1\r\n: 1\r\n\r\n", "not a header name"),
        ("GET / HTTP/1.1\r\nA\r\n\r\n", "no colon"),
        ("GET / HTTP/1.1\r\nA: 1\rB: 2\r\n\r\n", "control characters"),
        ("GET / HTTP/1.1\r\nA: 1\nB: 2\r\n\r\n", "control characters"),
        ("GET / HTTP/1.1\r\nA: \0\r\n\r\n", "control characters"),
        ("GET / HTTP/1.1\r\nA: \u{e9}\r\n\r\n", "not ASCII"),
        ("GET  / HTTP/1.1\r\n\r\n", "first line"),
        ("GET /\tHTTP/1.1\r\n\r\n", "first line"),
        ("GET / HTTP/1.1 \r\n\r\n", "first line"),
        (" GET / HTTP/1.1\r\n\r\n", "first line"),
        ("\r\nGET / HTTP/1.1\r\n\r\n", "first line"),
        ("GET /\r\n\r\n", "first line"),
        ("GET / HTTP/2.0\r\n\r\n", "version"),
        ("GET / http/1.1\r\n\r\n", "version"),
        ("GET / HTTP/1.10\r\n\r\n", "version"),
        ("G@T / HTTP/1.1\r\n\r\n", "method"),
        ("GET /\x7f HTTP/1.1\r\n\r\n", "encoded"),
        ("GET / HTTP/1.1\r\n", "no end"),
    ] {
        check(head, why);
    }
}

#[test]
fn bare_line_feed_is_an_error_at_once() {
    for head in ["GET / HTTP/1.1\n", "GET / HTTP/1.1\r\nA: 1\n\n", "\n", "GET / HTTP/1.1\r\n\n"] {
        assert!(end(head.as_bytes(), 0).is_err(), "{head:?}");
    }
    // Bytes after the head are not part of it.
    assert_eq!(end(b"A\r\n\r\nx\ny", 0).unwrap(), Some(5));
}

#[test]
fn connection_header_nominates_headers() {
    let head = "GET / HTTP/1.1\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\n\r\n";
    let head = RequestHead::parse(head.as_bytes()).unwrap();
    assert!(head.is_nominated(&HeaderName::from_static("x-hop")));
    assert!(!head.is_nominated(&HOST));
}

/// Fragments of valid heads and of attacks.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\r\n".to_vec()),
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b" ".to_vec()),
        Just(b":".to_vec()),
        Just(b"GET http://a/ HTTP/1.1".to_vec()),
        Just(b"Content-Length: 1".to_vec()),
        Just(b"Transfer-Encoding: chunked".to_vec()),
        any::<u8>().prop_map(|byte| vec![byte]),
        "[a-zA-Z:]{1,5}".prop_map(String::into_bytes),
    ];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// Writing a parsed head out again gives the same bytes as the original.
    #[test]
    fn parsed_head_equals_the_original(bytes in pieces()) {
        let Ok(head) = RequestHead::parse(&bytes) else { return Ok(()) };
        let mut again = format!("{} {} HTTP/1.", head.method, head.target);
        again.push(if head.version == HttpVersion::Http11 { '1' } else { '0' });
        for (name, value) in head.headers() {
            again = format!("{again}\r\n{name}:{value}");
        }
        again.push_str("\r\n\r\n");
        let plain = |text: &str| text.to_ascii_lowercase().replace([' ', '\t'], "");
        prop_assert_eq!(plain(&again), plain(std::str::from_utf8(&bytes).unwrap()));
        prop_assert!(head.framing().is_err() || head.values(&CONTENT_LENGTH).count() < 2);
    }

    #[test]
    fn end_is_found_in_chunks_of_any_size(bytes in pieces(), cuts in prop::collection::vec(0..200_usize, 0..9)) {
        let whole = end(&bytes, 0).ok();
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([bytes.len()]).collect();
        cuts.sort_unstable();
        let mut seen = 0;
        let mut last = Some(None);
        for cut in cuts {
            last = end(&bytes[..cut], seen).ok();
            seen = cut;
            if last != Some(None) {
                break;
            }
        }
        prop_assert_eq!(last, whole);
    }
}
