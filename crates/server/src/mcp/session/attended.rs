//! Does the client still wait for the answer to its request? One that has gone away has given it up.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use rmcp::{
    model::{
        CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification,
        RequestId, ServerJsonRpcMessage,
    },
    transport::streamable_http_server::{
        SessionId, SessionManager as _,
        session::{ServerSseMessage, local::LocalSessionManager},
    },
};

use crate::mcp::in_flight::IdReservation;

/// The answer to one request of a session. Dropped before its end, it cancels the request, as the client would have
/// done: the answers are not kept for somebody who comes back, so nothing is to run for nobody.
pub struct Attended<S> {
    answer: Pin<Box<S>>,
    request: Option<Request>,
    /// Dropped with the answer, before the client can read it: it may use the id again then.
    reservation: Option<IdReservation>,
}

struct Request {
    sessions: Arc<LocalSessionManager>,
    session: SessionId,
    id: RequestId,
}

impl<S> Attended<S> {
    pub fn new(
        answer: S,
        sessions: Arc<LocalSessionManager>,
        session: SessionId,
        request: Option<(RequestId, IdReservation)>,
    ) -> Self {
        let (id, reservation) = request.unzip();
        let request = id.map(|id| Request { sessions, session, id });
        Self { answer: Box::pin(answer), request, reservation }
    }
}

impl<S: Stream<Item = ServerSseMessage>> Stream for Attended<S> {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let polled = self.answer.as_mut().poll_next(context);
        match &polled {
            Poll::Ready(None) => (self.request, self.reservation) = (None, None),
            Poll::Ready(Some(event)) if is_answer(event) => self.reservation = None,
            _ => {}
        }
        polled
    }
}

fn is_answer(event: &ServerSseMessage) -> bool {
    let message = event.message.as_deref();
    matches!(message, Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)))
}

impl<S> Drop for Attended<S> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(request.cancel());
        }
    }
}

impl Request {
    async fn cancel(self) {
        let params = CancelledNotificationParam::new(Some(self.id), Some("the client went away".to_owned()));
        let cancelled = ClientNotification::CancelledNotification(CancelledNotification::new(params));
        // A session that is gone has cancelled its requests itself.
        let _ =
            self.sessions.accept_message(&self.session, ClientJsonRpcMessage::notification(cancelled)).await;
    }
}
