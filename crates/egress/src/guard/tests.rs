use http::header::{CONTENT_ENCODING, HeaderValue};

use super::*;
use crate::{
    Request,
    testing::{Server, egress, fetch, loopback, ok, open, redirect, slug_of},
};

/// Lets nothing out that holds the word.
pub struct Watchman;

impl BodyGuard for Watchman {
    fn judge(&self, leaving: &Leaving<'_>) -> Option<String> {
        let holds = leaving.bytes.windows(6).any(|window| window == b"s3cret");
        // One host may have it, in one header.
        let is_meant = leaving.host == "b.test" && leaving.part == Part::Header("authorization");
        (holds && !is_meant).then(|| "it holds the word; leave it out".into())
    }
}

fn guarded() -> crate::Egress {
    egress().with_guard(Arc::new(Watchman))
}

#[tokio::test]
async fn nothing_is_sent_that_the_guard_keeps() {
    let server = Server::start(|_| ok("")).await;
    let header = |name: &str| vec![(name.to_owned(), "my s3cret".to_owned())];
    let post = Request { method: "POST".into(), ..Request::get(server.url("/")) };
    for (request, part) in [
        (Request::get(server.url("/?key=s3cret")), "the URL"),
        (Request::get(server.url("/s3cret")), "the URL"),
        (Request { headers: header("X-Mine"), ..post.clone() }, "header `x-mine`"),
        (Request { headers: header("Authorization"), ..post.clone() }, "header `authorization`"),
        (Request { body: "a s3cret".into(), ..post.clone() }, "the body"),
        (
            Request { body: ["x".repeat(MOST_INLINE_BYTES), "s3cret".into()].concat().into(), ..post },
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

/// Methods are sent in capitals, header names and hosts in small letters: judged like that, a key is none.
#[tokio::test]
async fn method_names_and_host_are_judged_as_written() {
    struct Key;
    impl BodyGuard for Key {
        fn judge(&self, leaving: &Leaving<'_>) -> Option<String> {
            leaving.bytes.windows(7).any(|window| window == b"gKeyAb1").then(|| "it is a key".into())
        }
    }
    let server = Server::start(|_| ok("")).await;
    let egress = egress().with_guard(Arc::new(Key));
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
async fn the_rules_are_asked_before_the_guard() {
    let request = Request::get("http://c.test/s3cret");
    assert_eq!(slug_of(&guarded(), &loopback(), request).await, "host-not-in-allowlist");
}

#[tokio::test]
async fn a_redirect_takes_the_body_nowhere_that_the_guard_would_not_have_it() {
    let end = Server::start(|_| ok("")).await;
    let (with_query, bare) = (end.url_as("a.test", "/?s3cret"), end.url_as("a.test", "/"));
    let authorization = vec![("Authorization".to_owned(), "s3cret".to_owned())];
    // The server chose the query, so it knows it; and the header stays behind.
    let server = Server::start(move |_| redirect(307, &with_query)).await;
    let request = Request { headers: authorization.clone(), ..Request::get(server.url_as("b.test", "/")) };
    assert_eq!(fetch(&guarded(), &open(), request).await.unwrap().status, 200);
    // The same header to the same host under its other name would stay too, were it not harmless by name.
    let server = Server::start(move |_| redirect(307, &bare)).await;
    let request = Request {
        headers: vec![("Accept".to_owned(), "s3cret".to_owned())],
        ..Request::get(server.url_as("b.test", "/"))
    };
    assert_eq!(slug_of(&guarded(), &open(), request).await, "content-refused");
}

#[tokio::test]
async fn a_packed_body_is_looked_into() {
    // One stored block of "s3cret".
    let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x01\x06\0\xf9\xffs3cret";
    let zlib = b"\x78\x01\x01\x05\0\xfa\xffhello\x06\x2c\x02\x15";
    let fate = async |coding: &'static str, body: &'static [u8]| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static(coding));
        let content =
            Content { host: "a.test".into(), url: None, written: Vec::new(), headers, body: body.into() };
        let guard: Arc<dyn BodyGuard> = Arc::new(Watchman);
        ask(&guard, content, 1000).await.map_err(|error| error.message)
    };
    assert_eq!(fate("deflate", zlib).await, Ok(()));
    // Without its checksum it cannot be unpacked, so it cannot be judged.
    assert!(fate("gzip", packed).await.unwrap_err().contains("cannot be looked into"));
    assert!(fate("zstd", b"x").await.unwrap_err().contains("cannot be looked into"));
    assert!(fate("gzip, gzip", b"x").await.unwrap_err().contains("cannot be looked into"));
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

/// A guard that fails has not said yes.
#[tokio::test]
async fn a_guard_that_breaks_lets_nothing_out() {
    struct Broken;
    impl BodyGuard for Broken {
        fn judge(&self, _: &Leaving<'_>) -> Option<String> {
            panic!("as a broken guard does")
        }
    }
    let content = Content {
        host: "a.test".into(),
        url: None,
        written: Vec::new(),
        headers: HeaderMap::new(),
        body: vec![0; MOST_INLINE_BYTES + 1].into(),
    };
    let guard: Arc<dyn BodyGuard> = Arc::new(Broken);
    assert_eq!(ask(&guard, content, 1000).await.unwrap_err().slug(), "content-refused");
}
