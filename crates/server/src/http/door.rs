//! What does every request pass before a handler sees it? One function, in order, and nothing behind it is public.

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
    Doors, HttpLimits, body,
    connection::Peer,
    host::{AllowedHosts, Authority},
    origin::{self, AllowedOrigins},
    problem::{DoorCode, Problem, Rejected},
};
use crate::auth::{Authenticator, CallerStanding, Challenge, How, Identity, Role, counted_as};

/// Where refusals go besides the client: journal, metrics and log. Must not block.
pub trait DoorEvents: Send + Sync {
    /// `detail` is for operators and holds nothing of a token. No `peer`: it happened before there was one.
    fn refused(&self, code: DoorCode, peer: Option<IpAddr>, detail: &str);

    /// As `refused`, of one whom a token has proved to be `caller`.
    fn refused_caller(&self, code: DoorCode, peer: Option<IpAddr>, _caller: &str, detail: &str) {
        self.refused(code, peer, detail);
    }

    /// As `refused`, of what the log has heard lately and need not hear again: it only counts.
    fn refused_again(&self, _code: DoorCode, _peer: Option<IpAddr>) {}
}

/// May the machine in front of us send traffic?
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Readiness {
    Ready,
    /// It may, and this line says what is not as it should be.
    Degraded(String),
    NotReady,
}

/// The only way to the routes.
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

/// Whether the connection may serve another request. It lives on only by requests that a known caller made: strangers
/// cannot hold places with cheap ones.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum After {
    KeepAlive,
    Close,
}

/// How a body is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Framing {
    Length,
    Chunked,
    /// In another coding, which hyper would hand over as it is.
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

/// Marks the one kind of answer that is the same for everybody.
#[derive(Clone, Copy)]
struct Cacheable;

impl Door {
    pub(super) fn new(
        hosts: AllowedHosts,
        origins: AllowedOrigins,
        limits: HttpLimits,
        doors: Doors,
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

    /// Host, then Origin, before anything that could have an effect or tell something.
    pub(super) async fn answer(&self, request: Request) -> Response {
        let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
        if let Framing::Unknown = Framing::of(request.headers()) {
            let detail = "Transfer-Encoding may only be `chunked`, once";
            return self.refuse(peer, Problem::new(DoorCode::UnknownCoding, detail));
        }
        let host = match self.hosts.check(request.uri(), request.headers()) {
            Ok(host) => host,
            Err(why) => return self.refuse(peer, Problem::new(DoorCode::HostNotAllowed, why)),
        };
        let origin = match self.origins.check(request.headers()) {
            Ok(origin) => origin,
            Err(why) => return self.refuse(peer, Problem::new(DoorCode::OriginNotAllowed, why)),
        };
        let mut response = if origin.is_some() && origin::is_preflight(request.method(), request.headers()) {
            finish(origin::preflight(), After::Close)
        } else if matches!(*request.method(), Method::CONNECT | Method::TRACE) {
            self.refuse(peer, Problem::new(DoorCode::MethodNotAllowed, "this gateway is no proxy"))
        } else if let Some(response) = self.public(&request, &host) {
            finish(response, After::Close)
        } else {
            self.private(request, &host, peer).await
        };
        self.origins.decorate(origin, &mut response);
        response
    }

    /// What a stranger may ask. Answered here, so that no route can take its place, and nothing else is ever public.
    fn public(&self, request: &Request, host: &Authority) -> Option<Response> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        match request.uri().path() {
            "/healthz" => Some("ok\n".into_response()),
            "/readyz" => Some(match (self.ready)() {
                Readiness::Ready => "ready\n".into_response(),
                Readiness::Degraded(why) => format!("ready\n{why}\n").into_response(),
                Readiness::NotReady => Problem::new(DoorCode::NotReady, "try again later").into_response(),
            }),
            path if self.is_metadata(path) => Some(self.authenticator.metadata().map_or_else(
                || Problem::new(DoorCode::NotFound, "no issuer is configured here").into_response(),
                |metadata| document(&metadata.document(&self.hosts.base(host)).to_string()),
            )),
            // Clients look in several places before they ask; an absence is no secret.
            path if path.starts_with("/.well-known/") => {
                Some(Problem::new(DoorCode::NotFound, "nothing is published here").into_response())
            }
            _ => None,
        }
    }

    /// Under the plain name, for our own path, and for the path that clients see where something before us takes a part of it
    /// away.
    fn is_metadata(&self, path: &str) -> bool {
        let resource = path.strip_prefix(METADATA);
        resource.is_some_and(|resource| {
            matches!(resource, "" | "/mcp") || resource.strip_suffix("/mcp") == Some(self.hosts.public_path())
        })
    }

    async fn private(&self, request: Request, host: &Authority, peer: Option<IpAddr>) -> Response {
        let then = self.authenticator.believed();
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
        // Whoever sends a byte now and then would make calls for as long with a token that was taken back meanwhile.
        if self.is_long_since(begun) && !standing.holds().await {
            let lapsed = Challenge::new(DoorCode::TokenInvalid, "the token is not valid")
                .said_to_operator("it was revoked or ran out while the body of its request was read")
                .of_caller(&identity.caller.subject);
            return self.challenge(peer, lapsed, host);
        }
        // The proof has done its work; nothing behind the door can leak what it does not have.
        parts.headers.remove(header::AUTHORIZATION);
        // Only the length of a body that is not chunked is known before hyper reads it; see `HeadGuard`.
        let after = match Framing::of(&parts.headers) {
            Framing::Length => After::KeepAlive,
            Framing::Chunked | Framing::Unknown => After::Close,
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

    /// A clock that was set back tells nothing: as if it were long.
    fn is_long_since(&self, begun: SystemTime) -> bool {
        !self.clock.now().duration_since(begun).is_ok_and(|took| took < SHORT_READING)
    }

    async fn identify(
        &self,
        headers: &HeaderMap,
        path: &str,
        peer: Option<IpAddr>,
    ) -> Result<Identity, Challenge> {
        let now = self.clock.now();
        let identity = match peer {
            Some(peer) => self.authenticator.admit(peer, headers, now).await?,
            None => self.authenticator.authenticate(headers, now).await?,
        };
        let is_admins = path == ADMIN || path.strip_prefix(ADMIN).is_some_and(|rest| rest.starts_with('/'));
        if is_admins && identity.role != Role::Admin {
            return Err(Challenge::insufficient_scope("the admin API needs an admin's token")
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
        finish(challenge.into_answer(address.as_deref()), After::Close)
    }

    fn refuse(&self, peer: Option<IpAddr>, problem: Problem) -> Response {
        self.events.refused(problem.code, peer, &problem.detail);
        finish(problem.into_response(), After::Close)
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

fn finish(mut response: Response, after: After) -> Response {
    let headers = response.headers_mut();
    headers.insert(NOSNIFF, HeaderValue::from_static("nosniff"));
    if after == After::Close {
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

/// What the router answers of itself has no body; say it in our words.
fn explained(response: Response) -> Response {
    let problem = match response.status() {
        StatusCode::NOT_FOUND => Problem::new(DoorCode::NotFound, "no such path"),
        StatusCode::METHOD_NOT_ALLOWED => {
            Problem::new(DoorCode::MethodNotAllowed, "this path has other methods")
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
/// A body that takes no longer is judged by the look at the token before it.
const SHORT_READING: Duration = Duration::from_secs(1);
const NOSNIFF: HeaderName = HeaderName::from_static("x-content-type-options");
