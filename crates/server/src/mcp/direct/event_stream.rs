//! The answer to a call that takes long, as a stream of server-sent events.
//!
//! Until the result is there, the stream carries progress notifications if the client asked for them, otherwise comments.
//! Without either, proxies would cut the silent connection.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    body::{Body, Bytes},
    response::{IntoResponse, Response},
};
use futures_core::Stream;
use http::{HeaderName, HeaderValue, header};
use rmcp::model::{ProgressNotification, ServerJsonRpcMessage, ServerNotification};
use tokio::time::{Instant, Sleep, sleep};

use super::answer::{CallEnd, Work};
use crate::mcp::{negotiation::EVENTS, notify::ProgressSchedule};

/// Sends the first event at once.
pub fn response(work: Work, mut schedule: ProgressSchedule) -> Response {
    let first = waiting_event(&schedule);
    let timer = Box::pin(sleep(schedule.next()));
    let stream = CallEventStream { first: Some(first), work: Some(work), schedule, timer };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(EVENTS)),
        // Without this header some proxies buffer the events until the end.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(stream)).into_response()
}

/// For a call that its client cancelled.
pub fn empty() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS))], Body::empty()).into_response()
}

struct CallEventStream {
    first: Option<Bytes>,
    /// `None` after the last event.
    work: Option<Work>,
    schedule: ProgressSchedule,
    timer: Pin<Box<Sleep>>,
}

impl Stream for CallEventStream {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let stream = self.get_mut();
        if let Some(first) = stream.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let Some(work) = &mut stream.work else { return Poll::Ready(None) };
        if let Poll::Ready(end) = work.as_mut().poll(context) {
            stream.work = None;
            return Poll::Ready(match end {
                CallEnd::Answered(message) => Some(Ok(event(&message))),
                CallEnd::Cancelled | CallEnd::Unanswered => None,
            });
        }
        if stream.timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let event = waiting_event(&stream.schedule);
        stream.timer.as_mut().reset(Instant::now() + stream.schedule.next());
        Poll::Ready(Some(Ok(event)))
    }
}

/// A progress notification, or a comment for clients that did not ask for progress.
fn waiting_event(schedule: &ProgressSchedule) -> Bytes {
    let message = schedule.progress().and_then(|progress| {
        let progress = ServerNotification::ProgressNotification(ProgressNotification::new(progress));
        serde_json::to_vec(&ServerJsonRpcMessage::notification(progress)).ok()
    });
    message.map_or_else(|| Bytes::from_static(b":\n\n"), |message| event(&message))
}

/// Serialized JSON contains no line breaks, which would end the event.
fn event(message: &[u8]) -> Bytes {
    [b"data: ", message, b"\n\n"].concat().into()
}
