use http::header::{CONTENT_ENCODING, HeaderValue};

use super::*;
use crate::{
    Request,
    testing::{TestServer, egress, fetch, loopback, ok, open, redirect, slug_of},
};

/// Refuses everything that contains the word.
pub struct WordGuard;

impl BodyGuard for WordGuard {
    fn judge(&self, leaving: &OutgoingPart<'_>) -> Option<String> {
        let holds = leaving.bytes.windows(6).any(|window| window == b"s3cret");
        // One host may receive it, in one header.
        let is_meant = leaving.host == "b.test" && leaving.part == RequestPart::Header("authorization");
        (holds && !is_meant).then(|| "it holds the word; leave it out".into())
    }
}

fn guarded() -> crate::Egress {
    egress().with_guard(Arc::new(WordGuard))
}

#[tokio::test]
async fn guard_refusal_stops_the_request() {
    let server = TestServer::start(|_| ok("")).await;
    let header = |name: &str| vec![(name.to_owned(), "my s3cret".to_owned())];
    let post = Request { method: "POST".into(), ..Request::get(server.url("/")) };
    for (request, part) in [
        (Request::get(server.url("/?key=s3cret")), "the URL"),
        (Request::get(server.url("/s3cret")), "the URL"),
        (Request { headers: header("X-Mine"), ..post.clone() }, "header `x-mine`"),
        (Request { headers: header("Authorization"), ..post.clone() }, "header `authorization`"),
        (Request { body: "a s3cret".into(), ..post.clone() }, "the body"),
        (
            Request { body: ["x".repeat(MAX_INLINE_BYTES), "s3cret".into()].concat().into(), ..post },
            "the body",
        ),
    ] {
        let error = fetch(&guarded(), &loopback(), request).await.unwrap_err();
        assert_eq!(error.slug(), "content-refused");
        assert_eq!(error.message, format!("{part} must not leave: it holds the word; leave it out"));
    }
    assert_eq!(server.seen(), Vec::<String>::new());
    assert_eq!(fetch(&guarded(), &loopback(), Request::get(server.url("/"))).await.unwrap().status, 200);
}

/// Methods are sent in upper case, header names and hosts in lower case. A changed key would not be recognised.
#[tokio::test]
async fn guard_sees_method_header_names_and_host_as_written() {
    struct KeyGuard;
    impl BodyGuard for KeyGuard {
        fn judge(&self, leaving: &OutgoingPart<'_>) -> Option<String> {
            leaving.bytes.windows(7).any(|window| window == b"gKeyAb1").then(|| "it is a key".into())
        }
    }
    let server = TestServer::start(|_| ok("")).await;
    let egress = egress().with_guard(Arc::new(KeyGuard));
    let url = server.url("/");
    for request in [
        Request { method: "gKeyAb1".into(), ..Request::get(&url) },
        Request { headers: vec![("X-gKeyAb1".to_owned(), "1".to_owned())], ..Request::get(&url) },
        Request::get("http://gKeyAb1.test/"),
    ] {
        assert_eq!(slug_of(&egress, &open(), request).await, "content-refused");
    }
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn rules_are_checked_before_the_guard() {
    let request = Request::get("http://c.test/s3cret");
    assert_eq!(slug_of(&guarded(), &loopback(), request).await, "host-not-in-allowlist");
}

#[tokio::test]
async fn guard_checks_the_body_after_a_redirect() {
    let end = TestServer::start(|_| ok("")).await;
    let (with_query, bare) = (end.url_as("a.test", "/?s3cret"), end.url_as("a.test", "/"));
    let authorization = vec![("Authorization".to_owned(), "s3cret".to_owned())];
    // The server chose the query, so the guard does not check it. The header is not forwarded.
    let server = TestServer::start(move |_| redirect(307, &with_query)).await;
    let request = Request { headers: authorization.clone(), ..Request::get(server.url_as("b.test", "/")) };
    assert_eq!(fetch(&guarded(), &open(), request).await.unwrap().status, 200);
    // The header would also be dropped for the same host under its other name, but this name is harmless.
    let server = TestServer::start(move |_| redirect(307, &bare)).await;
    let request = Request {
        headers: vec![("Accept".to_owned(), "s3cret".to_owned())],
        ..Request::get(server.url_as("b.test", "/"))
    };
    assert_eq!(slug_of(&guarded(), &open(), request).await, "content-refused");
}

#[tokio::test]
async fn guard_sees_the_decompressed_body() {
    // One stored block of "s3cret".
    let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x06\0\xf9\xffs3cret";
    let zlib = b"\x78\x01\x01\x05\0\xfa\xffhello\x06\x2c\x02\x15";
    let fate = async |coding: &'static str, body: &'static [u8]| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        let content =
            Content { host: "a.test".into(), url: None, written: Vec::new(), headers, body: body.into() };
        let guard: Arc<dyn BodyGuard> = Arc::new(WordGuard);
        ask(&guard, content, 1000).await.map_err(|error| error.message)
    };
    assert_eq!(fate("deflate", zlib).await, Ok(()));
    // Without its checksum the body cannot be decompressed, so it cannot be checked.
    assert!(fate("gzip", packed).await.unwrap_err().contains("cannot be decompressed"));
    assert!(fate("zstd", b"x").await.unwrap_err().contains("cannot be decompressed"));
    assert!(fate("gzip, gzip", b"x").await.unwrap_err().contains("cannot be decompressed"));
    let whole: &'static [u8] = Box::leak(gzip_of(b"s3cret").await.into_boxed_slice());
    assert!(fate("gzip", whole).await.unwrap_err().contains("holds the word"));
}

async fn gzip_of(bytes: &[u8]) -> Vec<u8> {
    use tokio::io::AsyncReadExt as _;
    let mut packed = Vec::new();
    let mut encoder = async_compression::tokio::bufread::GzipEncoder::new(bytes);
    encoder.read_to_end(&mut packed).await.unwrap();
    packed
}

/// A guard that panics has not allowed anything.
#[tokio::test]
async fn panicking_guard_refuses() {
    struct BrokenGuard;
    impl BodyGuard for BrokenGuard {
        fn judge(&self, _: &OutgoingPart<'_>) -> Option<String> {
            panic!("a guard fails")
        }
    }
    let content = Content {
        host: "a.test".into(),
        url: None,
        written: Vec::new(),
        headers: HeaderMap::new(),
        body: vec![0; MAX_INLINE_BYTES + 1].into(),
    };
    let guard: Arc<dyn BodyGuard> = Arc::new(BrokenGuard);
    assert_eq!(ask(&guard, content, 1000).await.unwrap_err().slug(), "content-refused");
}
