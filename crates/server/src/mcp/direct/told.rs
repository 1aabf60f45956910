//! What does a client hear that has to wait for its answer? Progress where it wants to know, else that the connection is alive: what
//! stands between would cut one on which nothing is said.

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

use super::answer::{End, Work};
use crate::mcp::{negotiation::EVENTS, notify::Pace};

/// Begins to tell at once.
pub fn response(work: Work, mut pace: Pace) -> Response {
    let first = event_of(&pace);
    let timer = Box::pin(sleep(pace.next()));
    stream(Told { first: Some(first), work: Some(work), pace, timer })
}

/// For a call that its client has given up.
pub fn nothing() -> Response {
    ([(header::CONTENT_TYPE, HeaderValue::from_static(EVENTS))], Body::empty()).into_response()
}

fn stream(told: Told) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(EVENTS)),
        // Or some proxies keep what is told until the end.
        (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(told)).into_response()
}

struct Told {
    first: Option<Bytes>,
    /// `None` once there is nothing more to tell.
    work: Option<Work>,
    pace: Pace,
    timer: Pin<Box<Sleep>>,
}

impl Stream for Told {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let told = self.get_mut();
        if let Some(first) = told.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        let Some(work) = &mut told.work else { return Poll::Ready(None) };
        if let Poll::Ready(end) = work.as_mut().poll(context) {
            told.work = None;
            return Poll::Ready(match end {
                End::Answered(message) => Some(Ok(event(&message))),
                End::GivenUp | End::Unanswered => None,
            });
        }
        if told.timer.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let event = event_of(&told.pace);
        told.timer.as_mut().reset(Instant::now() + told.pace.next());
        Poll::Ready(Some(Ok(event)))
    }
}

fn event_of(pace: &Pace) -> Bytes {
    let told = pace.progress().and_then(|progress| {
        let told = ServerNotification::ProgressNotification(ProgressNotification::new(progress));
        serde_json::to_vec(&ServerJsonRpcMessage::notification(told)).ok()
    });
    told.map_or_else(|| Bytes::from_static(b":\n\n"), |told| event(&told))
}

/// JSON has no line breaks of its own.
fn event(message: &[u8]) -> Bytes {
    [b"data: ", message, b"\n\n"].concat().into()
}
