//! Keeps a stream open for announcements of the server: a GET in the session era, `subscriptions/listen` in the
//! stateless era.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::{Map, Value, json};
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};

use super::{
    ExchangeLimits, HttpMethod, HttpResponse,
    events::{EVENT_STREAM, EventBudget, EventStream, media_type},
    link::{HttpLink, LinkRequest},
};
use crate::{
    ServerIdentity, UpstreamError,
    connection::Requests,
    message::{self, Incoming, RequestLabel},
};

pub struct ChangeListener {
    link: Arc<HttpLink>,
    requests: Arc<Requests>,
    /// The parameters of `subscriptions/listen`; `None` in the session era.
    subscription: Option<Value>,
}

/// The position in the announcements.
struct ListenCursor {
    last_id: Option<String>,
    is_reopened: bool,
}

/// How one attempt to listen ended.
enum ListenEnd {
    /// The stream was open and may be opened again.
    Open,
    /// The server could not be reached, or failed.
    Failed,
    /// The server offers no stream.
    NotOffered,
}

impl ChangeListener {
    /// `None` if the server announced that it announces nothing.
    pub fn wanted(link: Arc<HttpLink>, requests: Arc<Requests>, server: &ServerIdentity) -> Option<Self> {
        let announced: Map<String, Value> = ["tools", "prompts", "resources"]
            .into_iter()
            .filter(|kind| link.announces(&format!("/{kind}/listChanged")))
            .map(|kind| (format!("{kind}ListChanged"), Value::Bool(true)))
            .collect();
        let updates_resources = !link.is_stateless() && link.announces("/resources/subscribe");
        if announced.is_empty() && !updates_resources {
            return None;
        }
        let subscription = link.is_stateless().then(|| {
            let params = Map::from_iter([("notifications".to_owned(), Value::Object(announced))]);
            Value::Object(server.with_metadata(params))
        });
        Some(Self { link, requests, subscription })
    }

    /// Runs until the server offers no stream, or forgets the session.
    pub async fn run(self) {
        let mut pause = MIN_PAUSE;
        let mut cursor = ListenCursor { last_id: None, is_reopened: false };
        loop {
            let started = Instant::now();
            match self.listen(&mut cursor).await {
                ListenEnd::NotOffered => return,
                ListenEnd::Open if started.elapsed() > LONG_LISTEN => pause = MIN_PAUSE,
                ListenEnd::Open | ListenEnd::Failed => pause = pause.saturating_mul(2).min(MAX_PAUSE),
            }
            sleep(pause).await;
        }
    }

    async fn listen(&self, cursor: &mut ListenCursor) -> ListenEnd {
        let limits = ExchangeLimits { head: HEAD, idle: IDLE, body_bytes: u64::MAX };
        let Ok(response) = self.link.send(self.exchange(cursor.last_id.as_deref(), limits)).await else {
            return ListenEnd::Failed;
        };
        if let Some(ended) = self.refused(&response) {
            return ended;
        }
        if cursor.is_reopened && cursor.last_id.is_none() && self.link.announces("/tools/listChanged") {
            // The server does not repeat what it announced while no stream was open.
            let method = "notifications/tools/list_changed".to_owned();
            self.requests.receive(Incoming::Notification { method, params: Value::Null });
        }
        cursor.is_reopened = true;
        let mut stream = EventStream::new(response.body, self.link.limits.message_bytes);
        let mut budget = EventBudget::of_stream();
        while let Ok(Some(event)) = stream.next_event().await {
            match budget.read(&event) {
                Ok(Some(incoming @ Incoming::Notification { .. })) => self.requests.receive(incoming),
                Ok(Some(incoming @ Incoming::Request { .. })) if self.subscription.is_none() => {
                    self.requests.receive(incoming);
                }
                // An error answers `subscriptions/listen`: the server does not know it.
                Ok(Some(Incoming::Answer { answer: Err(_), .. })) | Err(_) => return ListenEnd::NotOffered,
                // No answer to a request belongs here.
                Ok(_) => {}
            }
            if let Some(id) = stream.parser().last_id() {
                cursor.last_id = Some(id.to_owned());
            }
        }
        ListenEnd::Open
    }

    fn refused(&self, response: &HttpResponse) -> Option<ListenEnd> {
        match response.status {
            200 if media_type(response) == EVENT_STREAM => None,
            404 if self.link.has_session() => {
                self.link.forget_session();
                self.requests.refuse_new(UpstreamError::SessionLost);
                Some(ListenEnd::NotOffered)
            }
            429 | 500.. => Some(ListenEnd::Failed),
            _ => Some(ListenEnd::NotOffered),
        }
    }

    fn exchange(&self, last_id: Option<&str>, limits: ExchangeLimits) -> LinkRequest {
        let Some(params) = &self.subscription else {
            let headers = self.link.stream_headers(last_id);
            return LinkRequest { method: HttpMethod::Get, headers, body: Bytes::new(), limits };
        };
        let (_waits, abandoned) = oneshot::channel();
        let label = RequestLabel {
            id: self.requests.next_id(),
            method: LISTEN.to_owned(),
            params: params.clone(),
            deadline: HEAD,
            abandoned,
        };
        let headers = self.link.message_headers(Some(LISTEN), &json!({}));
        let body = Bytes::from(message::request(label).line);
        LinkRequest { method: HttpMethod::Post, headers, body, limits }
    }
}

const LISTEN: &str = "subscriptions/listen";
const HEAD: Duration = Duration::from_secs(30);
/// A quiet stream is opened again after this time, because a dead connection looks the same.
const IDLE: Duration = Duration::from_mins(10);
const LONG_LISTEN: Duration = Duration::from_mins(1);
const MIN_PAUSE: Duration = Duration::from_millis(500);
const MAX_PAUSE: Duration = Duration::from_mins(1);
