//! Reads one JSON-RPC message and rejects malformed ones, before the SDK sees them.
//!
//! The SDK answers malformed messages with a plain-text 415 over HTTP, and reads a known method with wrong parameters as an unknown method.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use rmcp::model::{
    CallToolRequestMethod, CallToolRequestParams, CancelledNotificationMethod, CancelledNotificationParam,
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ConstString as _, DiscoverRequestMethod,
    ErrorCode, ErrorData, InitializeRequestParams, InitializeResultMethod, InitializedNotificationMethod,
    ListToolsRequestMethod, PaginatedRequestParams, PingRequestMethod, ProgressNotificationMethod,
    ProgressNotificationParam, ProgressToken, RequestId, ServerJsonRpcMessage,
    SubscriptionsListenRequestMethod, SubscriptionsListenRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolgate_spec::Unambiguous;

use crate::http::{DoorCode, Rejected};

/// Why a message was rejected, as its sender reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejection {
    code: ErrorCode,
    message: String,
    /// `None` if the message has no id, or none that can be repeated.
    id: Option<RequestId>,
    /// Is it about a notification? JSON-RPC never answers those; HTTP answers every request.
    is_notification: bool,
}

impl Rejection {
    pub fn not_json(why: impl Into<String>) -> Self {
        Self::new(ErrorCode::PARSE_ERROR, why)
    }

    pub fn invalid_request(why: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_REQUEST, why)
    }

    /// A second request with an id that is in use.
    pub fn duplicate_id(id: RequestId) -> Self {
        let why = "a request with this id is still running; use another id";
        Self::invalid_request(why).with_id(Some(id))
    }

    fn invalid_params(why: impl Into<String>) -> Self {
        Self::new(ErrorCode::INVALID_PARAMS, why)
    }

    fn new(code: ErrorCode, why: impl Into<String>) -> Self {
        // Parts of the message may be repeated in it.
        let message = why.into().chars().take(LONGEST_REASON).collect();
        Self { code, message, id: None, is_notification: false }
    }

    fn with_id(mut self, id: Option<RequestId>) -> Self {
        self.id = id;
        self
    }

    /// For the journal and the metrics.
    pub fn door_code(&self) -> DoorCode {
        match self.code {
            ErrorCode::PARSE_ERROR => DoorCode::MessageNotJson,
            ErrorCode::INVALID_PARAMS => DoorCode::ParamsInvalid,
            _ => DoorCode::MessageInvalid,
        }
    }

    pub fn detail(&self) -> &str {
        &self.message
    }

    /// The answer over a pipe, where a notification gets none.
    pub fn over_pipe(self) -> Option<ServerJsonRpcMessage> {
        (!self.is_notification).then(|| self.into_message())
    }

    /// The answer over HTTP.
    pub fn over_http(self, status: StatusCode) -> Response {
        let rejected = Rejected { code: self.door_code(), detail: self.message.clone() };
        let body = serde_json::to_vec(&self.into_message()).unwrap_or_default();
        let json = HeaderValue::from_static("application/json");
        let mut response = (status, [(header::CONTENT_TYPE, json)], body).into_response();
        response.extensions_mut().insert(rejected);
        response
    }

    fn into_message(self) -> ServerJsonRpcMessage {
        ServerJsonRpcMessage::error(ErrorData::new(self.code, self.message, None), self.id)
    }
}

/// The methods that exist for a client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MethodSet {
    All,
    /// Of protocol 2026-07-28 and later, which has no `initialize` and no `logging/setLevel`. The SDK answers those as unknown.
    Stateless,
}

impl MethodSet {
    fn has(self, method: &str) -> bool {
        self == Self::All || ![InitializeResultMethod::VALUE, SET_LEVEL].contains(&method)
    }
}

/// Reads a whole message. It accepts only what the SDK reads as the same message.
pub fn read(message: &[u8], methods: MethodSet) -> Result<ClientJsonRpcMessage, Rejection> {
    let Unambiguous(value) = serde_json::from_slice(message).map_err(|error| {
        if error.is_data() {
            // Readers of JSON disagree on which of the two counts.
            Rejection::invalid_request("an object in this message names a member twice; send each once")
        } else {
            Rejection::not_json(format!("the message is not JSON: {error}"))
        }
    })?;
    let members = match &value {
        Value::Object(members) => members,
        Value::Array(_) => return Err(Rejection::invalid_request(BATCH)),
        _ => return Err(Rejection::invalid_request("a message must be a JSON object")),
    };
    let id = id_of(members)?;
    let is_notification = id.is_none() && members.contains_key("method");
    let about = |rejection: Rejection| Rejection { is_notification, ..rejection }.with_id(id.clone());
    let kind = kind_of(members, id.as_ref()).map_err(|rejection| rejection.with_id(id.clone()))?;
    let method = match kind {
        MessageKind::Call { method, params } => {
            if methods.has(method) {
                check_params(method, params).map_err(about)?;
            }
            Some(method.to_owned())
        }
        MessageKind::Answer => None,
    };
    let unread = |error: serde_json::Error| match &method {
        Some(method) => {
            about(Rejection::invalid_params(format!("the params of `{method}` are wrong: {error}")))
        }
        None => about(Rejection::invalid_request(format!("the answer cannot be read: {error}"))),
    };
    let read: ClientJsonRpcMessage = serde_json::from_value(value).map_err(unread)?;
    match &method {
        Some(method) if is_custom(&read) && is_known(method) && methods.has(method) => {
            Err(about(Rejection::invalid_params(format!("the params of `{method}` are wrong"))))
        }
        _ => Ok(read),
    }
}

enum MessageKind<'m> {
    /// A request or a notification.
    Call { method: &'m str, params: Option<&'m Value> },
    /// A result or an error of a request that the gateway made.
    Answer,
}

fn kind_of<'m>(
    members: &'m Map<String, Value>,
    id: Option<&RequestId>,
) -> Result<MessageKind<'m>, Rejection> {
    if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Rejection::invalid_request("`jsonrpc` must be \"2.0\""));
    }
    match (members.get("method"), members.contains_key("result"), members.contains_key("error")) {
        (Some(Value::String(method)), false, false) => {
            Ok(MessageKind::Call { method, params: members.get("params") })
        }
        (Some(_), false, false) => Err(Rejection::invalid_request("`method` must be a string")),
        (None, true, false) if id.is_none() => Err(Rejection::invalid_request("a result must have an `id`")),
        (None, true, false) | (None, false, true) => Ok(MessageKind::Answer),
        (None, false, false) => Err(Rejection::invalid_request("`method` is missing")),
        _ => Err(Rejection::invalid_request("a message has one of `method`, `result` and `error`")),
    }
}

/// `None`: there is no id, as in a notification, or in an error about a message without one.
fn id_of(members: &Map<String, Value>) -> Result<Option<RequestId>, Rejection> {
    let id = match members.get("id") {
        None => return Ok(None),
        Some(Value::Null) if members.contains_key("error") => return Ok(None),
        Some(id) => id,
    };
    match serde_json::from_value(id.clone()) {
        Ok(id) if is_short(&id) => Ok(Some(id)),
        Ok(_) => Err(Rejection::invalid_request(format!("`id` is longer than {LONGEST_ID} bytes"))),
        Err(_) => Err(Rejection::invalid_request("`id` must be a string or an integer of 64 bits")),
    }
}

/// The client reads its id in every answer, and the gateway keeps it for as long as the request runs.
pub fn is_short(id: &RequestId) -> bool {
    match id {
        RequestId::String(id) => id.len() <= LONGEST_ID,
        RequestId::Number(_) => true,
    }
}

fn check_params(method: &str, params: Option<&Value>) -> Result<(), Rejection> {
    let none = Value::Object(Map::new());
    let params = match params {
        None | Some(Value::Null) => &none,
        Some(params @ Value::Object(_)) => params,
        Some(Value::Array(_)) => {
            return Err(Rejection::invalid_params("`params` must be an object, not an array"));
        }
        Some(_) => return Err(Rejection::invalid_request("`params` must be an object")),
    };
    check_meta(params.get("_meta"))?;
    // The SDK passes over a wrong type in optional members, and takes the rest for an unknown method.
    match method {
        CallToolRequestMethod::VALUE => typed::<CallToolRequestParams>(method, params),
        ListToolsRequestMethod::VALUE => typed::<PaginatedRequestParams>(method, params),
        InitializeResultMethod::VALUE => typed::<InitializeRequestParams>(method, params),
        SubscriptionsListenRequestMethod::VALUE => typed::<SubscriptionsListenRequestParams>(method, params),
        CancelledNotificationMethod::VALUE => typed::<CancelledNotificationParam>(method, params),
        ProgressNotificationMethod::VALUE => typed::<ProgressNotificationParam>(method, params),
        #[expect(deprecated, reason = "clients of the older eras know nothing else")]
        SET_LEVEL => typed::<rmcp::model::SetLevelRequestParams>(method, params),
        _ => Ok(()),
    }
}

fn check_meta(meta: Option<&Value>) -> Result<(), Rejection> {
    let members = match meta {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(Rejection::invalid_params("`_meta` must be an object")),
    };
    match members.get("progressToken").map(|token| serde_json::from_value::<ProgressToken>(token.clone())) {
        Some(Err(_)) => Err(Rejection::invalid_params("`progressToken` must be a string or an integer")),
        _ => Ok(()),
    }
}

fn typed<T: DeserializeOwned>(method: &str, params: &Value) -> Result<(), Rejection> {
    let wrong = |error| Rejection::invalid_params(format!("the params of `{method}` are wrong: {error}"));
    T::deserialize(params).map(drop).map_err(wrong)
}

/// Did the SDK not recognise the message?
const fn is_custom(message: &ClientJsonRpcMessage) -> bool {
    match message {
        ClientJsonRpcMessage::Request(read) => matches!(read.request, ClientRequest::CustomRequest(_)),
        ClientJsonRpcMessage::Notification(read) => {
            matches!(read.notification, ClientNotification::CustomNotification(_))
        }
        _ => false,
    }
}

/// Methods that this server serves. If the SDK does not recognise one of them, its params are wrong.
fn is_known(method: &str) -> bool {
    [
        PingRequestMethod::VALUE,
        InitializeResultMethod::VALUE,
        DiscoverRequestMethod::VALUE,
        CallToolRequestMethod::VALUE,
        ListToolsRequestMethod::VALUE,
        SET_LEVEL,
        SubscriptionsListenRequestMethod::VALUE,
        CancelledNotificationMethod::VALUE,
        ProgressNotificationMethod::VALUE,
        InitializedNotificationMethod::VALUE,
    ]
    .contains(&method)
}

const SET_LEVEL: &str = "logging/setLevel";
const BATCH: &str = "batches are not supported; send one message at a time";
/// Bytes of a request id.
const LONGEST_ID: usize = 1024;
/// Characters of what a client reads about its message.
const LONGEST_REASON: usize = 300;

#[cfg(test)]
mod tests;
