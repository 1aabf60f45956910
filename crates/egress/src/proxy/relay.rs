//! How is a plain request passed on? Whole, in our own words, to the one place that its URL names.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode,
    header::{
        ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
    },
};
use http_body_util::{BodyExt as _, Full};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::http1::SendRequest,
};
use tokio::time::timeout;

use super::{
    client::{Client, silent},
    head::{Framing, Head, Version, invalid},
    ledger::Entry,
    refusal::REFUSAL_HEADER,
    way::Way,
};
use crate::{
    body::cut,
    error::{EgressError, Reason},
    exchange::{driven, handshake, lost},
    guard::Content,
    request::{Outgoing, Request},
    target::Target,
};

pub async fn serve(way: &Way, client: &mut Client, head: &Head, entry: &Entry) -> Result<(), EgressError> {
    let target = absolute_target(way, head)?;
    entry.leads_to(target.host().to_string(), target.port());
    let framing = head.framing()?;
    let mut message = message(way, head, &target)?;
    // Asked again below, with the addresses; here so that nobody sends a body in vain.
    way.egress.admit(&way.rules, &target)?;
    way.judge_method(message.method().as_str(), message.headers())?;
    if framing != Framing::Absent && expects_invitation(head) {
        client.invite_body(way.limits.idle).await?;
    }
    let body = client.body(framing, way, entry).await?;
    let content = || Content {
        host: target.host().to_string(),
        url: Some(target.url().to_string()),
        written: [&head.method, &head.target].into_iter().chain(&head.names).cloned().collect(),
        headers: message.headers().clone(),
        body: body.clone(),
    };
    way.egress.judge_content(content).await?;
    let addresses = way.judged_addresses(&way.rules, &target).await?;
    let dialled = way.egress.dial(&target, &addresses).await?;
    *message.body_mut() = Full::new(body);
    let (sender, connection) = handshake(dialled.stream, way.egress.limits()).await?;
    driven(connection, pass_back(way, client, head, entry, (sender, message))).await
}

/// `http://host/path`, and a Host header that says the same: who routes by the one and judges by the other is fooled.
fn absolute_target(way: &Way, head: &Head) -> Result<Target, EgressError> {
    way.egress.check_length(&head.target)?;
    let scheme = head.target.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        Some(scheme) if scheme.eq_ignore_ascii_case("http") => {}
        Some(_) => {
            let message = "only `http://` is passed on; ask for a tunnel with CONNECT for anything else";
            return Err(EgressError::new(Reason::UnsupportedScheme, message));
        }
        None => return Err(invalid("its target is no URL; this is a proxy, ask it for `http://host/path`")),
    }
    if head.target.contains('#') {
        return Err(invalid("its target has a fragment; remove it"));
    }
    let target = Target::parse(&head.target)?;
    match head.single(&HOST)? {
        Some(host) if Target::of_authority(host)?.shares_origin_with(&target) => Ok(target),
        Some(_) => Err(invalid("its Host header names another place than its target")),
        None if head.version == Version::Http10 => Ok(target),
        None => Err(invalid("it has no Host header")),
    }
}

/// The same words that `fetch` would send, except that the command unpacks for itself.
fn message(way: &Way, head: &Head, target: &Target) -> Result<http::Request<Full<Bytes>>, EgressError> {
    let headers = head.headers().filter(|(name, _)| !head.is_nominated(name));
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), value.to_owned())).collect();
    let asked = Request { method: head.method.clone(), headers, ..Request::get(String::new()) };
    let mut message = Outgoing::of(&asked, way.egress.limits())?.to_http(target)?;
    message.headers_mut().remove(ACCEPT_ENCODING);
    for value in head.values(&ACCEPT_ENCODING) {
        let value = HeaderValue::from_str(value).map_err(|_| invalid("its Accept-Encoding is no header"))?;
        message.headers_mut().append(ACCEPT_ENCODING, value);
    }
    Ok(message)
}

fn expects_invitation(head: &Head) -> bool {
    head.version == Version::Http11
        && head.values(&EXPECT).any(|value| value.eq_ignore_ascii_case("100-continue"))
}

/// Sends the request and hands back what comes, piece by piece.
async fn pass_back(
    way: &Way,
    client: &mut Client,
    head: &Head,
    entry: &Entry,
    (mut sender, message): (SendRequest<Full<Bytes>>, http::Request<Full<Bytes>>),
) -> Result<(), EgressError> {
    let idle = way.limits.idle;
    let is_head = message.method() == Method::HEAD;
    let response = timeout(idle, sender.send_request(message)).await;
    let late = |_| {
        EgressError::new(Reason::ResponseHeadersTimeout, "the server did not answer in time; try again later")
    };
    let response = response.map_err(late)?.map_err(|error| lost(&error))?;
    if response.status().is_informational() {
        let message = "the server switched to a protocol that nobody asked for";
        return Err(EgressError::new(Reason::InvalidResponse, message));
    }
    let shape = Shape::of(&response, is_head, head.version);
    let (parts, mut body) = response.into_parts();
    let start = answer_head(parts.status, &parts.headers, shape);
    way.count_down(entry, start.len())?;
    client.say(&start, idle).await?;
    if shape == Shape::Bodiless {
        return Ok(());
    }
    loop {
        let frame = timeout(idle, body.frame()).await.map_err(|_| silent())?;
        let Some(frame) = frame else { break };
        // Trailers stay behind.
        let Ok(data) = frame.map_err(|error| cut(&error))?.into_data() else { continue };
        way.count_down(entry, data.len())?;
        if shape != Shape::Chunked {
            client.say(&data, idle).await?;
        } else if !data.is_empty() {
            client.say(&[format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat(), idle).await?;
        }
    }
    if shape == Shape::Chunked {
        client.say(b"0\r\n\r\n", idle).await?;
    }
    Ok(())
}

/// How does the command know where the body ends?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Shape {
    Bodiless,
    Length(u64),
    Chunked,
    /// Version 1.0 knows no chunks.
    UntilClosed,
}

impl Shape {
    fn of(response: &Response<Incoming>, is_head: bool, version: Version) -> Self {
        let status = response.status();
        if is_head || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
            return Self::Bodiless;
        }
        match (response.body().size_hint().exact(), version) {
            (Some(length), _) => Self::Length(length),
            (None, Version::Http11) => Self::Chunked,
            (None, Version::Http10) => Self::UntilClosed,
        }
    }
}

fn answer_head(status: StatusCode, headers: &HeaderMap, shape: Shape) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    let mut line = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    };
    for (name, value) in headers {
        let describes_absent_body = *name == CONTENT_LENGTH && shape == Shape::Bodiless;
        if describes_absent_body || !stays_behind(name, headers) {
            line(name.as_str(), value.as_bytes());
        }
    }
    match shape {
        Shape::Length(length) => line(CONTENT_LENGTH.as_str(), length.to_string().as_bytes()),
        Shape::Chunked => line(TRANSFER_ENCODING.as_str(), b"chunked"),
        Shape::Bodiless | Shape::UntilClosed => {}
    }
    line(CONNECTION.as_str(), b"close");
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// What a server says about its connection is about its connection with us.
fn stays_behind(name: &HeaderName, headers: &HeaderMap) -> bool {
    let nominated = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let mut nominated = nominated.flat_map(|value| value.split(',')).map(str::trim);
    CONNECTION_HEADERS.contains(name)
        || name.as_str().starts_with("proxy-")
        || matches!(name.as_str(), "keep-alive" | REFUSAL_HEADER)
        || nominated.any(|word| word.eq_ignore_ascii_case(name.as_str()))
}

static CONNECTION_HEADERS: [HeaderName; 6] =
    [CONNECTION, CONTENT_LENGTH, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];
