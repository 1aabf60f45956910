//! Requests whose responses are read piece by piece, over connections that are kept alive.
//!
//! Each request passes the same checks as `Egress::fetch`. A reused connection keeps the address that was checked when it
//! was opened.

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt as _;
use hyper::{Response, body::Incoming};
use tokio::time::timeout;

use crate::{
    Egress, EgressError, EgressRules, Request,
    body::{ContentCoding, body_error, body_idle, too_large, unsupported},
    guard::BodyGuard,
    pool::{IdlePool, KeptConnection, SendFailure},
    request::Outgoing,
    response::{BodyState, HopTrail, listed},
    target::RequestTarget,
};

/// A client for one set of rules. Cheap to clone; clones share the connections.
#[derive(Clone)]
pub struct PooledEgress {
    egress: Egress,
    rules: Arc<EgressRules>,
    pool: Arc<IdlePool>,
}

/// Limits of one streamed response. All other limits are those of the `Egress`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StreamLimits {
    /// From the request to the last response header.
    pub head: Duration,
    /// The longest pause within the body.
    pub idle: Duration,
    /// The whole body.
    pub body_bytes: u64,
}

impl Egress {
    /// A client that sends requests under `rules` and keeps its connections.
    pub fn pooled(&self, rules: EgressRules) -> PooledEgress {
        PooledEgress { egress: self.clone(), rules: Arc::new(rules), pool: Arc::default() }
    }
}

impl PooledEgress {
    /// Returns a clone with a guard that checks outgoing content. It shares the connections.
    #[must_use]
    pub fn with_guard(&self, guard: Arc<dyn BodyGuard>) -> Self {
        Self { egress: self.egress.with_guard(guard), ..self.clone() }
    }

    /// Sends a request and returns when the response head arrived. A redirect is returned, never followed: the caller
    /// sends another request, which is checked like the first. `trail` gets the address and the status, but not the
    /// time and size of the body.
    pub async fn open_stream(
        &self,
        request: &Request,
        limits: StreamLimits,
        trail: &HopTrail,
    ) -> Result<StreamResponse, EgressError> {
        self.send(request, limits, trail).await.map_err(|error| EgressError { hops: trail.hops(), ..error })
    }

    async fn send(
        &self,
        request: &Request,
        limits: StreamLimits,
        trail: &HopTrail,
    ) -> Result<StreamResponse, EgressError> {
        self.egress.check_length(&request.url)?;
        let target = RequestTarget::parse(&request.url)?;
        let outgoing = Outgoing::of(request, self.egress.limits())?;
        trail.head_for(target.url());
        // Check before the pool is used: the rules decide about every request, not about connections only.
        let admitted = self.egress.admit(&self.rules, &target)?;
        self.egress.judge_request(&target, &outgoing, Some(&request.url)).await?;
        let mut message = outgoing.to_kept_alive(&target)?;
        while let Some(mut connection) = self.pool.take(&target).await {
            trail.update(|hop| hop.address = Some(connection.address().socket()));
            match connection.send(message, limits.head).await {
                Ok(response) => return self.receive(response, connection, target, limits, trail),
                Err(SendFailure::NotSent(unsent)) => message = unsent,
                Err(SendFailure::Failed(error)) => return Err(error),
            }
        }
        let addresses = self.egress.addresses(&admitted, &target).await?;
        let dialled = self.egress.dial(&target, &addresses).await?;
        trail.update(|hop| hop.address = Some(dialled.address.socket()));
        let mut connection = KeptConnection::open(dialled, self.egress.limits()).await?;
        match connection.send(message, limits.head).await {
            Ok(response) => self.receive(response, connection, target, limits, trail),
            Err(SendFailure::NotSent(_)) => Err(closed_early()),
            Err(SendFailure::Failed(error)) => Err(error),
        }
    }

    fn receive(
        &self,
        response: Response<Incoming>,
        connection: KeptConnection,
        target: RequestTarget,
        limits: StreamLimits,
        trail: &HopTrail,
    ) -> Result<StreamResponse, EgressError> {
        let (head, incoming) = response.into_parts();
        trail.update(|hop| hop.status = Some(head.status.as_u16()));
        if ContentCoding::of(&head.headers)?.is_some() {
            return Err(unsupported("a compression"));
        }
        let headers =
            listed(&head.headers, BodyState::AsReceived, self.egress.limits().response_header_bytes)?;
        let body = StreamedBody {
            incoming,
            pool_return: Some(PoolReturn { target, connection, announced: announced_idle(&head.headers) }),
            client: self.clone(),
            left: limits.body_bytes,
            limits,
        };
        Ok(StreamResponse { status: head.status.as_u16(), headers, body })
    }
}

/// A response whose body is still on its way.
#[derive(Debug)]
pub struct StreamResponse {
    pub status: u16,
    /// As in `Response::headers`.
    pub headers: Vec<(String, String)>,
    pub body: StreamedBody,
}

/// The body of a streamed response. Dropping it before its end closes the connection.
pub struct StreamedBody {
    incoming: Incoming,
    /// Taken when the body ended and the connection went back to the pool.
    pool_return: Option<PoolReturn>,
    client: PooledEgress,
    left: u64,
    limits: StreamLimits,
}

struct PoolReturn {
    target: RequestTarget,
    connection: KeptConnection,
    announced: Option<Duration>,
}

impl StreamedBody {
    /// Returns the next piece, or `None` at the end. After an error the connection is closed.
    pub async fn next(&mut self) -> Result<Option<Bytes>, EgressError> {
        let next = self.read().await;
        match &next {
            Ok(Some(_)) => {}
            Ok(None) => {
                if let Some(PoolReturn { target, connection, announced }) = self.pool_return.take() {
                    self.client.pool.put(target, connection, announced);
                }
            }
            Err(_) => self.pool_return = None,
        }
        next
    }

    async fn read(&mut self) -> Result<Option<Bytes>, EgressError> {
        loop {
            let frame = timeout(self.limits.idle, self.incoming.frame()).await.map_err(|_| body_idle())?;
            let Some(frame) = frame else { return Ok(None) };
            // Trailers are ignored.
            let Ok(data) = frame.map_err(|error| body_error(&error))?.into_data() else { continue };
            self.client.egress.count_received(data.len());
            let length = u64::try_from(data.len()).unwrap_or(u64::MAX);
            self.left = self.left.checked_sub(length).ok_or_else(|| too_large(self.limits.body_bytes))?;
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
    }
}

/// The idle timeout from `Keep-Alive: timeout=5`.
fn announced_idle(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get("keep-alive")?.to_str().ok()?;
    let mut parts = value.split(',').filter_map(|part| part.trim().split_once('='));
    let (_, seconds) = parts.find(|(name, _)| name.trim().eq_ignore_ascii_case("timeout"))?;
    seconds.trim().parse().ok().map(Duration::from_secs)
}

fn closed_early() -> EgressError {
    let message = "the server closed the connection before the request was sent; try again later";
    EgressError::new(crate::EgressReason::ConnectFailed, message)
}

impl fmt::Debug for PooledEgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PooledEgress").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl fmt::Debug for StreamedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamedBody").field("left", &self.left).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
