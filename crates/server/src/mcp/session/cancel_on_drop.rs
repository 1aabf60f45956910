//! Cancels a request of a session when its client disconnects.

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

/// The answer stream of one request. Dropping it before its end cancels the request: answers are not kept for clients that
/// reconnect.
pub struct CancelOnDrop<S> {
    answer: Pin<Box<S>>,
    request: Option<SessionRequest>,
    /// Dropped before the client can read the answer, because the client may then reuse the id.
    reservation: Option<IdReservation>,
}

struct SessionRequest {
    sessions: Arc<LocalSessionManager>,
    session: SessionId,
    id: RequestId,
}

impl<S> CancelOnDrop<S> {
    pub fn new(
        answer: S,
        sessions: Arc<LocalSessionManager>,
        session: SessionId,
        request: Option<(RequestId, IdReservation)>,
    ) -> Self {
        let (id, reservation) = request.unzip();
        let request = id.map(|id| SessionRequest { sessions, session, id });
        Self { answer: Box::pin(answer), request, reservation }
    }
}

impl<S: Stream<Item = ServerSseMessage>> Stream for CancelOnDrop<S> {
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

impl<S> Drop for CancelOnDrop<S> {
    fn drop(&mut self) {
        if let Some(request) = self.request.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(request.cancel());
        }
    }
}

impl SessionRequest {
    async fn cancel(self) {
        let params =
            CancelledNotificationParam::new(Some(self.id), Some("the client disconnected".to_owned()));
        let cancelled = ClientNotification::CancelledNotification(CancelledNotification::new(params));
        // A session that has ended has cancelled its requests itself.
        let _ =
            self.sessions.accept_message(&self.session, ClientJsonRpcMessage::notification(cancelled)).await;
    }
}
