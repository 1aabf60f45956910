//! One connection to an upstream server, and its table of requests that wait for answers.
//!
//! A transport takes messages from a queue and delivers what the server sends. Over a pair of byte streams, a reader task
//! matches answers to requests by id, and a writer task sends whole lines. A request that is dropped
//! or times out is cancelled at the server, and its late answer is ignored. Any protocol error closes the connection
//! and fails every request that waits.

use std::{
    collections::HashMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    ClientIdentity, ServerIdentity, ToolDefinition, UpstreamError, handshake,
    http::HttpSession,
    lines::{self, Line},
    listing::Listing,
    message::{self, Incoming, OutgoingMessage, RequestLabel},
};

/// Bounds on what a server can make this process hold or wait for.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// Length of one message from the server.
    pub message_bytes: usize,
    /// Requests that wait for an answer.
    pub waiting: usize,
    /// The handshake, and each page of a listing.
    pub setup: Duration,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { message_bytes: 4 << 20, waiting: 256, setup: Duration::from_secs(20) }
    }
}

/// An initialized connection. Dropping it ends its tasks and closes both streams.
pub struct Connection {
    requests: Arc<Requests>,
    server: ServerIdentity,
    limits: ConnectionLimits,
    tasks: Vec<JoinHandle<()>>,
    /// Ends the server's session when the connection is dropped.
    session: Option<HttpSession>,
}

impl Connection {
    /// Performs the handshake over `input` (what the server writes) and `output` (what it reads).
    pub async fn open<R, W>(
        input: R,
        output: W,
        identity: &ClientIdentity,
        limits: ConnectionLimits,
    ) -> Result<Self, UpstreamError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (requests, lines) = Requests::new(limits);
        let reader = tokio::spawn(read_all(input, Arc::clone(&requests), limits.message_bytes));
        let writer = tokio::spawn(write_all(output, lines, Arc::clone(&requests)));
        Self::assemble(requests, vec![reader, writer], None, identity, limits).await
    }

    /// Performs the handshake over a running transport.
    pub(crate) async fn assemble(
        requests: Arc<Requests>,
        tasks: Vec<JoinHandle<()>>,
        session: Option<HttpSession>,
        identity: &ClientIdentity,
        limits: ConnectionLimits,
    ) -> Result<Self, UpstreamError> {
        // Created before the handshake: a failed one ends the tasks by dropping the connection.
        let mut connection = Self { requests, server: ServerIdentity::default(), limits, tasks, session };
        connection.server = handshake::perform(&connection.requests, identity, limits.setup).await?;
        Ok(connection)
    }

    /// Adds a task that ends with the connection.
    pub(crate) fn attach(&mut self, task: JoinHandle<()>) {
        self.tasks.push(task);
    }

    /// Closes the connection and waits until the server knows, at most a few seconds. Dropping the connection does the
    /// same without waiting.
    pub async fn close(mut self) {
        if let Some(session) = self.session.take() {
            session.end().await;
        }
    }

    pub const fn server(&self) -> &ServerIdentity {
        &self.server
    }

    /// Whether requests can still be sent.
    pub fn is_open(&self) -> bool {
        self.requests.lock().closed.is_none()
    }

    /// A counter that grows with every announcement of a changed tool list.
    pub fn listing_changes(&self) -> watch::Receiver<u64> {
        self.requests.listing_changes.subscribe()
    }

    /// All tools that the server lists, in its order.
    pub async fn list_tools(&self) -> Result<Vec<ToolDefinition>, UpstreamError> {
        let mut listing = Listing::default();
        loop {
            let page = self.request("tools/list", listing.next_params(), self.limits.setup).await?;
            if listing.add(page)? {
                return Ok(listing.tools);
            }
        }
    }

    /// Calls a tool. The result is the server's `CallToolResult`, untrusted and unchanged.
    pub async fn call_tool(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        deadline: Duration,
    ) -> Result<Value, UpstreamError> {
        let mut params = Map::new();
        params.insert("name".to_owned(), Value::from(name));
        params.insert("arguments".to_owned(), Value::Object(arguments.clone()));
        self.request("tools/call", params, deadline).await
    }

    async fn request(
        &self,
        method: &str,
        params: Map<String, Value>,
        deadline: Duration,
    ) -> Result<Value, UpstreamError> {
        self.requests.send(method, self.server.with_metadata(params), deadline).await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Connection").field("server", &self.server).finish_non_exhaustive()
    }
}

/// The requests that wait for an answer, and the queue of messages to the server.
#[derive(Debug)]
pub(crate) struct Requests {
    next_id: AtomicU64,
    waiting: Mutex<Waiters>,
    most_waiting: usize,
    lines: mpsc::Sender<OutgoingMessage>,
    listing_changes: watch::Sender<u64>,
}

type AnswerSender = oneshot::Sender<Result<Value, UpstreamError>>;

#[derive(Debug)]
struct Waiters {
    by_id: HashMap<u64, AnswerSender>,
    /// Set once, when the connection ends.
    closed: Option<UpstreamError>,
}

impl Requests {
    /// An empty table, and the queue that a transport reads.
    pub fn new(limits: ConnectionLimits) -> (Arc<Self>, mpsc::Receiver<OutgoingMessage>) {
        let (lines, queue) = mpsc::channel(limits.waiting.max(1));
        let (listing_changes, _) = watch::channel(0);
        let requests = Self {
            next_id: AtomicU64::new(1),
            waiting: Mutex::new(Waiters { by_id: HashMap::new(), closed: None }),
            most_waiting: limits.waiting,
            lines,
            listing_changes,
        };
        (Arc::new(requests), queue)
    }

    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub async fn send(
        self: &Arc<Self>,
        method: &str,
        params: Map<String, Value>,
        deadline: Duration,
    ) -> Result<Value, UpstreamError> {
        let id = self.next_id();
        let (sender, answer) = oneshot::channel();
        self.register(id, sender)?;
        // Removes the request from the table and tells the server when this future is dropped or late.
        let (waits, abandoned) = oneshot::channel();
        let mut cancel = RequestGuard { requests: self, id, is_sent: false, _waits: waits };
        let exchange = async {
            let (method, params) = (method.to_owned(), Value::Object(params));
            let line = message::request(RequestLabel { id, method, params, deadline, abandoned });
            self.lines.send(line).await.map_err(|_| self.why_closed())?;
            cancel.is_sent = true;
            answer.await.unwrap_or_else(|_| Err(self.why_closed()))
        };
        let answered = timeout(deadline, exchange).await;
        let Ok(answered) = answered else {
            return Err(UpstreamError::TimedOut { method: method.to_owned(), after: deadline });
        };
        cancel.is_sent = false;
        answered
    }

    pub async fn notify(&self, method: &str, params: Value) -> Result<(), UpstreamError> {
        self.lines.send(message::notification(method, &params)).await.map_err(|_| self.why_closed())
    }

    fn register(&self, id: u64, sender: AnswerSender) -> Result<(), UpstreamError> {
        let mut waiters = self.lock();
        if let Some(closed) = &waiters.closed {
            return Err(closed.clone());
        }
        if waiters.by_id.len() >= self.most_waiting {
            return Err(UpstreamError::Busy);
        }
        waiters.by_id.insert(id, sender);
        Ok(())
    }

    pub fn receive(&self, incoming: Incoming) {
        match incoming {
            Incoming::Answer { id, answer } => {
                // An unknown id is a late answer to a cancelled request, or invented; neither reaches a caller.
                if let Some(sender) = self.lock().by_id.remove(&id) {
                    let _ = sender.send(answer);
                }
            }
            Incoming::Request { id, method } => {
                let answer =
                    if method == "ping" { message::empty_answer(&id) } else { message::not_allowed(&id) };
                // A server that floods us with requests gets no answer to some of them.
                let _ = self.lines.try_send(answer);
            }
            Incoming::Notification { method, .. } if method == LIST_CHANGED => {
                self.listing_changes.send_modify(|count| *count = count.wrapping_add(1));
            }
            Incoming::Notification { .. } | Incoming::Stray | Incoming::Noise => {}
        }
    }

    /// Refuses new requests. Those that wait may have taken effect at the server, and still wait for their answers.
    pub fn refuse_new(&self, why: UpstreamError) {
        self.lock().closed.get_or_insert(why);
    }

    pub fn close(&self, why: UpstreamError) {
        let mut waiters = self.lock();
        let why = waiters.closed.get_or_insert(why).clone();
        for (_, sender) in waiters.by_id.drain() {
            let _ = sender.send(Err(why.clone()));
        }
    }

    fn why_closed(&self) -> UpstreamError {
        self.lock().closed.clone().unwrap_or(UpstreamError::Closed)
    }

    fn lock(&self) -> MutexGuard<'_, Waiters> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct RequestGuard<'r> {
    requests: &'r Requests,
    id: u64,
    is_sent: bool,
    /// Its end tells the transport that the caller no longer waits.
    _waits: oneshot::Sender<()>,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.requests.lock().by_id.remove(&self.id);
        if self.is_sent {
            let params = json!({ "requestId": self.id, "reason": "the caller no longer waits" });
            let _ = self.requests.lines.try_send(message::notification("notifications/cancelled", &params));
        }
    }
}

async fn read_all(input: impl AsyncRead + Unpin, requests: Arc<Requests>, most: usize) {
    let mut reader = BufReader::new(input);
    let mut noise = 0_u32;
    let why = loop {
        let line = match lines::read_line(&mut reader, most).await {
            Ok(Line::Whole(line)) if line.trim_ascii().is_empty() => continue,
            Ok(Line::Whole(line)) => line,
            Ok(Line::TooLong) => {
                break UpstreamError::Protocol(format!("it sent a message of more than {most} bytes"));
            }
            Ok(Line::End) | Err(_) => break UpstreamError::Closed,
        };
        match message::read(&line) {
            Ok(Incoming::Noise) if noise >= NOISE_LINES => {
                break UpstreamError::Protocol("it sent too many lines that are not messages".to_owned());
            }
            Ok(Incoming::Noise) => noise = noise.saturating_add(1),
            Ok(incoming) => requests.receive(incoming),
            Err(error) => break error,
        }
    };
    requests.close(why);
}

async fn write_all(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<OutgoingMessage>,
    requests: Arc<Requests>,
) {
    while let Some(message) = lines.recv().await {
        if output.write_all(&message.line).await.is_err() || output.flush().await.is_err() {
            requests.close(UpstreamError::Closed);
            return;
        }
    }
}

/// Lines of a connection that may be something else than messages.
const NOISE_LINES: u32 = 1000;

const LIST_CHANGED: &str = "notifications/tools/list_changed";

#[cfg(test)]
mod tests;
