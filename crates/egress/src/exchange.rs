//! Sends one request over one connection and reads its response. Dropping the future closes the connection.

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
    body::{self, ContentCoding},
    dial::NetStream,
    error::{EgressError, EgressReason},
    head_cap::{HeadCap, HeadsTooLarge, ResponseCounter},
    limits::EgressLimits,
    response::BodyState,
};

pub struct HttpAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub state: BodyState,
    /// Body bytes on the wire.
    pub received: u64,
}

/// Which response bodies are read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bodies {
    OfAll,
    /// The body of a redirect is skipped if the redirect is followed or rejected.
    OfAllButRedirects,
}

pub async fn exchange(
    stream: Box<dyn NetStream>,
    request: http::Request<Full<Bytes>>,
    bodies: Bodies,
    limits: &EgressLimits,
    received: &AtomicU64,
) -> Result<HttpAnswer, EgressError> {
    let (sender, connection) = handshake(stream, limits, ResponseCounter::default()).await?;
    drive(connection, talk(sender, request, bodies, limits, received)).await
}

/// Prepares a connection. Limits the size of each response head, interim heads included. A connection with several
/// requests announces each one to `responses`.
pub async fn handshake(
    stream: Box<dyn NetStream>,
    limits: &EgressLimits,
    responses: ResponseCounter,
) -> Result<(SendRequest<Full<Bytes>>, impl Future + Send + use<>), EgressError> {
    let mut builder = Builder::new();
    builder.max_headers(limits.response_headers).max_header_size(limits.response_header_bytes);
    let capped = HeadCap::new(stream, limits.response_header_bytes, responses);
    builder.handshake(TokioIo::new(capped)).await.map_err(|error| connection_error(&error))
}

/// Runs the connection and `talk` in the same task. Nothing keeps running after the request.
pub async fn drive<T>(connection: impl Future, talk: impl Future<Output = T>) -> T {
    let (mut connection, mut talk) = (pin!(connection), pin!(talk));
    tokio::select! {
        biased;
        answer = &mut talk => return answer,
        // `talk` receives the error, or the data that was read before the end.
        _ = &mut connection => {}
    }
    talk.await
}

async fn talk(
    mut sender: SendRequest<Full<Bytes>>,
    request: http::Request<Full<Bytes>>,
    bodies: Bodies,
    limits: &EgressLimits,
    received: &AtomicU64,
) -> Result<HttpAnswer, EgressError> {
    let head = timeout(limits.response_head, sender.send_request(request)).await;
    let response = head.map_err(|_| late_head())?.map_err(|error| connection_error(&error))?;
    reject_switch(&response)?;
    if bodies == Bodies::OfAllButRedirects
        && crate::redirect::is_redirect(response.status(), response.headers())
    {
        let (head, _) = response.into_parts();
        return Ok(HttpAnswer {
            status: head.status,
            headers: head.headers,
            body: Bytes::new(),
            state: BodyState::AsReceived,
            received: 0,
        });
    }
    read(response, limits, received).await
}

pub fn late_head() -> EgressError {
    let message = "the server did not answer in time; try again later";
    EgressError::new(EgressReason::ResponseHeadersTimeout, message)
}

pub fn reject_switch(response: &Response<Incoming>) -> Result<(), EgressError> {
    if !response.status().is_informational() {
        return Ok(());
    }
    let message = "the server switched to a protocol that was not requested";
    Err(EgressError::new(EgressReason::InvalidResponse, message))
}

async fn read(
    response: Response<Incoming>,
    limits: &EgressLimits,
    counter: &AtomicU64,
) -> Result<HttpAnswer, EgressError> {
    let (head, incoming) = response.into_parts();
    // A response to HEAD names the coding of a body that it does not have.
    let coding = if incoming.is_end_stream() { None } else { ContentCoding::of(&head.headers)? };
    let packed = body::read(incoming, limits, counter).await?;
    let received = u64::try_from(packed.len()).unwrap_or(u64::MAX);
    let (body, state) = match coding {
        Some(coding) if !packed.is_empty() => {
            (body::decompress(coding, &packed, limits.response_body_bytes).await?, BodyState::Decompressed)
        }
        _ => (packed, BodyState::AsReceived),
    };
    Ok(HttpAnswer { status: head.status, headers: head.headers, body: body.into(), state, received })
}

pub fn connection_error(error: &hyper::Error) -> EgressError {
    if error.is_parse_too_large() || HeadsTooLarge::caused(error) {
        let message = "the response headers are too large";
        return EgressError::new(EgressReason::ResponseHeadersTooLarge, message);
    }
    if error.is_parse() {
        return EgressError::new(EgressReason::InvalidResponse, "the response is not valid HTTP/1.1");
    }
    if error.is_incomplete_message() {
        return EgressError::new(
            EgressReason::ResponseTruncated,
            "the server closed the connection before the response was complete",
        );
    }
    EgressError::new(EgressReason::ConnectionLost, "the connection to the server was lost; try again later")
}
