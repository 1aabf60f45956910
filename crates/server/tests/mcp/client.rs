//! A client of raw HTTP and JSON, which can also send invalid messages.

use std::{net::SocketAddr, time::Duration};

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;

/// One who speaks an era's language.
#[derive(Clone)]
pub struct Client {
    pub server: SocketAddr,
    pub caller: Option<String>,
    pub era: &'static str,
    pub session: Option<String>,
    pub capabilities: Value,
    pub accept: &'static str,
    pub content_type: &'static str,
    /// Does it send the header that `toolgate connect --unattended` writes?
    pub is_unattended: bool,
}

pub struct Reply {
    pub status: u16,
    pub headers: http::HeaderMap,
    /// The messages in order; for plain JSON there is one.
    pub messages: Vec<Value>,
    pub text: String,
}

impl Reply {
    /// The response to the request.
    #[track_caller]
    pub fn last(&self) -> &Value {
        self.messages.last().unwrap_or_else(|| panic!("no message: {} {}", self.status, self.text))
    }

    #[track_caller]
    pub fn result(&self) -> &Value {
        let last = self.last();
        last.get("result").unwrap_or_else(|| panic!("no result: {last}"))
    }

    #[track_caller]
    pub fn error(&self) -> &Value {
        let last = self.last();
        last.get("error").unwrap_or_else(|| panic!("no error: {last}"))
    }

    /// The text of a tool's result.
    #[track_caller]
    pub fn tool_text(&self) -> &str {
        let result = self.result();
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result}"))
    }
}

pub const MODERN: &str = "2026-07-28";
pub const SESSION_ERAS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

impl Client {
    pub fn modern(server: SocketAddr, caller: &str) -> Self {
        Self {
            server,
            caller: Some(caller.to_owned()),
            era: MODERN,
            session: None,
            capabilities: json!({}),
            accept: "application/json, text/event-stream",
            content_type: "application/json",
            is_unattended: false,
        }
    }

    /// Who can be asked.
    pub fn asked(mut self) -> Self {
        self.capabilities = json!({"elicitation": {}});
        self
    }

    /// After the handshake.
    pub async fn session(server: SocketAddr, caller: &str, era: &'static str, capabilities: Value) -> Self {
        let mut client = Self { era, capabilities, ..Self::modern(server, caller) };
        let reply = client.initialize().await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        assert_eq!(reply.result()["protocolVersion"], era);
        client.session = Some(reply.headers["mcp-session-id"].to_str().unwrap().to_owned());
        let told = client.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(told.status, 202, "{}", told.text);
        client
    }

    pub async fn initialize(&self) -> Reply {
        let params = json!({
            "protocolVersion": self.era, "capabilities": self.capabilities,
            "clientInfo": {"name": "raw", "version": "1"},
        });
        self.post(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})).await
    }

    pub async fn list(&self, cursor: Option<&str>) -> Reply {
        let mut params = json!({});
        if let Some(cursor) = cursor {
            params["cursor"] = cursor.into();
        }
        self.request("tools/list", params).await
    }

    pub async fn call(&self, tool: &str, arguments: Value) -> Reply {
        self.request("tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    pub async fn request(&self, method: &str, params: Value) -> Reply {
        self.post(&self.message(7, method, params)).await
    }

    pub fn message(&self, id: u64, method: &str, mut params: Value) -> Value {
        if self.era == MODERN {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = MODERN.into();
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "raw", "version": "1"});
        }
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    }

    pub async fn post(&self, message: &Value) -> Reply {
        self.post_as(message, message.to_string()).await
    }

    /// With the headers of `message`, and this body.
    pub async fn post_as(&self, message: &Value, body: String) -> Reply {
        let response = self.send_as("POST", Some(message), body).await;
        let (parts, body) = response.into_parts();
        let read = tokio::time::timeout(Duration::from_mins(1), body.collect());
        let text = String::from_utf8(read.await.expect("an answer").unwrap().to_bytes().to_vec()).unwrap();
        let is_stream = parts.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let messages = if is_stream {
            text.lines().filter_map(|line| line.strip_prefix("data:")).filter_map(read_event).collect()
        } else {
            serde_json::from_str(&text).ok().into_iter().collect()
        };
        Reply { status: parts.status.as_u16(), headers: parts.headers, messages, text }
    }

    /// The stream of a GET or of a request that goes on.
    pub async fn open(&self, method: &str, message: Option<&Value>) -> Events {
        let response = self.send(method, message).await;
        assert_eq!(response.status(), 200);
        Events { body: response.into_body(), rest: String::new() }
    }

    pub async fn send(&self, method: &str, message: Option<&Value>) -> Response<Incoming> {
        self.send_as(method, message, message.map(Value::to_string).unwrap_or_default()).await
    }

    async fn send_as(&self, method: &str, message: Option<&Value>, body: String) -> Response<Incoming> {
        let stream = TcpStream::connect(self.server).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("accept", self.accept)
            .header("content-type", self.content_type)
            .header("mcp-protocol-version", self.era);
        if let Some(caller) = &self.caller {
            request = request.header("x-caller", caller);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        if self.is_unattended {
            request = request.header(toolgate_server::UNATTENDED_HEADER, "true");
        }
        if self.era == MODERN
            && let Some(message) = message
        {
            request = request.header("mcp-method", message["method"].as_str().unwrap());
            let named = ["name", "uri", "taskId"].iter().find_map(|key| message["params"][key].as_str());
            if let Some(name) = named {
                request = request.header("mcp-name", name);
            }
        }
        sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap()
    }
}

/// Messages as they come. Dropped, the connection is closed.
pub struct Events {
    body: Incoming,
    rest: String,
}

impl Events {
    pub async fn next(&mut self) -> Value {
        loop {
            if let Some(end) = self.rest.find("\n\n") {
                let event: String = self.rest.drain(..end + 2).collect();
                let message =
                    event.lines().filter_map(|line| line.strip_prefix("data:")).find_map(read_event);
                if let Some(message) = message {
                    return message;
                }
                continue;
            }
            let frame = tokio::time::timeout(Duration::from_secs(30), self.body.frame());
            let frame = frame.await.expect("an event").expect("a stream that goes on").unwrap();
            if let Ok(data) = frame.into_data() {
                self.rest.push_str(std::str::from_utf8(&data).unwrap());
            }
        }
    }
}

fn read_event(data: &str) -> Option<Value> {
    serde_json::from_str(data.trim()).ok()
}
