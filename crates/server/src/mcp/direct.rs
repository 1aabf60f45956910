//! The direct entrance: HTTP calls that are answered without the SDK, whose service costs more per request than the call itself.
//!
//! A direct call is a `tools/call` request that needs no other message to or from its client: it is stateless, or its session
//! has a client that cannot be asked during a call and wants no log messages. Every other request goes to the SDK. Both
//! entrances run calls with `call.rs` and answer alike.

mod answer;
mod event_stream;
mod message;

use std::sync::Arc;

use axum::{body::Body, extract::Request};
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use rmcp::model::{ProgressToken, ProtocolVersion, RequestId};
use serde_json::{Map, Value};
use toolgate_gate::ClientInfo;

pub use self::answer::answer;
use self::message::{ArgumentObject, CallMessage, Meta, Params};
use super::{
    SESSION_HEADER,
    call::describe_client,
    elicitation,
    envelope::{self, MethodSet, Rejection},
    in_flight::IdReservation,
    negotiation::{EVENTS, JSON, normalise_accept, normalise_json, only},
    session::SessionInfo,
};

/// Who serves a request.
pub enum RequestKind {
    Direct(Box<DirectCall>),
    /// For the SDK, with its body unchanged.
    Sdk(Box<Request>),
    /// The body is longer than a message may be.
    TooLong,
    /// Malformed, or its id is in use.
    Rejected(StatusCode, Rejection),
}

/// A call that is answered without the SDK.
#[derive(Debug)]
pub struct DirectCall {
    id: RequestId,
    tool: String,
    arguments: Map<String, Value>,
    client: ClientInfo,
    progress: Option<ProgressToken>,
    /// The client can be asked by a result.
    shows_forms: bool,
    /// Keeps the id in use until the answer. `None` without a session.
    reservation: Option<IdReservation>,
}

/// Classifies a request. `longest` is the size limit of the body; `session` finds a session of the caller by its id.
pub async fn kind_of(
    request: Request,
    longest: usize,
    session: impl FnOnce(&str) -> Option<Arc<SessionInfo>>,
) -> RequestKind {
    let (mut parts, body) = request.into_parts();
    normalise_accept(&mut parts.headers);
    if parts.method != Method::POST {
        return RequestKind::Sdk(Box::new(Request::from_parts(parts, body)));
    }
    if !normalise_json(&mut parts.headers) {
        let why = "Content-Type must be application/json";
        return RequestKind::Rejected(StatusCode::UNSUPPORTED_MEDIA_TYPE, Rejection::invalid_request(why));
    }
    let rejected = |rejection| RequestKind::Rejected(StatusCode::BAD_REQUEST, rejection);
    let body = match Limited::new(body, longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return RequestKind::TooLong,
        Err(_) => return rejected(Rejection::not_json("the body ended early")),
    };
    if let Some(headers) = CallHeaders::of(&parts.headers, session)
        && let Ok(message) = message::read(&body)
    {
        match headers.combine(message) {
            CallReading::Direct(call) => return RequestKind::Direct(call),
            CallReading::DuplicateId(id) => return rejected(Rejection::duplicate_id(id)),
            CallReading::ForTheSdk => {}
        }
    }
    let is_stateless =
        only(&parts.headers, &VERSION) == Some(ProtocolVersion::V_2026_07_28.as_str().as_bytes());
    let methods = if is_stateless { MethodSet::Stateless } else { MethodSet::All };
    match envelope::read(&body, methods) {
        Ok(_) => RequestKind::Sdk(Box::new(Request::from_parts(parts, Body::from(body)))),
        Err(rejection) => rejected(rejection),
    }
}

/// The result of reading a message as a direct call.
enum CallReading {
    Direct(Box<DirectCall>),
    /// The session has a running request with this id.
    DuplicateId(RequestId),
    ForTheSdk,
}

/// The headers of a direct call.
enum CallHeaders<'h> {
    /// `name` must equal the tool's name in the body.
    Stateless {
        name: &'h [u8],
        is_unattended: bool,
    },
    Session {
        id: &'h str,
        info: Arc<SessionInfo>,
    },
}

impl<'h> CallHeaders<'h> {
    /// Requires each header of the protocol exactly once.
    fn of(headers: &'h HeaderMap, session: impl FnOnce(&str) -> Option<Arc<SessionInfo>>) -> Option<Self> {
        let accepts = std::str::from_utf8(only(headers, &header::ACCEPT)?).ok()?;
        let version = only(headers, &VERSION)?;
        if only(headers, &header::CONTENT_TYPE) != Some(JSON.as_bytes())
            || !(accepts.contains(JSON) && accepts.contains(EVENTS))
        {
            return None;
        }
        if version == ProtocolVersion::V_2026_07_28.as_str().as_bytes() {
            let name = only(headers, &NAME).filter(|name| name.iter().copied().all(has_one_spelling))?;
            let is_call = only(headers, &METHOD_HEADER) == Some(METHOD.as_bytes());
            return (is_call && !headers.contains_key(SESSION_HEADER))
                .then(|| Self::Stateless { name, is_unattended: elicitation::is_unattended(headers) });
        }
        let id = std::str::from_utf8(only(headers, &HeaderName::from_static(SESSION_HEADER))?).ok()?;
        let info = session(id)?;
        (info.protocol()?.as_bytes() == version).then_some(Self::Session { id, info })
    }

    fn combine(self, message: CallMessage) -> CallReading {
        let CallMessage { id, params: Params { name: tool, arguments, meta }, .. } = message;
        let arguments = arguments.map(|ArgumentObject(members)| members).unwrap_or_default();
        let progress = meta.progress.clone();
        let (client, shows_forms, reservation) = match self {
            Self::Stateless { name, is_unattended } if name == tool.as_bytes() => {
                match stateless_client(meta) {
                    Some((client, shows_forms)) => (client, shows_forms && !is_unattended, None),
                    None => return CallReading::ForTheSdk,
                }
            }
            Self::Stateless { .. } => return CallReading::ForTheSdk,
            Self::Session { id: session, info } => {
                let has_client_meta = meta.is_stateless || meta.client.is_some() || meta.can.is_some();
                let Some(client) = info.client(session).filter(|_| !has_client_meta) else {
                    return CallReading::ForTheSdk;
                };
                let Some(reservation) = info.begin(&id) else { return CallReading::DuplicateId(id) };
                (client, false, Some(reservation))
            }
        };
        let call = DirectCall { id, tool, arguments, client, progress, shows_forms, reservation };
        CallReading::Direct(Box::new(call))
    }
}

/// Reads the client from `_meta` of a stateless request, and whether it can be asked by a result.
fn stateless_client(meta: Meta) -> Option<(ClientInfo, bool)> {
    let can = meta.can.filter(|_| meta.is_stateless)?;
    let protocol = Some(ProtocolVersion::V_2026_07_28.as_str());
    Some((describe_client("http", protocol, meta.client.as_ref(), None), elicitation::shows_forms(&can)))
}

/// A header may encode any other byte in several ways.
const fn has_one_spelling(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

const METHOD: &str = "tools/call";
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

#[cfg(test)]
mod tests;
