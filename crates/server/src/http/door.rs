//! The checks that every request passes before a handler sees it, in one function. No handler is reachable without them.

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::{
    Router,
    body::{Body, HttpBody},
    extract::Request,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use toolgate_gate::Clock;
use toolgate_policy::QuotaShare;
use tower::Service as _;

use super::{
    FrontParts, HttpLimits, body,
    connection::Peer,
    host::{AllowedHosts, Authority},
    origin::{self, AllowedOrigins},
    problem::{DoorCode, HttpProblem, Rejected},
};
use crate::auth::{AuthIdentity, Authenticator, CallerStanding, Challenge, How, Role, counted_as};

/// Receives refusals for journal, metrics and log. Must not block.
pub trait DoorEvents: Send + Sync {
    /// `detail` is for operators and contains no part of a token. `peer` is `None` if no connection exists yet.
    fn refused(&self, code: DoorCode, peer: Option<IpAddr>, detail: &str);

    /// As `refused`, for an authenticated `caller`.
    fn refused_caller(&self, code: DoorCode, peer: Option<IpAddr>, _caller: &str, detail: &str) {
        self.refused(code, peer, detail);
    }

    /// As `refused`, for a refusal that was logged recently: counts it only.
    fn refused_again(&self, _code: DoorCode, _peer: Option<IpAddr>) {}
}

/// Whether a load balancer may send traffic.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Readiness {
    Ready,
    /// It may; the line names the problem.
    Degraded(String),
    NotReady,
}

/// Checks requests and passes them to the routes.
pub(super) struct Door {
    routes: Router,
    hosts: AllowedHosts,
    origins: AllowedOrigins,
    limits: HttpLimits,
    authenticator: Arc<Authenticator>,
    ready: Arc<dyn Fn() -> Readiness + Send + Sync>,
    events: Arc<dyn DoorEvents>,
    clock: Arc<dyn Clock>,
}

/// Whether the connection may serve another request. Only authenticated requests keep it open, so unauthenticated clients
/// cannot hold connections with cheap requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ConnectionReuse {
    KeepAlive,
    Close,
}

/// How a body is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Framing {
    Length,
    Chunked,
    /// In another coding, which hyper would not decode.
    Unknown,
}

impl Framing {
    fn of(headers: &HeaderMap) -> Self {
        let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
        match (codings.next(), codings.next()) {
            (None, _) => Self::Length,
            (Some(one), None) if one.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => {
                Self::Chunked
            }
            _ => Self::Unknown,
        }
    }
}

/// Marks answers that are the same for all clients.
#[derive(Clone, Copy)]
struct Cacheable;

impl Door {
    pub(super) fn new(
        hosts: AllowedHosts,
        origins: AllowedOrigins,
        limits: HttpLimits,
        doors: FrontParts,
    ) -> Self {
        Self {
            routes: doors.routes,
            hosts,
            origins,
            limits,
            authenticator: doors.authenticator,
            ready: doors.ready,
            events: doors.events,
            clock: doors.clock,
        }
    }

    /// Checks `Host`, then `Origin`, before anything that has an effect or reveals something.
    pub(super) async fn answer(&self, request: Request) -> Response {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        if let Framing::Unknown = Framing::of(request.headers()) {
            let detail = "Transfer-Encoding may only be `chunked`, once";
            return self.refuse(peer, HttpProblem::new(DoorCode::UnknownCoding, detail));
        }
        let host = match self.hosts.check(request.uri(), request.headers()) {
            Ok(host) => host,
            Err(why) => return self.refuse(peer, HttpProblem::new(DoorCode::HostNotAllowed, why)),
        };
        let origin = match self.origins.check(request.headers()) {
            Ok(origin) => origin,
            Err(why) => return self.refuse(peer, HttpProblem::new(DoorCode::OriginNotAllowed, why)),
        };
        let mut response = if origin.is_some() && origin::is_preflight(request.method(), request.headers()) {
            finish(origin::preflight(), ConnectionReuse::Close)
        } else if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
            self.refuse(peer, HttpProblem::new(DoorCode::MethodNotAllowed, "this gateway is not a proxy"))
        } else if let Some(response) = self.public(&request, &host) {
            finish(response, ConnectionReuse::Close)
        } else {
            self.private(request, &host, peer).await
        };
        self.origins.decorate(origin, &mut response);
        response
    }

    /// Answers requests that need no token. They are answered here so routes can neither replace nor extend them.
    fn public(&self, request: &Request, host: &Authority) -> Option<Response> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        match request.uri().path() {
            "/healthz" => Some("ok\n".into_response()),
            "/readyz" => Some(match (self.ready)() {
                Readiness::Ready => "ready\n".into_response(),
                Readiness::Degraded(why) => format!("ready\n{why}\n").into_response(),
                Readiness::NotReady => {
                    HttpProblem::new(DoorCode::NotReady, "try again later").into_response()
                }
            }),
            path if self.is_metadata(path) => Some(self.authenticator.metadata().map_or_else(
                || HttpProblem::new(DoorCode::NotFound, "no issuer is configured here").into_response(),
                |metadata| document(&metadata.document(&self.hosts.base(host)).to_string()),
            )),
            // Clients try several paths before they authenticate; a 404 reveals nothing.
            path if path.starts_with("/.well-known/") => {
                Some(HttpProblem::new(DoorCode::NotFound, "nothing is published here").into_response())
            }
            _ => None,
        }
    }

    /// Accepts the bare name, the name with `/mcp`, and the name with the path of the public URL, which a proxy may remove.
    fn is_metadata(&self, path: &str) -> bool {
        let resource = path.strip_prefix(METADATA);
        resource.is_some_and(|resource| {
            matches!(resource, "" | "/mcp") || resource.strip_suffix("/mcp") == Some(self.hosts.public_path())
        })
    }

    async fn private(&self, request: Request, host: &Authority, peer: Option<IpAddr>) -> Response {
        let then = self.authenticator.active();
        let mut identity = match self.identify(request.headers(), request.uri().path(), peer).await {
            Ok(identity) => identity,
            Err(challenge) => return self.challenge(peer, challenge, host),
        };
        let standing = CallerStanding::of(&identity, then, &self.authenticator, &self.clock);
        if identity.how == How::Anonymous {
            identity.caller.share = peer.map(|peer| QuotaShare { address: counted_as(peer).to_string() });
        }
        let begun = self.clock.now();
        let (mut parts, body) = request.into_parts();
        let (bytes, time) = (self.limits.body_bytes, self.limits.body_time);
        let body = match body::read(&parts.headers, body, bytes, time).await {
            Ok(body) => body,
            Err(problem) => return self.refuse(peer, problem),
        };
        // Check the token again after a slow body: it may have been revoked while the client was still sending.
        if self.is_long_since(begun) && !standing.holds().await {
            let lapsed = Challenge::new(DoorCode::TokenInvalid, "the token is not valid")
                .said_to_operator("it was revoked or expired while the request body was read")
                .of_caller(&identity.caller.subject);
            return self.challenge(peer, lapsed, host);
        }
        // Drop the Authorization header here. Handlers do not need it and cannot leak it.
        parts.headers.remove(header::AUTHORIZATION);
        // `HeadGuard` knows the end of a body only if it is not chunked.
        let after = match Framing::of(&parts.headers) {
            Framing::Length => ConnectionReuse::KeepAlive,
            Framing::Chunked | Framing::Unknown => ConnectionReuse::Close,
        };
        let subject = identity.caller.subject.clone();
        parts.extensions.insert(standing);
        parts.extensions.insert(identity);
        let Ok(response) = self.routes.clone().call(Request::from_parts(parts, Body::from(body))).await;
        if let Some(Rejected { code, detail }) = response.extensions().get() {
            self.events.refused_caller(*code, peer, &subject, detail);
        }
        finish(explained(response), after)
    }

    /// True also if the clock was set back.
    fn is_long_since(&self, begun: SystemTime) -> bool {
        !self.clock.now().duration_since(begun).is_ok_and(|took| took < SHORT_READING)
    }

    async fn identify(
        &self,
        headers: &HeaderMap,
        path: &str,
        peer: Option<IpAddr>,
    ) -> Result<AuthIdentity, Challenge> {
        let now = self.clock.now();
        let identity = match peer {
            Some(peer) => self.authenticator.admit(peer, headers, now).await?,
            None => self.authenticator.authenticate(headers, now).await?,
        };
        let is_admins = path == ADMIN || path.strip_prefix(ADMIN).is_some_and(|rest| rest.starts_with('/'));
        if is_admins && identity.role != Role::Admin {
            return Err(Challenge::insufficient_scope("the admin API needs an admin token")
                .said_to_operator(format!("`{}` tried the admin API", identity.caller.subject))
                .of_caller(&identity.caller.subject));
        }
        Ok(identity)
    }

    fn challenge(&self, peer: Option<IpAddr>, challenge: Challenge, host: &Authority) -> Response {
        let (code, detail) = (challenge.code, &challenge.to_operator);
        match &challenge.caller {
            Some(caller) => self.events.refused_caller(code, peer, caller, detail),
            None => self.events.refused(code, peer, detail),
        }
        let address = self.authenticator.metadata().map(|_| self.hosts.well_known(host, METADATA));
        finish(challenge.into_answer(address.as_deref()), ConnectionReuse::Close)
    }

    fn refuse(&self, peer: Option<IpAddr>, problem: HttpProblem) -> Response {
        self.events.refused(problem.code, peer, &problem.detail);
        finish(problem.into_response(), ConnectionReuse::Close)
    }
}

impl fmt::Debug for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Door")
            .field("hosts", &self.hosts)
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

fn finish(mut response: Response, after: ConnectionReuse) -> Response {
    let headers = response.headers_mut();
    headers.insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    if after == ConnectionReuse::Close {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if response.extensions().get::<Cacheable>().is_none() {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

fn document(text: &str) -> Response {
    let mut response = Response::new(Body::from(text.to_owned()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response.extensions_mut().insert(Cacheable);
    response
}

/// Gives answers of the router, which have no body, a problem document.
fn explained(response: Response) -> Response {
    let problem = match response.status() {
        StatusCode::NOT_FOUND => HttpProblem::new(DoorCode::NotFound, "no such path"),
        StatusCode::METHOD_NOT_ALLOWED => {
            HttpProblem::new(DoorCode::MethodNotAllowed, "this path does not take this method")
        }
        _ => return response,
    };
    if response.body().size_hint().exact() != Some(0) {
        return response;
    }
    let allow = response.headers().get(header::ALLOW).cloned();
    let mut response = problem.into_response();
    if let Some(allow) = allow {
        response.headers_mut().insert(header::ALLOW, allow);
    }
    response
}

const METADATA: &str = "/.well-known/oauth-protected-resource";
const ADMIN: &str = "/admin";
/// After a faster body the token is not checked again.
const SHORT_READING: Duration = Duration::from_secs(1);
const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");
