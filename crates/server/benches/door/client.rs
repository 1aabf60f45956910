//! A client that costs little: one request after another on a connection that stays open.

use std::{
    borrow::Cow,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::Barrier,
};

/// A request without its host, ready to be sent, and how it is sent.
#[derive(Clone)]
pub struct BenchMessage {
    text: Arc<str>,
    form: Form,
}

/// Whom to send what.
#[derive(Clone)]
pub struct BenchTarget {
    pub address: SocketAddr,
    pub token: String,
    pub message: BenchMessage,
}

impl BenchTarget {
    pub async fn open(&self) -> BenchConnection {
        BenchConnection::open(self.address, &self.message, &self.token).await
    }
}

/// How a client asks for the same call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// 2026-07-28, and nothing that the protocol does not demand.
    Plain,
    /// 2026-07-28, by a client that wants to hear of progress.
    WithProgress,
    /// 2025-11-25, in a session that each connection has begun.
    InSession,
}

pub fn call_message(token: &str, tool: &str, form: Form) -> BenchMessage {
    let mut params = json!({ "name": tool, "arguments": {} });
    if form == Form::WithProgress {
        params["_meta"] = json!({ "progressToken": 1 });
    }
    let text = match form {
        Form::Plain | Form::WithProgress => message(token, "tools/call", Some(tool), params),
        Form::InSession => session_message(token, &request("tools/call", &params)),
    };
    BenchMessage { text, form }
}

/// The page behind the tool of this name.
pub fn list_message(token: &str, after: Option<&str>) -> BenchMessage {
    let params = after.map_or_else(|| json!({}), |name| json!({ "cursor": URL_SAFE_NO_PAD.encode(name) }));
    BenchMessage { text: message(token, "tools/list", None, params), form: Form::Plain }
}

fn request(method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string()
}

fn message(token: &str, method: &str, name: Option<&str>, mut params: Value) -> Arc<str> {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "bench", "version": "1" });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let body = request(method, &params);
    let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    format!(
        "authorization: Bearer {token}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

/// A line with the session's name is still to come before it, where there is one.
fn session_message(token: &str, body: &str) -> Arc<str> {
    format!(
        "authorization: Bearer {token}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

pub struct BenchConnection {
    stream: TcpStream,
    address: SocketAddr,
    /// A line of the head, where there is a session.
    session: String,
    buffer: Vec<u8>,
}

impl BenchConnection {
    /// Ready for this message: with a session of its own where it is sent in one.
    pub async fn open(address: SocketAddr, message: &BenchMessage, token: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut connection = Self { stream, address, session: String::new(), buffer: vec![0; 1 << 20] };
        if message.form == Form::InSession {
            connection.begin_session(token).await;
        }
        connection
    }

    async fn begin_session(&mut self, token: &str) {
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        let answer = self.post(&session_message(token, &request("initialize", &hello))).await;
        let line = answer.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"));
        let session = format!("{}\r\n", line.unwrap_or_else(|| panic!("no session in {answer}")));
        self.session = session;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
        let answer = self.post(&session_message(token, &ready)).await;
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    }

    /// Panics at every answer but a good one, for a refusal would be quick.
    pub async fn send(&mut self, message: &BenchMessage) {
        let text = self.post(&message.text).await;
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        assert!(!text.contains("\"isError\":true") && !text.contains("\"error\""), "{text}");
    }

    async fn post(&mut self, message: &str) -> Cow<'_, str> {
        let request = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\n{}{message}", self.address, self.session);
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut have = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[have..]).await.unwrap();
            assert!(read > 0, "closed after {}", String::from_utf8_lossy(&self.buffer[..have]));
            have += read;
            if is_whole(&self.buffer[..have]) {
                return String::from_utf8_lossy(&self.buffer[..have]);
            }
        }
    }
}

/// Is the answer there to its end? It has a length, or comes in pieces of which the last is empty.
fn is_whole(bytes: &[u8]) -> bool {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    match head.lines().find_map(|line| line.strip_prefix("content-length:")) {
        Some(length) => bytes.len() >= end + 4 + length.trim().parse::<usize>().unwrap(),
        None => bytes.ends_with(b"\r\n0\r\n\r\n"),
    }
}

/// How many calls `connections` clients get done in `span`.
pub async fn flood(target: &BenchTarget, connections: usize, span: Duration) -> u32 {
    let done = Arc::new(AtomicU32::new(0));
    // Sessions are begun before the time counts.
    let begun = Arc::new(Barrier::new(connections));
    let clients = (0..connections).map(|_| {
        let (done, begun, target) = (Arc::clone(&done), Arc::clone(&begun), target.clone());
        tokio::spawn(async move {
            let (mut connection, message) = (target.open().await, target.message);
            begun.wait().await;
            let end = Instant::now() + span;
            while Instant::now() < end {
                connection.send(&message).await;
                done.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap();
    }
    done.load(Ordering::Relaxed)
}
