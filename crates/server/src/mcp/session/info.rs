//! State of a session that is needed to answer its calls without the SDK.
//!
//! It holds the client's description, whether the client can be asked or wants log messages, and the running requests.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, Implementation, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use tokio_util::sync::CancellationToken;
use toolgate_gate::ClientInfo;

use crate::mcp::{
    call::describe_client,
    elicitation,
    in_flight::{IdReservation, InFlight},
};

/// Filled from the messages of a session on their way to the SDK.
#[derive(Debug, Default)]
pub struct SessionInfo {
    client: OnceLock<SessionClient>,
    /// The handshake is complete.
    is_ready: AtomicBool,
    /// The client asked for log messages.
    wants_messages: AtomicBool,
    in_flight: Arc<InFlight>,
    ended: CancellationToken,
}

#[derive(Debug)]
struct SessionClient {
    /// Without its conversation, which is the session's id.
    description: ClientInfo,
    shows_forms: bool,
}

/// What the client sent with `initialize`.
#[derive(Debug)]
pub struct InitializeParams {
    info: Implementation,
    shows_forms: bool,
}

impl InitializeParams {
    /// Returns `None` for any other message.
    pub fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let ClientRequest::InitializeRequest(request) = &request.request else { return None };
        Some(Self {
            info: request.params.client_info.clone(),
            shows_forms: elicitation::shows_forms(&request.params.capabilities),
        })
    }
}

impl SessionInfo {
    /// Stores the client's description, with the protocol version from the answer to `initialize`.
    pub fn initialize(&self, params: InitializeParams, answer: &ServerJsonRpcMessage) {
        let InitializeParams { info, shows_forms } = params;
        if let ServerJsonRpcMessage::Response(answer) = answer
            && let ServerResult::InitializeResult(result) = &answer.result
        {
            let protocol = result.protocol_version.as_str();
            let description = describe_client("http", Some(protocol), Some(&info), None);
            // The first `initialize` of a session counts.
            let _ = self.client.set(SessionClient { description, shows_forms });
        }
    }

    pub const fn ends_handshake(message: &ClientJsonRpcMessage) -> bool {
        matches!(message, ClientJsonRpcMessage::Notification(sent)
            if matches!(sent.notification, ClientNotification::InitializedNotification(_)))
    }

    pub fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Observes a message on its way to the SDK: cancellations also concern calls that the SDK does not see.
    pub fn observe(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
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

    /// The protocol version. Returns `None` if the SDK has to serve the session's calls.
    pub fn protocol(&self) -> Option<&str> {
        let needs_no_messages =
            self.is_ready.load(Ordering::Acquire) && !self.wants_messages.load(Ordering::Acquire);
        let client = self.client.get().filter(|client| needs_no_messages && !client.shows_forms)?;
        client.description.protocol.as_deref()
    }

    /// The client's description. The session is its conversation.
    pub fn client(&self, session: &str) -> Option<ClientInfo> {
        let description = self.client.get()?.description.clone();
        Some(ClientInfo { conversation: Some(session.to_owned()), ..description })
    }

    /// Returns `None` if a request of this session with the same id is still running.
    pub fn begin(&self, id: &RequestId) -> Option<IdReservation> {
        self.in_flight.reserve(id, self.ended.child_token())
    }

    /// Cancels the running calls of the session.
    pub fn end(&self) {
        self.ended.cancel();
    }
}
