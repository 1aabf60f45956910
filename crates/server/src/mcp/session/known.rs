//! What must be known of a session to answer its calls without the SDK? What its client said of itself, that it can be left alone
//! while a call runs, and which calls run.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage, ServerResult,
};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Client;

use crate::mcp::{
    ask,
    call::plain,
    in_flight::{IdReservation, InFlight},
};

/// What was seen of a session as it went by.
#[derive(Debug, Default)]
pub struct Known {
    said: OnceLock<Said>,
    /// Is the handshake over?
    is_ready: AtomicBool,
    /// Has the client asked for messages?
    wants_messages: AtomicBool,
    in_flight: Arc<InFlight>,
    ended: CancellationToken,
}

/// By the client, when it began the session.
#[derive(Debug)]
pub struct Said {
    name: String,
    version: String,
    shows_forms: bool,
    /// What both sides speak, once that is known.
    protocol: String,
}

impl Known {
    /// `None` for what does not begin a session.
    pub fn said_by(message: &ClientJsonRpcMessage) -> Option<Said> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let ClientRequest::InitializeRequest(request) = &request.request else { return None };
        Some(Said {
            name: plain(&request.params.client_info.name),
            version: plain(&request.params.client_info.version),
            shows_forms: ask::shows_forms(&request.params.capabilities),
            protocol: String::new(),
        })
    }

    pub fn introduce(&self, mut said: Said, answer: &ServerJsonRpcMessage) {
        if let ServerJsonRpcMessage::Response(answer) = answer
            && let ServerResult::InitializeResult(result) = &answer.result
        {
            said.protocol = plain(result.protocol_version.as_str());
            // A session is begun once.
            let _ = self.said.set(said);
        }
    }

    pub const fn ends_handshake(message: &ClientJsonRpcMessage) -> bool {
        matches!(message, ClientJsonRpcMessage::Notification(told)
            if matches!(told.notification, ClientNotification::InitializedNotification(_)))
    }

    pub fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// A message on its way to the SDK, which may concern what the SDK does not see.
    pub fn hear(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Notification(told) => {
                if let ClientNotification::CancelledNotification(told) = &told.notification
                    && let Some(id) = &told.params.request_id
                {
                    self.in_flight.cancel(id);
                }
            }
            ClientJsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::SetLevelRequest(_)) {
                    self.wants_messages.store(true, Ordering::Release);
                }
            }
            _ => {}
        }
    }

    /// What is spoken, where the session can be served without the SDK.
    pub fn protocol(&self) -> Option<&str> {
        let can_be_left_alone =
            self.is_ready.load(Ordering::Acquire) && !self.wants_messages.load(Ordering::Acquire);
        self.said
            .get()
            .filter(|said| can_be_left_alone && !said.shows_forms)
            .map(|said| said.protocol.as_str())
    }

    /// For the journal, and to keep one caller's flows apart.
    pub fn client(&self, session: &str) -> Option<Client> {
        self.said.get().map(|said| Client {
            transport: "http",
            protocol: Some(said.protocol.clone()),
            name: Some(said.name.clone()),
            version: Some(said.version.clone()),
            conversation: Some(session.to_owned()),
        })
    }

    /// Returns `None` if a request of this session with the same id is still running.
    pub fn begin(&self, id: &RequestId) -> Option<IdReservation> {
        self.in_flight.reserve(id, self.ended.child_token())
    }

    /// The session is over, and so is what runs in it.
    pub fn end(&self) {
        self.ended.cancel();
    }
}
