//! The ports of the HTTP transport: a client that sends requests, and a source of tokens. Both are implemented elsewhere.

use std::{fmt, pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use url::Url;
use zeroize::Zeroizing;

use crate::UpstreamError;

/// A boxed future, which keeps the ports object safe.
pub type HttpFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends HTTP requests under network rules that this crate does not know.
pub trait HttpClient: Send + Sync {
    /// Returns when the response head arrived. Returns redirects instead of following them. Dropping the future or the
    /// body closes the request's connection.
    fn send(&self, request: HttpRequest) -> HttpFuture<'_, Result<HttpResponse, HttpError>>;
}

/// A response body that arrives in pieces.
pub trait HttpBody: Send {
    /// Returns the next piece, or `None` at the end.
    fn next(&mut self) -> HttpFuture<'_, Result<Option<Bytes>, HttpError>>;
}

#[derive(Clone)]
pub struct HttpRequest {
    pub method: HttpMethod,
    pub url: Url,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub limits: ExchangeLimits,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HttpMethod {
    Get,
    Post,
    Delete,
}

impl HttpMethod {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// Bounds of one exchange, enforced by the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExchangeLimits {
    /// From the request to the last response header.
    pub head: Duration,
    /// The longest pause within the body.
    pub idle: Duration,
    /// The whole body.
    pub body_bytes: u64,
}

pub struct HttpResponse {
    pub status: u16,
    /// Names in lower case. The client bounds their number and size.
    pub headers: Vec<(String, String)>,
    pub body: Box<dyn HttpBody>,
}

impl HttpResponse {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(header, _)| header.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }
}

/// A failed exchange. The message says why, without header values.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HttpError {
    /// The server certainly did not receive the request.
    NotSent(String),
    /// The server may have received the request.
    Lost(String),
}

impl fmt::Display for HttpError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::NotSent(why) | Self::Lost(why)) = self;
        formatter.write_str(why)
    }
}

impl std::error::Error for HttpError {}

impl From<HttpError> for UpstreamError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::NotSent(why) => Self::Unreachable(why),
            HttpError::Lost(why) => Self::Lost(why),
        }
    }
}

/// Bearer tokens for one server.
pub trait BearerSource: Send + Sync {
    /// The current token, or `None` to send requests without one.
    fn token(&self) -> HttpFuture<'_, Result<Option<Zeroizing<String>>, UpstreamError>>;

    /// Another token after the server rejected this one, or `None` if there is no other.
    fn replace<'a>(
        &'a self,
        rejected: &'a str,
    ) -> HttpFuture<'a, Result<Option<Zeroizing<String>>, UpstreamError>>;
}

/// The URL of a server, and the headers and tokens of every request to it.
#[derive(Clone)]
pub struct HttpEndpoint {
    pub url: Url,
    /// Sent with every request to the server's origin. Headers of the protocol itself are ignored here.
    pub headers: Vec<(String, String)>,
    pub bearer: Option<Arc<dyn BearerSource>>,
}

/// Keeps header values, the query and the body out of logs.
impl fmt::Debug for HttpRequest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for HttpEndpoint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        formatter
            .debug_struct("HttpEndpoint")
            .field("host", &self.url.host_str())
            .field("path", &self.url.path())
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}
