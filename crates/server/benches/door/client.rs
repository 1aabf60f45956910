//! A client that costs little: one request after another on a connection that stays open.

use std::{
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
};

/// A request without its host, ready to be sent.
pub type Message = Arc<str>;

pub fn call_message(token: &str, tool: &str) -> Message {
    message(token, "tools/call", Some(tool), json!({ "name": tool, "arguments": {} }))
}

/// The page behind the tool of this name.
pub fn list_message(token: &str, after: Option<&str>) -> Message {
    let params = after.map_or_else(|| json!({}), |name| json!({ "cursor": URL_SAFE_NO_PAD.encode(name) }));
    message(token, "tools/list", None, params)
}

fn message(token: &str, method: &str, name: Option<&str>, mut params: Value) -> Message {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let name = name.map(|name| format!("mcp-name: {name}\r\n")).unwrap_or_default();
    format!(
        "authorization: Bearer {token}\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: {method}\r\n{name}content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into()
}

pub struct Connection {
    stream: TcpStream,
    address: SocketAddr,
    buffer: Vec<u8>,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, address, buffer: vec![0; 1 << 20] }
    }

    /// Panics at every answer but a good one, for a refusal would be quick.
    pub async fn send(&mut self, message: &Message) {
        let request = format!("POST /mcp HTTP/1.1\r\nhost: {}\r\n{message}", self.address);
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut have = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[have..]).await.unwrap();
            assert!(read > 0, "closed after {}", String::from_utf8_lossy(&self.buffer[..have]));
            have += read;
            if let Some((start, length)) = whole(&self.buffer[..have])
                && have >= start + length
            {
                let text = String::from_utf8_lossy(&self.buffer[..have]);
                assert!(text.starts_with("HTTP/1.1 200"), "{text}");
                assert!(!text.contains("\"isError\":true") && !text.contains("\"error\""), "{text}");
                return;
            }
        }
    }
}

/// Where the body begins and how long it is, once the head is there.
fn whole(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..end]).ok()?.to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).expect("a length");
    Some((end, length.trim().parse().ok()?))
}

/// How many calls `connections` clients get done in `span`.
pub async fn flood(address: SocketAddr, message: &Message, connections: usize, span: Duration) -> u32 {
    let done = Arc::new(AtomicU32::new(0));
    let end = Instant::now() + span;
    let clients = (0..connections).map(|_| {
        let (done, message) = (Arc::clone(&done), Arc::clone(message));
        tokio::spawn(async move {
            let mut connection = Connection::open(address).await;
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
