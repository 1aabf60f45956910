//! A plain call, answered without the SDK's service for each request, which costs more than the call itself.
//!
//! Plain is a request that names a tool, its arguments and what the client says of itself, and nothing that anybody would have to
//! talk with the client about: of the stateless era, or in a session whose client cannot be asked in the middle of a call and wants
//! no messages. Whatever differs, however slightly, goes to the SDK, which knows the whole protocol: what is answered here is
//! answered as the SDK would. Nothing is refused here but what the SDK would take for one of several things.

mod answer;
mod message;
mod told;

use std::sync::Arc;

use axum::{body::Body, extract::Request};
use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use rmcp::model::{ProgressToken, ProtocolVersion, RequestId};
use serde_json::{Map, Value};
use toolgate_gate::Client;

pub use self::answer::{Maker, answer};
use self::message::{Arguments, Message, Meta, Params};
use super::{
    SESSION_HEADER, ask,
    call::plain,
    envelope::{self, MethodSet, Rejection},
    in_flight::IdReservation,
    negotiation::{EVENTS, JSON, normalise_accept, normalise_json, only},
    session::Known,
};

/// What a request is.
pub enum Kind {
    Plain(Box<PlainCall>),
    /// Unread, as it came.
    Other(Box<Request>),
    /// Its body is longer than a message may be.
    TooLong,
    /// Neither the gateway nor the SDK may serve it.
    Rejected(StatusCode, Rejection),
}

/// A call and nothing but a call.
#[derive(Debug)]
pub struct PlainCall {
    id: RequestId,
    tool: String,
    arguments: Map<String, Value>,
    client: Client,
    progress: Option<ProgressToken>,
    /// Can the client be asked by a result?
    shows_forms: bool,
    /// In a session, until it is answered.
    reservation: Option<IdReservation>,
}

/// Looks whether it is plain. `longest` is how much the SDK would read; `session` finds the caller's own by its id.
pub async fn kind_of(
    request: Request,
    longest: usize,
    session: impl FnOnce(&str) -> Option<Arc<Known>>,
) -> Kind {
    let (mut parts, body) = request.into_parts();
    normalise_accept(&mut parts.headers);
    if parts.method != Method::POST {
        return Kind::Other(Box::new(Request::from_parts(parts, body)));
    }
    if !normalise_json(&mut parts.headers) {
        let why = "Content-Type must be application/json";
        return Kind::Rejected(StatusCode::UNSUPPORTED_MEDIA_TYPE, Rejection::invalid_request(why));
    }
    let rejected = |rejection| Kind::Rejected(StatusCode::BAD_REQUEST, rejection);
    let body = match Limited::new(body, longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Kind::TooLong,
        Err(_) => return rejected(Rejection::not_json("the body ended early")),
    };
    if let Some(way) = Way::of(&parts.headers, session)
        && let Ok(message) = message::read(&body)
    {
        match way.take(message) {
            Taken::Plain(call) => return Kind::Plain(call),
            Taken::DuplicateId(id) => return rejected(Rejection::duplicate_id(id)),
            Taken::ForTheSdk => {}
        }
    }
    let is_stateless =
        only(&parts.headers, &VERSION) == Some(ProtocolVersion::V_2026_07_28.as_str().as_bytes());
    let methods = if is_stateless { MethodSet::Stateless } else { MethodSet::All };
    match envelope::read(&body, methods) {
        Ok(_) => Kind::Other(Box::new(Request::from_parts(parts, Body::from(body)))),
        Err(rejection) => rejected(rejection),
    }
}

/// The result of reading a message as a plain call.
enum Taken {
    Plain(Box<PlainCall>),
    /// Its session has a running request with this id.
    DuplicateId(RequestId),
    ForTheSdk,
}

/// How a plain call may come, by its headers.
enum Way<'h> {
    /// The body has to name the same tool.
    Stateless {
        name: &'h [u8],
        is_unattended: bool,
    },
    Session {
        id: &'h str,
        known: Arc<Known>,
    },
}

impl<'h> Way<'h> {
    /// With the headers that the protocol wants, each once.
    fn of(headers: &'h HeaderMap, session: impl FnOnce(&str) -> Option<Arc<Known>>) -> Option<Self> {
        let accepts = std::str::from_utf8(only(headers, &header::ACCEPT)?).ok()?;
        let version = only(headers, &VERSION)?;
        if only(headers, &header::CONTENT_TYPE) != Some(JSON.as_bytes())
            || !(accepts.contains(JSON) && accepts.contains(EVENTS))
        {
            return None;
        }
        if version == ProtocolVersion::V_2026_07_28.as_str().as_bytes() {
            let name = only(headers, &NAME).filter(|name| name.iter().copied().all(is_plain_in_a_name))?;
            let is_call = only(headers, &METHOD_HEADER) == Some(METHOD.as_bytes());
            return (is_call && !headers.contains_key(SESSION_HEADER))
                .then(|| Self::Stateless { name, is_unattended: ask::is_unattended(headers) });
        }
        let id = std::str::from_utf8(only(headers, &HeaderName::from_static(SESSION_HEADER))?).ok()?;
        let known = session(id)?;
        (known.protocol()?.as_bytes() == version).then_some(Self::Session { id, known })
    }

    fn take(self, message: Message) -> Taken {
        let Message { id, params: Params { name: tool, arguments, meta }, .. } = message;
        let arguments = arguments.map(|Arguments(members)| members).unwrap_or_default();
        let progress = meta.progress.clone();
        let (client, shows_forms, reservation) = match self {
            Self::Stateless { name, is_unattended } if name == tool.as_bytes() => match stateless(meta) {
                Some((client, shows_forms)) => (client, shows_forms && !is_unattended, None),
                None => return Taken::ForTheSdk,
            },
            Self::Stateless { .. } => return Taken::ForTheSdk,
            Self::Session { id: session, known } => {
                let says_nothing_new = !meta.is_stateless && meta.client.is_none() && meta.can.is_none();
                let Some(client) = known.client(session).filter(|_| says_nothing_new) else {
                    return Taken::ForTheSdk;
                };
                let Some(reservation) = known.begin(&id) else { return Taken::DuplicateId(id) };
                (client, false, Some(reservation))
            }
        };
        let call = PlainCall { id, tool, arguments, client, progress, shows_forms, reservation };
        Taken::Plain(Box::new(call))
    }
}

/// Reads from a stateless request who its client is, and whether the client can be asked by a result.
fn stateless(meta: Meta) -> Option<(Client, bool)> {
    let can = meta.can.filter(|_| meta.is_stateless)?;
    let client = Client {
        transport: "http",
        protocol: Some(ProtocolVersion::V_2026_07_28.as_str().to_owned()),
        name: meta.client.as_ref().map(|said| plain(&said.name)),
        version: meta.client.as_ref().map(|said| plain(&said.version)),
        conversation: None,
    };
    Some((client, ask::shows_forms(&can)))
}

/// Names with anything else may be written in another way in a header.
const fn is_plain_in_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

const METHOD: &str = "tools/call";
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const METHOD_HEADER: HeaderName = HeaderName::from_static("mcp-method");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

#[cfg(test)]
mod tests;
