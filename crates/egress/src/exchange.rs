//! One request and one answer over one connection. Dropping the future closes the connection.

use std::{pin::pin, sync::atomic::AtomicU64};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body_util::Full;
use hyper::{
    Response,
    body::{Body as _, Incoming},
    client::conn::http1::{Builder, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use crate::{
    body::{self, Coding},
    dial::Stream,
    error::{EgressError, Reason},
    head_cap::{HeadCap, HeadsTooLarge},
    limits::Limits,
    response::Unpacked,
};

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub unpacked: Unpacked,
    /// Bytes of the body on the wire.
    pub received: u64,
}

/// Of which answers is the body read?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bodies {
    OfAll,
    /// A redirect that will be followed, or refused, has nothing to say.
    OfAllButRedirects,
}

pub async fn exchange(
    stream: Box<dyn Stream>,
    request: http::Request<Full<Bytes>>,
    bodies: Bodies,
    limits: &Limits,
    received: &AtomicU64,
) -> Result<Answer, EgressError> {
    let (sender, connection) = handshake(stream, limits).await?;
    driven(connection, talk(sender, request, bodies, limits, received)).await
}

/// Prepares a connection for one request. The head of the answer, with interim heads before it, is bounded.
pub async fn handshake(
    stream: Box<dyn Stream>,
    limits: &Limits,
) -> Result<(SendRequest<Full<Bytes>>, impl Future), EgressError> {
    let mut builder = Builder::new();
    builder.max_headers(limits.response_headers).max_header_size(limits.response_header_bytes);
    let capped = HeadCap::new(stream, limits.response_header_bytes);
    builder.handshake(TokioIo::new(capped)).await.map_err(|error| lost(&error))
}

/// Talks while the connection is kept going here, instead of in a task of its own: nothing outlives the request.
pub async fn driven<T>(connection: impl Future, talk: impl Future<Output = T>) -> T {
    let (mut connection, mut talk) = (pin!(connection), pin!(talk));
    tokio::select! {
        biased;
        answer = &mut talk => return answer,
        // What went wrong, or what was read before the end, reaches `talk` by its own way.
        _ = &mut connection => {}
    }
    talk.await
}

async fn talk(
    mut sender: SendRequest<Full<Bytes>>,
    request: http::Request<Full<Bytes>>,
    bodies: Bodies,
    limits: &Limits,
    received: &AtomicU64,
) -> Result<Answer, EgressError> {
    let head = timeout(limits.response_head, sender.send_request(request)).await;
    let late = |_| {
        EgressError::new(Reason::ResponseHeadersTimeout, "the server did not answer in time; try again later")
    };
    let response = head.map_err(late)?.map_err(|error| lost(&error))?;
    if response.status().is_informational() {
        let message = "the server switched to a protocol that nobody asked for";
        return Err(EgressError::new(Reason::InvalidResponse, message));
    }
    if bodies == Bodies::OfAllButRedirects
        && crate::redirect::is_redirect(response.status(), response.headers())
    {
        let (head, _) = response.into_parts();
        return Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: Bytes::new(),
            unpacked: Unpacked::AsSent,
            received: 0,
        });
    }
    read(response, limits, received).await
}

async fn read(
    response: Response<Incoming>,
    limits: &Limits,
    counter: &AtomicU64,
) -> Result<Answer, EgressError> {
    let (head, incoming) = response.into_parts();
    // An answer to HEAD names the coding of a body that it does not have.
    let coding = if incoming.is_end_stream() { None } else { Coding::of(&head.headers)? };
    let packed = body::read(incoming, limits, counter).await?;
    let received = u64::try_from(packed.len()).unwrap_or(u64::MAX);
    let (body, unpacked) = match coding {
        Some(coding) if !packed.is_empty() => {
            (body::unpack(coding, &packed, limits.response_body_bytes).await?, Unpacked::Decoded)
        }
        _ => (packed, Unpacked::AsSent),
    };
    Ok(Answer { status: head.status, headers: head.headers, body: body.into(), unpacked, received })
}

pub fn lost(error: &hyper::Error) -> EgressError {
    if error.is_parse_too_large() || HeadsTooLarge::caused(error) {
        let message = "the headers of the answer are too large";
        return EgressError::new(Reason::ResponseHeadersTooLarge, message);
    }
    if error.is_parse() {
        return EgressError::new(Reason::InvalidResponse, "the answer is not valid HTTP/1.1");
    }
    if error.is_incomplete_message() {
        return EgressError::new(
            Reason::ResponseTruncated,
            "the server closed the connection within the answer",
        );
    }
    EgressError::new(Reason::ConnectionLost, "the connection to the server was lost; try again later")
}
