//! A scripted HTTP server in memory, for the transports and for OAuth.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{HttpBody, HttpClient, HttpError, HttpFuture, HttpMethod, HttpRequest, HttpResponse};

/// Answers each request with a script, and records the requests.
pub struct ScriptedServer {
    script: Box<dyn Fn(&HttpRequest) -> ScriptedReply + Send + Sync>,
    seen: Mutex<Vec<HttpRequest>>,
    /// Bodies that the client has not dropped.
    open: Arc<AtomicUsize>,
}

pub struct ScriptedReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub pieces: Vec<Piece>,
}

#[derive(Clone)]
pub enum Piece {
    Text(String),
    /// The connection breaks.
    Break,
    /// Nothing more arrives.
    Silence,
}

impl ScriptedServer {
    pub fn start(script: impl Fn(&HttpRequest) -> ScriptedReply + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { script: Box::new(script), seen: Mutex::default(), open: Arc::default() })
    }

    pub fn seen(&self) -> Vec<HttpRequest> {
        self.seen.lock().unwrap().clone()
    }

    /// How many response bodies are open.
    pub fn open_bodies(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Waits until a request fits.
    pub async fn sees(&self, fits: impl Fn(&HttpRequest) -> bool) -> HttpRequest {
        let found = async {
            loop {
                if let Some(request) = self.seen().into_iter().find(|request| fits(request)) {
                    return request;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(Duration::from_secs(20), found).await.expect("the request must arrive")
    }
}

impl HttpClient for ScriptedServer {
    fn send(&self, request: HttpRequest) -> HttpFuture<'_, Result<HttpResponse, HttpError>> {
        self.seen.lock().unwrap().push(request.clone());
        let reply = (self.script)(&request);
        Box::pin(async move {
            match reply.status {
                0 => return Err(HttpError::NotSent("refused".to_owned())),
                1 => return Err(HttpError::Lost("broken".to_owned())),
                2 => std::future::pending().await,
                _ => {}
            }
            self.open.fetch_add(1, Ordering::SeqCst);
            let open = Arc::clone(&self.open);
            let body =
                Box::new(ScriptedBody { pieces: reply.pieces.into(), idle: request.limits.idle, open });
            Ok(HttpResponse { status: reply.status, headers: reply.headers, body })
        })
    }
}

struct ScriptedBody {
    pieces: VecDeque<Piece>,
    idle: Duration,
    open: Arc<AtomicUsize>,
}

impl HttpBody for ScriptedBody {
    fn next(&mut self) -> HttpFuture<'_, Result<Option<Bytes>, HttpError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            match self.pieces.pop_front() {
                Some(Piece::Text(text)) => Ok(Some(Bytes::from(text))),
                None => Ok(None),
                Some(Piece::Break) => Err(HttpError::Lost("the connection broke".to_owned())),
                Some(Piece::Silence) => {
                    tokio::time::sleep(self.idle).await;
                    Err(HttpError::Lost("idle".to_owned()))
                }
            }
        })
    }
}

impl Drop for ScriptedBody {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl HttpRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        let value = found.next().map(|(_, value)| value.as_str());
        assert!(found.next().is_none(), "{name} is sent twice");
        value
    }

    pub fn message(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The method of the JSON-RPC message, or the HTTP method.
    pub fn what(&self) -> String {
        let method = self.message()["method"].as_str().map(str::to_owned);
        method.unwrap_or_else(|| self.method.name().to_owned())
    }
}

pub fn status(status: u16) -> ScriptedReply {
    ScriptedReply { status, headers: Vec::new(), pieces: Vec::new() }
}

pub fn text(status: u16, media_type: &str, text: impl Into<String>) -> ScriptedReply {
    let headers = vec![("content-type".to_owned(), media_type.to_owned())];
    ScriptedReply { status, headers, pieces: vec![Piece::Text(text.into())] }
}

pub fn json_reply(status: u16, value: &Value) -> ScriptedReply {
    text(status, "application/json; charset=utf-8", value.to_string())
}

/// A result as JSON.
pub fn answer(request: &HttpRequest, result: &Value) -> ScriptedReply {
    json_reply(200, &json!({ "jsonrpc": "2.0", "id": request.message()["id"], "result": result }))
}

pub fn error(request: &HttpRequest, status: u16, code: i64) -> ScriptedReply {
    let error = json!({ "code": code, "message": "no" });
    json_reply(status, &json!({ "jsonrpc": "2.0", "id": request.message()["id"], "error": error }))
}

/// An event stream.
pub fn events(pieces: impl IntoIterator<Item = Piece>) -> ScriptedReply {
    let headers = vec![("Content-Type".to_owned(), "text/event-stream".to_owned())];
    ScriptedReply { status: 200, headers, pieces: pieces.into_iter().collect() }
}

pub fn event(message: &Value) -> Piece {
    Piece::Text(format!("data: {message}\n\n"))
}

impl ScriptedReply {
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A server of the session era with one tool, `echo`. `call` answers its calls.
pub fn session_server(
    call: impl Fn(&HttpRequest) -> ScriptedReply + Send + Sync + 'static,
) -> Arc<ScriptedServer> {
    ScriptedServer::start(move |request| session_reply(request, &call))
}

pub fn session_reply(request: &HttpRequest, call: &dyn Fn(&HttpRequest) -> ScriptedReply) -> ScriptedReply {
    match request.what().as_str() {
        "initialize" => answer(
            request,
            &json!({
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "fixture", "version": "1" },
            }),
        )
        .with("mcp-session-id", "s-1"),
        "notifications/initialized" | "notifications/cancelled" => status(202),
        "tools/list" => answer(request, &json!({ "tools": [{ "name": "echo", "inputSchema": {} }] })),
        "tools/call" => call(request),
        _ if request.method == HttpMethod::Delete => status(204),
        _ => status(405),
    }
}
