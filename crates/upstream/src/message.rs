//! JSON-RPC messages to and from an upstream server.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::UpstreamError;

/// A message from the server.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    Answer {
        id: u64,
        answer: Result<Value, UpstreamError>,
    },
    /// A request to us. Its id is echoed as it came.
    Request {
        id: Value,
        method: String,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to nothing we sent: another kind of id, or none.
    Stray,
    /// A line that is not a JSON object. Some servers print a banner or a log line to standard output.
    Noise,
}

/// Reads one line. An error ends the connection: the server speaks another protocol, or lies.
pub fn read(line: &[u8]) -> Result<Incoming, UpstreamError> {
    let Ok(Value::Object(mut message)) = serde_json::from_slice(line) else {
        return Ok(Incoming::Noise);
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(broken("it sent a message that is not JSON-RPC 2.0"));
    }
    match message.remove("method") {
        Some(Value::String(method)) => Ok(match message.remove("id") {
            Some(id @ (Value::String(_) | Value::Number(_))) => Incoming::Request { id, method },
            Some(_) => return Err(broken("it sent a request with an invalid id")),
            None => Incoming::Notification { method, params: message.remove("params").unwrap_or_default() },
        }),
        Some(_) => Err(broken("it sent a method that is not text")),
        None => read_answer(message),
    }
}

fn read_answer(mut message: Map<String, Value>) -> Result<Incoming, UpstreamError> {
    let id = message.get("id").and_then(Value::as_u64);
    let answer = match (message.remove("result"), message.remove("error")) {
        (Some(result @ Value::Object(_)), None) => Ok(result),
        (None, Some(Value::Object(error))) => {
            let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
            let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
            Err(UpstreamError::server(code, text))
        }
        _ => return Err(broken("it sent an answer without exactly one of `result` and `error`")),
    };
    Ok(id.map_or(Incoming::Stray, |id| Incoming::Answer { id, answer }))
}

/// A message to the server, with what a transport must know about it.
#[derive(Debug)]
pub struct OutgoingMessage {
    /// The message as one line, with its line feed.
    pub line: Vec<u8>,
    pub kind: OutgoingKind,
}

#[derive(Debug)]
pub enum OutgoingKind {
    Request(RequestLabel),
    Notification {
        method: String,
    },
    /// Our answer to a request of the server.
    Answer,
}

/// The parts of a request that an HTTP transport repeats in headers, and its deadline.
#[derive(Debug)]
pub struct RequestLabel {
    pub id: u64,
    pub method: String,
    pub params: Value,
    pub deadline: Duration,
    /// Ends when the caller no longer waits.
    pub abandoned: oneshot::Receiver<()>,
}

pub fn request(label: RequestLabel) -> OutgoingMessage {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), Value::from("2.0"));
    message.insert("id".to_owned(), Value::from(label.id));
    message.insert("method".to_owned(), Value::from(label.method.as_str()));
    // Moved in and out again: a copy of large arguments costs more than the rest of the message.
    message.insert("params".to_owned(), label.params);
    let mut message = Value::Object(message);
    let line = line(&message);
    let params = message.get_mut("params").map(Value::take).unwrap_or_default();
    OutgoingMessage { line, kind: OutgoingKind::Request(RequestLabel { params, ..label }) }
}

pub fn notification(method: &str, params: &Value) -> OutgoingMessage {
    let line = line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    OutgoingMessage { line, kind: OutgoingKind::Notification { method: method.to_owned() } }
}

/// The answer to a `ping`.
pub fn empty_answer(id: &Value) -> OutgoingMessage {
    let line = line(&json!({ "jsonrpc": "2.0", "id": id, "result": {} }));
    OutgoingMessage { line, kind: OutgoingKind::Answer }
}

/// The answer to every request that a server may not make.
pub fn not_allowed(id: &Value) -> OutgoingMessage {
    let error = json!({ "code": METHOD_NOT_FOUND, "message": "this client does not allow this request" });
    let line = line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
    OutgoingMessage { line, kind: OutgoingKind::Answer }
}

fn line(message: &Value) -> Vec<u8> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    line
}

fn broken(why: &str) -> UpstreamError {
    UpstreamError::Protocol(why.to_owned())
}

pub const METHOD_NOT_FOUND: i64 = -32601;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(line: &str, expect: &str) {
        let shown = match read(line.as_bytes()) {
            Ok(incoming) => format!("{incoming:?}"),
            Err(error) => error.to_string(),
        };
        assert!(shown.contains(expect), "{line}: {shown}");
    }

    #[test]
    fn messages_are_read_by_kind() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, "Answer { id: 7, answer: Ok");
        check(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}"#, "code: -32000");
        check(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, "Request");
        check(r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, "Notification");
        check(r#"{"jsonrpc":"2.0","id":"7","result":{}}"#, "Stray");
        check(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "Stray");
        check("listening on port 1234", "Noise");
        check("[]", "Noise");
    }

    #[test]
    fn invalid_messages_break_the_connection() {
        check(r#"{"id":7,"result":{}}"#, "not JSON-RPC 2.0");
        check(r#"{"jsonrpc":"2.0","id":7}"#, "exactly one of");
        check(r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#, "exactly one of");
        check(r#"{"jsonrpc":"2.0","id":7,"result":3}"#, "exactly one of");
        check(r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, "invalid id");
        check(r#"{"jsonrpc":"2.0","id":1,"method":{}}"#, "not text");
    }

    proptest! {
        #[test]
        fn any_line_is_read_without_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&line);
        }
    }
}
