//! Lets upstream MCP servers be reached through egress: the rules of the upstream decide about every request.

use bytes::Bytes;
use toolgate_egress::{
    BodyHolds, EgressError, HopTrail, PooledEgress, Redirects, Request, StreamLimits, StreamedBody,
};
use toolgate_upstream::{HttpBody, HttpClient, HttpError, HttpFuture, HttpRequest, HttpResponse};

/// The HTTP client of one upstream server. Its connections are used for that server only.
#[derive(Clone, Debug)]
pub struct UpstreamHttp(PooledEgress);

impl UpstreamHttp {
    pub const fn new(egress: PooledEgress) -> Self {
        Self(egress)
    }
}

impl HttpClient for UpstreamHttp {
    fn send(&self, request: HttpRequest) -> HttpFuture<'_, Result<HttpResponse, HttpError>> {
        Box::pin(async move {
            let limits = StreamLimits {
                head: request.limits.head,
                idle: request.limits.idle,
                body_bytes: request.limits.body_bytes,
            };
            let request = Request {
                method: request.method.name().to_owned(),
                url: request.url.into(),
                headers: request.headers,
                body: request.body,
                redirects: Redirects::Manual,
                sensitive_headers: Vec::new(),
                body_holds: BodyHolds::Data,
            };
            let opened = self.0.open_stream(&request, limits, &HopTrail::default()).await;
            let response = opened.map_err(|error| http_error(&error))?;
            let body = Box::new(UpstreamBody(response.body));
            Ok(HttpResponse { status: response.status, headers: response.headers, body })
        })
    }
}

struct UpstreamBody(StreamedBody);

impl HttpBody for UpstreamBody {
    fn next(&mut self) -> HttpFuture<'_, Result<Option<Bytes>, HttpError>> {
        Box::pin(async move { self.0.next().await.map_err(|error| http_error(&error)) })
    }
}

fn http_error(error: &EgressError) -> HttpError {
    let why = error.to_string();
    if error.was_not_sent() { HttpError::NotSent(why) } else { HttpError::Lost(why) }
}

#[cfg(test)]
mod tests;
