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
use http::{HeaderMap, Method, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use rmcp::model::{ProgressToken, ProtocolVersion, RequestId};
use serde_json::{Map, Value};
use toolgate_gate::Client;

pub use self::answer::{Maker, ambiguous, answer};
use self::message::{Arguments, Message, Meta, Params};
use super::{
    SESSION_HEADER, ask,
    call::plain,
    one_reading,
    session::{Known, Running},
};

/// What a request is.
pub enum Kind {
    Plain(Box<PlainCall>),
    /// Unread, as it came.
    Other(Box<Request>),
    /// Its body broke off.
    Broken,
    /// Its body is longer than a message may be.
    TooLong,
    /// Its body names a member twice.
    Ambiguous,
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
    running: Option<Running>,
}

/// Looks whether it is plain. `longest` is how much the SDK would read; `session` finds the caller's own by its id.
pub async fn kind_of(
    request: Request,
    longest: usize,
    session: impl FnOnce(&str) -> Option<Arc<Known>>,
) -> Kind {
    if request.method() != Method::POST {
        return Kind::Other(Box::new(request));
    }
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Kind::TooLong,
        Err(_) => return Kind::Broken,
    };
    if let Some(way) = Way::of(&parts.headers, session)
        && let Ok(message) = message::read(&body)
        && let Some(call) = way.take(message)
    {
        return Kind::Plain(Box::new(call));
    }
    // The SDK would take the last of them.
    if one_reading::has_several(&body) {
        return Kind::Ambiguous;
    }
    Kind::Other(Box::new(Request::from_parts(parts, Body::from(body))))
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
        let accepts = std::str::from_utf8(only(headers, header::ACCEPT.as_str())?).ok()?;
        let version = only(headers, "mcp-protocol-version")?;
        if only(headers, header::CONTENT_TYPE.as_str()) != Some(JSON.as_bytes())
            || !(accepts.contains(JSON) && accepts.contains(EVENTS))
        {
            return None;
        }
        if version == ProtocolVersion::V_2026_07_28.as_str().as_bytes() {
            let name = only(headers, NAME).filter(|name| name.iter().copied().all(is_plain_in_a_name))?;
            let is_call = only(headers, "mcp-method") == Some(METHOD.as_bytes());
            return (is_call && !headers.contains_key(SESSION_HEADER))
                .then(|| Self::Stateless { name, is_unattended: ask::is_unattended(headers) });
        }
        let id = std::str::from_utf8(only(headers, SESSION_HEADER)?).ok()?;
        let known = session(id)?;
        (known.protocol()?.as_bytes() == version).then_some(Self::Session { id, known })
    }

    fn take(self, message: Message) -> Option<PlainCall> {
        let Message { id, params: Params { name: tool, arguments, meta }, .. } = message;
        let arguments = arguments.map(|Arguments(members)| members).unwrap_or_default();
        let Meta { is_stateless, client, can, progress } = meta;
        let (client, shows_forms, running) = match self {
            Self::Stateless { name, is_unattended } => {
                let can = can.filter(|_| is_stateless && name == tool.as_bytes())?;
                let client = Client {
                    transport: "http",
                    protocol: Some(ProtocolVersion::V_2026_07_28.as_str().to_owned()),
                    name: client.as_ref().map(|said| plain(&said.name)),
                    version: client.as_ref().map(|said| plain(&said.version)),
                    conversation: None,
                };
                (client, ask::shows_forms(&can) && !is_unattended, None)
            }
            Self::Session { id: session, known } => {
                let says_nothing_new = !is_stateless && client.is_none() && can.is_none();
                let client = known.client(session).filter(|_| says_nothing_new)?;
                (client, false, Some(known.begin(&id)?))
            }
        };
        Some(PlainCall { id, tool, arguments, client, progress, shows_forms, running })
    }
}

/// Names with anything else may be written in another way in a header.
const fn is_plain_in_a_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn only<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h [u8]> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.as_bytes())
}

const METHOD: &str = "tools/call";
const NAME: &str = "mcp-name";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

#[cfg(test)]
mod tests;
