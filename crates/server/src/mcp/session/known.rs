//! What must be known of a session to answer its calls without the SDK? What its client said of itself, that it can be left alone
//! while a call runs, and which calls run.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage, ServerResult,
};
use tokio_util::sync::CancellationToken;
use toolgate_gate::Client;

use crate::mcp::{ask, call::plain};

/// What was seen of a session as it went by.
#[derive(Debug, Default)]
pub struct Known {
    said: OnceLock<Said>,
    /// Is the handshake over?
    is_ready: AtomicBool,
    /// Has the client asked for messages?
    wants_messages: AtomicBool,
    running: Mutex<HashMap<RequestId, CancellationToken>>,
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

/// A call that the client may give up.
#[derive(Debug)]
pub struct Running {
    known: Arc<Known>,
    id: RequestId,
    given_up: CancellationToken,
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
                    && let Some(call) = self.running().get(id)
                {
                    call.cancel();
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

    /// `None`: a call with this id is running, and which of them a client would give up by it could not be told.
    pub fn begin(self: &Arc<Self>, id: &RequestId) -> Option<Running> {
        let given_up = self.ended.child_token();
        let mut running = self.running();
        if running.contains_key(id) {
            return None;
        }
        running.insert(id.clone(), given_up.clone());
        drop(running);
        Some(Running { known: Arc::clone(self), id: id.clone(), given_up })
    }

    /// The session is over, and so is what runs in it.
    pub fn end(&self) {
        self.ended.cancel();
    }

    fn running(&self) -> MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Running {
    pub async fn given_up(&self) {
        self.given_up.cancelled().await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.known.running().remove(&self.id);
    }
}
