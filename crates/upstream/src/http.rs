//! The HTTP transports: Streamable HTTP of both protocol eras, and HTTP+SSE of 2024-11-05.

mod challenge;
mod events;
mod exchange;
mod headers;
mod legacy;
mod link;
mod listen;
mod port;
mod sse;
#[cfg(test)]
pub mod testing;

use std::sync::Arc;

pub use challenge::AuthChallenge;
pub use link::HttpSession;
pub use port::{
    BearerSource, ExchangeLimits, HttpBody, HttpClient, HttpEndpoint, HttpError, HttpFuture, HttpMethod,
    HttpRequest, HttpResponse,
};
pub use sse::{EventParser, ServerEvent};

use crate::{
    ClientIdentity, Connection, ConnectionLimits, UpstreamError,
    connection::Requests,
    http::{link::HttpLink, listen::ChangeListener},
};

impl Connection {
    /// Performs the handshake with a server at a URL. Tries Streamable HTTP first. A server that does not know it is
    /// asked for an event stream, as HTTP+SSE of 2024-11-05 demands.
    pub async fn open_http(
        http: Arc<dyn HttpClient>,
        endpoint: HttpEndpoint,
        identity: &ClientIdentity,
        limits: ConnectionLimits,
    ) -> Result<Self, UpstreamError> {
        let streamable = Self::open_streamable(Arc::clone(&http), endpoint.clone(), identity, limits).await;
        match streamable {
            Err(unknown @ UpstreamError::HttpStatus { status: 400 | 404 | 405 }) => {
                match legacy::open(http, endpoint, identity, limits).await {
                    // The first answer explains more: this server has no event stream either.
                    Err(UpstreamError::HttpStatus { .. } | UpstreamError::Unreachable(_)) => Err(unknown),
                    opened => opened,
                }
            }
            done => done,
        }
    }

    async fn open_streamable(
        http: Arc<dyn HttpClient>,
        endpoint: HttpEndpoint,
        identity: &ClientIdentity,
        limits: ConnectionLimits,
    ) -> Result<Self, UpstreamError> {
        let link = Arc::new(HttpLink::new(http, endpoint, limits));
        let (requests, queue) = Requests::new(limits);
        let dispatcher = tokio::spawn(exchange::dispatch(Arc::clone(&link), Arc::clone(&requests), queue));
        let session = HttpSession::new(Arc::clone(&link));
        let mut connection =
            Self::assemble(Arc::clone(&requests), vec![dispatcher], Some(session), identity, limits).await?;
        if let Some(listener) = ChangeListener::wanted(link, requests, connection.server()) {
            connection.attach(tokio::spawn(listener.run()));
        }
        Ok(connection)
    }
}

#[cfg(test)]
mod tests;
