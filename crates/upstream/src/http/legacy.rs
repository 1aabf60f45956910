//! HTTP+SSE of protocol version 2024-11-05: one event stream for all answers, and a second URL for messages.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use url::Url;

use super::{
    ExchangeLimits, HttpClient, HttpEndpoint, HttpMethod,
    events::{EVENT_STREAM, EventBudget, EventStream, media_type, read_body},
    link::{HttpLink, LinkRequest, challenge},
};
use crate::{
    ClientIdentity, Connection, ConnectionLimits, UpstreamError,
    connection::Requests,
    message::{Incoming, OutgoingKind, OutgoingMessage},
};

pub async fn open(
    http: Arc<dyn HttpClient>,
    endpoint: HttpEndpoint,
    identity: &ClientIdentity,
    limits: ConnectionLimits,
) -> Result<Connection, UpstreamError> {
    let link = HttpLink::new(http, endpoint, limits);
    let opened = timeout(limits.setup, open_stream(&link)).await;
    let late = || UpstreamError::TimedOut { method: "endpoint".to_owned(), after: limits.setup };
    let (stream, url) = opened.map_err(|_| late())??;
    let (requests, queue) = Requests::new(limits);
    let reader = tokio::spawn(read_all(stream, Arc::clone(&requests)));
    let writer = tokio::spawn(write_all(Arc::new(link.at(url)), Arc::clone(&requests), queue));
    let tasks: Vec<JoinHandle<()>> = vec![reader, writer];
    Connection::assemble(requests, tasks, None, identity, limits).await
}

/// Opens the event stream and waits for its first event, the URL for messages.
async fn open_stream(link: &HttpLink) -> Result<(EventStream, Url), UpstreamError> {
    let limits = ExchangeLimits { head: link.limits.setup, idle: IDLE, body_bytes: u64::MAX };
    let headers = link.stream_headers(None);
    let exchange = LinkRequest { method: HttpMethod::Get, headers, body: Bytes::new(), limits };
    let response = link.send(exchange).await?;
    if let Some(challenge) = challenge(&response) {
        return Err(UpstreamError::Unauthorized(Box::new(challenge)));
    }
    if response.status != 200 || media_type(&response) != EVENT_STREAM {
        return Err(UpstreamError::HttpStatus { status: response.status });
    }
    let mut stream = EventStream::new(response.body, link.limits.message_bytes);
    let first = stream.next_event().await?;
    let first = first.filter(|event| event.name == "endpoint" && event.data.len() <= URL_BYTES);
    let text = first.and_then(|event| String::from_utf8(event.data).ok());
    let url = text.and_then(|text| link.url().join(text.trim()).ok());
    let url = url.ok_or_else(|| broken("its event stream does not begin with an endpoint"))?;
    // The token and the configured headers go there.
    if url.origin() != link.url().origin() {
        return Err(broken("its endpoint for messages has another origin"));
    }
    Ok((stream, url))
}

async fn read_all(mut stream: EventStream, requests: Arc<Requests>) {
    let mut budget = EventBudget::of_stream();
    let why = loop {
        let event = match stream.next_event().await {
            Ok(Some(event)) => event,
            Ok(None) => break UpstreamError::Closed,
            Err(end) => break end.into(),
        };
        match budget.read(&event) {
            Ok(Some(incoming)) => requests.receive(incoming),
            Ok(None) => {}
            Err(error) => break error,
        }
    };
    requests.close(why);
}

async fn write_all(link: Arc<HttpLink>, requests: Arc<Requests>, mut queue: mpsc::Receiver<OutgoingMessage>) {
    let mut tasks = JoinSet::new();
    loop {
        let message = tokio::select! {
            message = queue.recv() => message,
            Some(_) = tasks.join_next() => continue,
        };
        let Some(OutgoingMessage { line, kind }) = message else { return };
        let id = match kind {
            OutgoingKind::Request(label) => Some(label.id),
            OutgoingKind::Notification { .. } | OutgoingKind::Answer => None,
        };
        if tasks.len() >= CONCURRENT_POSTS {
            // Wait for one of them: the messages keep their order, and the queue is bounded.
            let _ = tasks.join_next().await;
        }
        let (link, requests) = (Arc::clone(&link), Arc::clone(&requests));
        tasks.spawn(async move {
            let posted = post(&link, Bytes::from(line)).await;
            if let (Err(error), Some(id)) = (posted, id) {
                requests.receive(Incoming::Answer { id, answer: Err(error) });
            }
        });
    }
}

/// Sends a message. Its answer arrives on the event stream.
async fn post(link: &HttpLink, body: Bytes) -> Result<(), UpstreamError> {
    let limits =
        ExchangeLimits { head: link.limits.setup, idle: link.limits.setup, body_bytes: RESPONSE_BYTES };
    let headers = link.message_headers(None, &Value::Null);
    let response = link.send(LinkRequest { method: HttpMethod::Post, headers, body, limits }).await?;
    if let Some(challenge) = challenge(&response) {
        return Err(UpstreamError::Unauthorized(Box::new(challenge)));
    }
    let status = response.status;
    if !(200..300).contains(&status) {
        return Err(UpstreamError::HttpStatus { status });
    }
    // Read for the connection's sake. A server may answer with any text.
    let _ = timeout(link.limits.setup, read_body(response, ACCEPTED_BYTES)).await;
    Ok(())
}

fn broken(why: &str) -> UpstreamError {
    UpstreamError::Protocol(why.to_owned())
}

const URL_BYTES: usize = 8 * 1024;
const CONCURRENT_POSTS: usize = 16;
const RESPONSE_BYTES: u64 = 64 * 1024;
const ACCEPTED_BYTES: usize = 16 * 1024;
/// Servers send a comment every few seconds or nothing at all.
const IDLE: std::time::Duration = std::time::Duration::from_hours(1);
