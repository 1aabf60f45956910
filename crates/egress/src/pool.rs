//! Connections that are kept alive between requests.
//!
//! A pool belongs to one set of rules, because a connection stays with the address that was checked for those rules.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Response, body::Incoming, client::conn::http1::SendRequest};
use tokio::{task::JoinHandle, time::timeout};

use crate::{
    dial::Dialled,
    error::EgressError,
    exchange::{connection_error, handshake, late_head, reject_switch},
    head_cap::ResponseCounter,
    judge::JudgedAddr,
    limits::EgressLimits,
    target::RequestTarget,
};

/// An open connection to a checked address. Dropping it closes the connection.
pub struct KeptConnection {
    sender: SendRequest<Full<Bytes>>,
    responses: ResponseCounter,
    address: JudgedAddr,
    opened: Instant,
    task: JoinHandle<()>,
}

/// A request without a response.
pub enum SendFailure {
    /// The connection ended before the request was written. The message can be sent on another connection.
    NotSent(http::Request<Full<Bytes>>),
    Failed(EgressError),
}

impl KeptConnection {
    pub async fn open(dialled: Dialled, limits: &EgressLimits) -> Result<Self, EgressError> {
        let responses = ResponseCounter::default();
        let (sender, connection) = handshake(dialled.stream, limits, responses.clone()).await?;
        // `send` and the body receive the error of the connection.
        let task = tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, responses, address: dialled.address, opened: Instant::now(), task })
    }

    pub const fn address(&self) -> JudgedAddr {
        self.address
    }

    /// Sends a request and waits for the head of its response.
    pub async fn send(
        &mut self,
        message: http::Request<Full<Bytes>>,
        patience: Duration,
    ) -> Result<Response<Incoming>, SendFailure> {
        self.responses.expect_response();
        let sent = timeout(patience, self.sender.try_send_request(message)).await;
        let response = match sent {
            Err(_) => return Err(SendFailure::Failed(late_head())),
            Ok(Ok(response)) => response,
            Ok(Err(mut failed)) => {
                let unsent = failed.take_message();
                let error = connection_error(failed.error());
                return Err(unsent.map_or(SendFailure::Failed(error), SendFailure::NotSent));
            }
        };
        reject_switch(&response).map_err(SendFailure::Failed)?;
        Ok(response)
    }

    /// Whether the connection can take a request now. The end of a response and the next request may be close together,
    /// so this waits for a moment.
    async fn becomes_ready(&mut self) -> bool {
        matches!(timeout(READY_WAIT, self.sender.ready()).await, Ok(Ok(())))
    }
}

impl Drop for KeptConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Idle connections, the most recently used one last.
#[derive(Default)]
pub struct IdlePool(Mutex<Vec<IdleConnection>>);

struct IdleConnection {
    target: RequestTarget,
    connection: KeptConnection,
    until: Instant,
}

impl IdlePool {
    /// Takes an idle connection to the origin of `target`.
    pub async fn take(&self, target: &RequestTarget) -> Option<KeptConnection> {
        loop {
            let mut connection = self.take_any(target)?;
            if connection.becomes_ready().await {
                return Some(connection);
            }
        }
    }

    fn take_any(&self, target: &RequestTarget) -> Option<KeptConnection> {
        let mut idle = self.lock();
        let now = Instant::now();
        idle.retain(|kept| kept.until > now && !kept.connection.sender.is_closed());
        let found = idle.iter().rposition(|kept| kept.target.shares_origin_with(target))?;
        Some(idle.remove(found).connection)
    }

    /// Keeps a connection whose last response was read completely. `announced` is the server's own idle timeout.
    pub fn put(&self, target: RequestTarget, connection: KeptConnection, announced: Option<Duration>) {
        let now = Instant::now();
        // The server closes first if both use the same timeout, and a request may be on its way then.
        let wait =
            announced.map_or(DEFAULT_IDLE, |timeout| timeout.saturating_sub(IDLE_MARGIN).min(MAX_IDLE));
        let until = (now + wait).min(connection.opened + MAX_AGE);
        if until <= now || connection.sender.is_closed() {
            return;
        }
        let mut idle = self.lock();
        if idle.len() >= MAX_KEPT {
            idle.remove(0);
        }
        idle.push(IdleConnection { target, connection, until });
    }

    fn lock(&self) -> MutexGuard<'_, Vec<IdleConnection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Common servers close an idle connection after five seconds.
const DEFAULT_IDLE: Duration = Duration::from_secs(4);
const IDLE_MARGIN: Duration = Duration::from_secs(1);
const MAX_IDLE: Duration = Duration::from_mins(1);
/// After this time the host is resolved and its addresses are checked again.
const MAX_AGE: Duration = Duration::from_mins(5);
const MAX_KEPT: usize = 16;
const READY_WAIT: Duration = Duration::from_millis(20);
