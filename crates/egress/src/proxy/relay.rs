//! Forwards a plain HTTP request to the host in its URL. The message is rebuilt, not copied.

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
    client::{ProxyClient, idle_timeout},
    context::ProxyContext,
    head::{BodyFraming, HttpVersion, RequestHead, invalid},
    ledger::ExchangeEntry,
    refusal::REFUSAL_HEADER,
};
use crate::{
    body::body_error,
    error::{EgressError, EgressReason},
    exchange::{connection_error, drive, handshake},
    guard::Content,
    head_cap::ResponseCounter,
    request::{Outgoing, Request},
    target::RequestTarget,
};

pub async fn serve(
    context: &ProxyContext,
    client: &mut ProxyClient,
    head: &RequestHead,
    entry: &ExchangeEntry,
) -> Result<(), EgressError> {
    let target = absolute_target(context, head)?;
    entry.set_target(target.host().to_string(), target.port());
    let framing = head.framing()?;
    let mut message = message(context, head, &target)?;
    // Checked again below with the addresses. This early check saves sending a body that would be refused.
    context.egress.admit(&context.rules, &target)?;
    context.judge_method(message.method().as_str(), message.headers())?;
    if framing != BodyFraming::Absent && expects_invitation(head) {
        client.invite_body(context.limits.idle).await?;
    }
    let body = client.body(framing, context, entry).await?;
    let outgoing_content = || Content {
        host: target.host().to_string(),
        url: Some(target.url().to_string()),
        written: [&head.method, &head.target].into_iter().chain(&head.names).cloned().collect(),
        headers: message.headers().clone(),
        body: body.clone(),
    };
    context.egress.judge_content(outgoing_content).await?;
    let addresses = context.judged_addresses(&context.rules, &target).await?;
    let dialled = context.egress.dial(&target, &addresses).await?;
    *message.body_mut() = Full::new(body);
    let (sender, connection) =
        handshake(dialled.stream, context.egress.limits(), ResponseCounter::default()).await?;
    drive(connection, pass_back(context, client, head, entry, (sender, message))).await
}

/// The target must be `http://host/path`, with an equal Host header. Otherwise a server might route by a header that
/// was not checked.
fn absolute_target(context: &ProxyContext, head: &RequestHead) -> Result<RequestTarget, EgressError> {
    context.egress.check_length(&head.target)?;
    let scheme = head.target.split_once("://").map(|(scheme, _)| scheme);
    match scheme {
        Some(scheme) if scheme.eq_ignore_ascii_case("http") => {}
        Some(_) => {
            let message = "only `http://` URLs are forwarded; use CONNECT for anything else";
            return Err(EgressError::new(EgressReason::UnsupportedScheme, message));
        }
        None => return Err(invalid("its target is not a URL; this is a proxy, request `http://host/path`")),
    }
    if head.target.contains('#') {
        return Err(invalid("its target has a fragment; remove it"));
    }
    let target = RequestTarget::parse(&head.target)?;
    match head.single(&HOST)? {
        Some(host) if RequestTarget::of_authority(host)?.shares_origin_with(&target) => Ok(target),
        Some(_) => Err(invalid("its Host header differs from its target")),
        None if head.version == HttpVersion::Http10 => Ok(target),
        None => Err(invalid("it has no Host header")),
    }
}

/// Builds the same message as `fetch`, except that the command chooses the Accept-Encoding and decompresses itself.
fn message(
    context: &ProxyContext,
    head: &RequestHead,
    target: &RequestTarget,
) -> Result<http::Request<Full<Bytes>>, EgressError> {
    let headers = head.headers().filter(|(name, _)| !head.is_nominated(name));
    let headers = headers.map(|(name, value)| (name.as_str().to_owned(), value.to_owned())).collect();
    let asked = Request { method: head.method.clone(), headers, ..Request::get(String::new()) };
    let mut message = Outgoing::of(&asked, context.egress.limits())?.to_http(target)?;
    message.headers_mut().remove(ACCEPT_ENCODING);
    for value in head.values(&ACCEPT_ENCODING) {
        let value = HeaderValue::from_str(value)
            .map_err(|_| invalid("its Accept-Encoding is not a valid header value"))?;
        message.headers_mut().append(ACCEPT_ENCODING, value);
    }
    Ok(message)
}

fn expects_invitation(head: &RequestHead) -> bool {
    head.version == HttpVersion::Http11
        && head.values(&EXPECT).any(|value| value.eq_ignore_ascii_case("100-continue"))
}

/// Sends the request and forwards the response in pieces.
async fn pass_back(
    context: &ProxyContext,
    client: &mut ProxyClient,
    head: &RequestHead,
    entry: &ExchangeEntry,
    (mut sender, message): (SendRequest<Full<Bytes>>, http::Request<Full<Bytes>>),
) -> Result<(), EgressError> {
    let idle = context.limits.idle;
    let is_head = message.method() == Method::HEAD;
    let response = timeout(idle, sender.send_request(message)).await;
    let late = |_| {
        EgressError::new(
            EgressReason::ResponseHeadersTimeout,
            "the server did not answer in time; try again later",
        )
    };
    let response = response.map_err(late)?.map_err(|error| connection_error(&error))?;
    if response.status().is_informational() {
        let message = "the server switched to a protocol that was not requested";
        return Err(EgressError::new(EgressReason::InvalidResponse, message));
    }
    let shape = AnswerFraming::of(&response, is_head, head.version);
    let (parts, mut body) = response.into_parts();
    let start = answer_head(parts.status, &parts.headers, shape);
    context.count_down(entry, start.len())?;
    client.say(&start, idle).await?;
    if shape == AnswerFraming::Bodiless {
        return Ok(());
    }
    loop {
        let frame = timeout(idle, body.frame()).await.map_err(|_| idle_timeout())?;
        let Some(frame) = frame else { break };
        // Trailers are dropped.
        let Ok(data) = frame.map_err(|error| body_error(&error))?.into_data() else { continue };
        context.count_down(entry, data.len())?;
        if shape != AnswerFraming::Chunked {
            client.say(&data, idle).await?;
        } else if !data.is_empty() {
            client.say(&[format!("{:x}\r\n", data.len()).as_bytes(), &data, b"\r\n"].concat(), idle).await?;
        }
    }
    if shape == AnswerFraming::Chunked {
        client.say(b"0\r\n\r\n", idle).await?;
    }
    Ok(())
}

/// How the end of the response body is marked for the command.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AnswerFraming {
    Bodiless,
    Length(u64),
    Chunked,
    /// HTTP/1.0 has no chunked encoding.
    UntilClosed,
}

impl AnswerFraming {
    fn of(response: &Response<Incoming>, is_head: bool, version: HttpVersion) -> Self {
        let status = response.status();
        if is_head || status == StatusCode::NO_CONTENT || status == StatusCode::NOT_MODIFIED {
            return Self::Bodiless;
        }
        match (response.body().size_hint().exact(), version) {
            (Some(length), _) => Self::Length(length),
            (None, HttpVersion::Http11) => Self::Chunked,
            (None, HttpVersion::Http10) => Self::UntilClosed,
        }
    }
}

fn answer_head(status: StatusCode, headers: &HeaderMap, shape: AnswerFraming) -> Vec<u8> {
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    let mut line = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    };
    for (name, value) in headers {
        let describes_absent_body = *name == CONTENT_LENGTH && shape == AnswerFraming::Bodiless;
        if describes_absent_body || !stays_behind(name, headers) {
            line(name.as_str(), value.as_bytes());
        }
    }
    match shape {
        AnswerFraming::Length(length) => line(CONTENT_LENGTH.as_str(), length.to_string().as_bytes()),
        AnswerFraming::Chunked => line(TRANSFER_ENCODING.as_str(), b"chunked"),
        AnswerFraming::Bodiless | AnswerFraming::UntilClosed => {}
    }
    line(CONNECTION.as_str(), b"close");
    bytes.extend_from_slice(b"\r\n");
    bytes
}

/// Headers about the server's connection do not apply to the command's connection.
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
