//! Streamable HTTP: each message to the server is a POST, and the answer is its response.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::Value;
use tokio::{
    sync::{Semaphore, mpsc},
    time::{sleep, timeout},
};

use super::{
    ExchangeLimits, HttpMethod, HttpResponse,
    events::{EVENT_STREAM, EventBudget, EventStream, StreamEnd, media_type, read_body},
    link::{HttpLink, LinkRequest, challenge, session_id},
};
use crate::{
    UpstreamError,
    connection::Requests,
    message::{self, Incoming, METHOD_NOT_FOUND, OutgoingKind, OutgoingMessage, RequestLabel},
};

/// Sends each message of the queue in a task. Ends when the connection is dropped.
pub async fn dispatch(
    link: Arc<HttpLink>,
    requests: Arc<Requests>,
    mut queue: mpsc::Receiver<OutgoingMessage>,
) {
    // The tasks end with this one.
    let mut tasks = tokio::task::JoinSet::new();
    let others = Arc::new(Semaphore::new(CONCURRENT_OTHERS));
    loop {
        let message = tokio::select! {
            message = queue.recv() => message,
            Some(_) = tasks.join_next() => continue,
        };
        let Some(OutgoingMessage { line, kind }) = message else { return };
        let body = Bytes::from(line);
        match kind {
            OutgoingKind::Request(label) => {
                let pending = RequestTask { link: Arc::clone(&link), requests: Arc::clone(&requests), body };
                tasks.spawn(pending.run(label));
            }
            OutgoingKind::Notification { method } if method == "notifications/initialized" => {
                // The server must know before the next request that this one arrived.
                notify(&link, body).await;
            }
            // In the stateless era the end of a request's connection cancels it, and servers ask nothing.
            _ if link.is_stateless() => {}
            OutgoingKind::Notification { .. } | OutgoingKind::Answer => {
                // A server that floods us with requests gets no answer to some of them.
                let Ok(permit) = Arc::clone(&others).try_acquire_owned() else { continue };
                let link = Arc::clone(&link);
                tasks.spawn(async move {
                    notify(&link, body).await;
                    drop(permit);
                });
            }
        }
    }
}

/// Sends a message that has no answer. A failure shows in the next request.
async fn notify(link: &HttpLink, body: Bytes) {
    let limits = ExchangeLimits { head: NOTIFY, idle: NOTIFY, body_bytes: NOTIFY_BYTES };
    let headers = link.message_headers(None, &Value::Null);
    let exchange = LinkRequest { method: HttpMethod::Post, headers, body, limits };
    let sent = timeout(NOTIFY, link.send(exchange)).await;
    if let Ok(Ok(response)) = sent {
        // Reads the empty body. Only then can the connection be used again.
        let _ = timeout(NOTIFY, read_body(response, 1024)).await;
    }
}

struct RequestTask {
    link: Arc<HttpLink>,
    requests: Arc<Requests>,
    body: Bytes,
}

/// An answer, and the response that it came in, if that has not ended.
type Answered = (Result<Value, UpstreamError>, Option<EventStream>);

impl RequestTask {
    async fn run(self, label: RequestLabel) {
        let RequestLabel { id, method, params, deadline, abandoned } = label;
        let answered = tokio::select! {
            answered = self.ask(id, &method, &params, deadline) => answered,
            // The caller no longer waits. Dropping `ask` closes the connection.
            _ = abandoned => return,
        };
        let (answer, rest) = answered.unwrap_or_else(|error| (Err(error), None));
        if answer == Err(UpstreamError::SessionLost) {
            self.link.forget_session();
            self.requests.refuse_new(UpstreamError::SessionLost);
        }
        self.requests.receive(Incoming::Answer { id, answer });
        if let Some(rest) = rest {
            let _ = timeout(DRAIN, rest.drain()).await;
        }
    }

    async fn ask(
        &self,
        id: u64,
        method: &str,
        params: &Value,
        deadline: Duration,
    ) -> Result<Answered, UpstreamError> {
        let most = self.link.limits.message_bytes;
        let body_bytes = u64::try_from(most).unwrap_or(u64::MAX).saturating_mul(STREAM_FACTOR);
        let limits = ExchangeLimits { head: deadline, idle: deadline, body_bytes };
        let headers = self.link.message_headers(Some(method), params);
        let exchange = LinkRequest { method: HttpMethod::Post, headers, body: self.body.clone(), limits };
        let response = self.link.send(exchange).await?;
        if !(200..300).contains(&response.status) {
            return Err(self.refusal(response).await);
        }
        let session = if method == "initialize" { session_id(&response)? } else { None };
        let (mut answer, rest) = match media_type(&response).as_str() {
            "application/json" => (json_answer(id, &read_body(response, most).await?)?, None),
            EVENT_STREAM => {
                let stream = EventStream::new(response.body, most);
                let (answer, rest) = self.read_stream(id, stream, limits).await?;
                (answer, Some(rest))
            }
            _ => return Err(invalid("it answered a request with neither JSON nor an event stream")),
        };
        if let Ok(result) = &mut answer {
            self.link.learn(method, session, result);
        }
        Ok((answer, rest))
    }

    /// Reads events until the answer arrives. Resumes a stream that ended before.
    async fn read_stream(
        &self,
        id: u64,
        mut stream: EventStream,
        limits: ExchangeLimits,
    ) -> Result<(Result<Value, UpstreamError>, EventStream), UpstreamError> {
        let mut budget = EventBudget::of_request();
        let mut last_id = None;
        for resumed in 0..=RESUMPTIONS {
            let ended = loop {
                let event = match stream.next_event().await {
                    Ok(Some(event)) => event,
                    Ok(None) => break "the response ended early".to_owned(),
                    Err(StreamEnd::Broken(error)) => break error.to_string(),
                    Err(invalid) => return Err(invalid.into()),
                };
                match budget.read(&event)? {
                    Some(Incoming::Answer { id: answered, answer }) if answered == id => {
                        return Ok((answer, stream));
                    }
                    // An answer to another request does not belong here.
                    Some(Incoming::Answer { .. }) | None => {}
                    Some(incoming) => self.requests.receive(incoming),
                }
            };
            last_id = stream.parser().last_id().map(str::to_owned).or(last_id);
            let Some(last_id) = last_id.as_deref().filter(|_| !self.link.is_stateless()) else {
                return Err(UpstreamError::Lost(ended));
            };
            if resumed == RESUMPTIONS {
                break;
            }
            sleep(stream.parser().retry().unwrap_or(RETRY).clamp(MIN_RETRY, MAX_RETRY)).await;
            stream = self.resume(last_id, limits).await?;
        }
        Err(UpstreamError::Lost("the response broke off too often".to_owned()))
    }

    /// Every failure is `Lost`: the request was sent before.
    async fn resume(&self, last_id: &str, limits: ExchangeLimits) -> Result<EventStream, UpstreamError> {
        let headers = self.link.stream_headers(Some(last_id));
        let exchange = LinkRequest { method: HttpMethod::Get, headers, body: Bytes::new(), limits };
        let lost = |why: String| UpstreamError::Lost(format!("the response cannot be resumed: {why}"));
        let response = self.link.send(exchange).await.map_err(|error| lost(error.to_string()))?;
        if response.status != 200 || media_type(&response) != EVENT_STREAM {
            return Err(lost(format!("HTTP status {}", response.status)));
        }
        Ok(EventStream::new(response.body, self.link.limits.message_bytes))
    }

    /// Reads a response that is not a success.
    async fn refusal(&self, response: HttpResponse) -> UpstreamError {
        if let Some(challenge) = challenge(&response) {
            return UpstreamError::Unauthorized(Box::new(challenge));
        }
        let status = response.status;
        let may_explain = media_type(&response) == "application/json";
        let body = if may_explain { read_body(response, ERROR_BYTES).await.ok() } else { None };
        // The id of such an error is often missing, because the server refused the message before it read it.
        let explained = body.and_then(|body| match message::read(&body) {
            Ok(Incoming::Answer { answer: Err(error), .. }) => Some(error),
            Ok(Incoming::Stray) => error_of(&body),
            _ => None,
        });
        let is_unknown_method =
            matches!(explained, Some(UpstreamError::Server { code: METHOD_NOT_FOUND, .. }));
        if status == 404 && self.link.has_session() && !is_unknown_method {
            return UpstreamError::SessionLost;
        }
        explained.unwrap_or(UpstreamError::HttpStatus { status })
    }
}

fn json_answer(id: u64, body: &[u8]) -> Result<Result<Value, UpstreamError>, UpstreamError> {
    match message::read(body)? {
        Incoming::Answer { id: answered, answer } if answered == id => Ok(answer),
        // An error without an id answers the only message of this exchange.
        Incoming::Stray => error_of(body).map(Err).ok_or_else(|| invalid("its answer has another id")),
        Incoming::Answer { .. } => Err(invalid("its answer has another id")),
        _ => Err(invalid("its answer is not a JSON-RPC answer")),
    }
}

/// The error of an answer whose id is missing or unknown.
fn error_of(body: &[u8]) -> Option<UpstreamError> {
    let message: Value = serde_json::from_slice(body).ok()?;
    let error = message.get("error")?;
    let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
    Some(UpstreamError::server(code, error.get("message").and_then(Value::as_str).unwrap_or_default()))
}

fn invalid(why: &str) -> UpstreamError {
    UpstreamError::Protocol(why.to_owned())
}

/// Notifications and answers that are sent at once.
const CONCURRENT_OTHERS: usize = 8;
const NOTIFY: Duration = Duration::from_secs(10);
const NOTIFY_BYTES: u64 = 64 * 1024;
/// The events of one response together may be this many times longer than one message.
const STREAM_FACTOR: u64 = 16;
const ERROR_BYTES: usize = 64 * 1024;
const RESUMPTIONS: u32 = 5;
const RETRY: Duration = Duration::from_millis(500);
const MIN_RETRY: Duration = Duration::from_millis(10);
const MAX_RETRY: Duration = Duration::from_secs(30);
/// How long the rest of a response is read after its answer.
const DRAIN: Duration = Duration::from_secs(2);
