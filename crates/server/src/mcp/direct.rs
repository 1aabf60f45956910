//! A plain call, answered without the SDK's service for each request, which costs more than the call itself.
//!
//! Plain is a request of the stateless era that names a tool, its arguments and what the client says of itself, and
//! nothing besides. Whatever differs, however slightly, goes to the SDK, which knows the whole protocol: what is answered here
//! is answered as the SDK would. Nothing is refused here but what the SDK would take for one of several things.

use std::{fmt, marker::PhantomData, sync::Arc};

use axum::{
    body::Body,
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use rmcp::model::{
    ClientCapabilities, ErrorData, Implementation, ProtocolVersion, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use serde::{
    Deserialize,
    de::{MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{Call, Client, Standing, caught};
use toolgate_policy::Caller;
use toolgate_spec::Unambiguous;

use super::{
    ClientAnswers, ask,
    call::{conclude, ill, plain},
    one_reading,
    seal::Bound,
    tools::Shared,
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
#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PlainCall {
    #[serde(deserialize_with = "the_version")]
    jsonrpc: (),
    id: RequestId,
    #[serde(deserialize_with = "the_method")]
    method: (),
    #[serde(deserialize_with = "object")]
    params: Params,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Params {
    name: String,
    #[serde(default)]
    arguments: Option<Arguments>,
    #[serde(rename = "_meta", deserialize_with = "object")]
    meta: Meta,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", deserialize_with = "the_era")]
    version: (),
    #[serde(rename = "io.modelcontextprotocol/clientInfo", default, deserialize_with = "some_object")]
    client: Option<Implementation>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", deserialize_with = "object")]
    can: ClientCapabilities,
}

/// An object with one reading.
#[derive(Debug, PartialEq)]
struct Arguments(Map<String, Value>);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Unambiguous::deserialize(deserializer)? {
            Unambiguous(Value::Object(members)) => Ok(Self(members)),
            _ => Err(serde::de::Error::custom("no object")),
        }
    }
}

/// Who makes the call, as the front knows.
pub struct Maker {
    pub caller: Caller,
    pub standing: Option<Arc<dyn Standing>>,
}

/// Looks whether it is plain. `longest` is how much the SDK would read.
pub async fn kind_of(request: Request, longest: usize) -> Kind {
    if request.method() != Method::POST {
        return Kind::Other(Box::new(request));
    }
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, longest).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Kind::TooLong,
        Err(_) => return Kind::Broken,
    };
    if has_plain_headers(&parts.headers)
        && let Ok(call) = plain_call(&body)
        && only(&parts.headers, NAME) == Some(call.params.name.as_bytes())
    {
        return Kind::Plain(Box::new(call));
    }
    // The SDK would take the last of them.
    if one_reading::has_several(&body) {
        return Kind::Ambiguous;
    }
    Kind::Other(Box::new(Request::from_parts(parts, Body::from(body))))
}

/// For a message whose id may be the very thing that has several readings.
pub fn ambiguous() -> Response {
    let error =
        ErrorData::invalid_request("an object in this message names a member twice; send each once", None);
    let mut response = written(&ServerJsonRpcMessage::error(error, None));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response
}

fn plain_call(body: &[u8]) -> serde_json::Result<PlainCall> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let call = object(&mut reader)?;
    reader.end()?;
    Ok(call)
}

/// Makes the call. `shutdown` ends it at once, as it does with the SDK's.
pub async fn answer(
    shared: &Shared,
    maker: Maker,
    call: PlainCall,
    shutdown: &CancellationToken,
) -> Response {
    let Maker { caller, standing } = maker;
    let PlainCall { id, params: Params { name, arguments, meta }, .. } = call;
    let arguments = arguments.map(|Arguments(members)| members).unwrap_or_default();
    let can_answer = shared.answers == ClientAnswers::Taken && ask::shows_forms(&meta.can);
    let bound = if can_answer { Bound::to(&caller.subject, &name, &arguments) } else { None };
    let client = Client {
        transport: "http",
        protocol: Some(ProtocolVersion::V_2026_07_28.as_str().to_owned()),
        name: meta.client.as_ref().map(|said| plain(&said.name)),
        version: meta.client.as_ref().map(|said| plain(&said.version)),
        conversation: None,
    };
    let call = Call { tool: name, arguments, caller, client, answer: None, ask: None, standing };
    let outcome = tokio::select! {
        outcome = caught(shared.gate.handle(call)) => outcome,
        () = shutdown.cancelled() => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    };
    let response = outcome.ok_or_else(ill).and_then(|outcome| conclude(shared, outcome, bound));
    written(&match response {
        Ok(response) => ServerJsonRpcMessage::response(ServerResult::from(response), id),
        Err(error) => ServerJsonRpcMessage::error(error, Some(id)),
    })
}

fn written(message: &ServerJsonRpcMessage) -> Response {
    match serde_json::to_vec(message) {
        Ok(body) => ([(header::CONTENT_TYPE, HeaderValue::from_static(JSON))], body).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Those that the protocol wants, each once, and none of a session.
fn has_plain_headers(headers: &HeaderMap) -> bool {
    let accepts = only(headers, header::ACCEPT.as_str()).and_then(|value| std::str::from_utf8(value).ok());
    only(headers, header::CONTENT_TYPE.as_str()) == Some(JSON.as_bytes())
        && accepts.is_some_and(|value| value.contains(JSON) && value.contains(EVENTS))
        && only(headers, "mcp-protocol-version") == Some(ProtocolVersion::V_2026_07_28.as_str().as_bytes())
        && only(headers, "mcp-method") == Some(METHOD.as_bytes())
        && only(headers, NAME).is_some_and(|name| name.iter().copied().all(is_plain_in_a_name))
        && !headers.contains_key("mcp-session-id")
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

/// An object and nothing else: by itself a struct would also be read from a list of its members in their order, which the
/// SDK takes for no message.
fn object<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_map(Members(PhantomData))
}

/// As `object`, where the member may be missing.
fn some_object<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    object(deserializer).map(Some)
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

fn the_version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    exactly("2.0", deserializer)
}

fn the_method<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    exactly(METHOD, deserializer)
}

fn the_era<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    exactly(ProtocolVersion::V_2026_07_28.as_str(), deserializer)
}

fn exactly<'de, D: serde::Deserializer<'de>>(expected: &str, deserializer: D) -> Result<(), D::Error> {
    // Borrowed: a text with escapes in it is not plain.
    let text = <&str>::deserialize(deserializer)?;
    if text == expected { Ok(()) } else { Err(serde::de::Error::custom("another")) }
}

const METHOD: &str = "tools/call";
const NAME: &str = "mcp-name";
const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";

#[cfg(test)]
mod tests;
