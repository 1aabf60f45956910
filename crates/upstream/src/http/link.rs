//! The state of one HTTP server: its endpoint, session and protocol version, and the headers of each request.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;
use tokio::time::timeout;
use url::Url;
use zeroize::Zeroizing;

use super::{
    AuthChallenge, ExchangeLimits, HttpClient, HttpEndpoint, HttpMethod, HttpRequest, HttpResponse,
    headers::MirroredArguments,
};
use crate::{
    ConnectionLimits, UpstreamError,
    handshake::{SESSION_VERSIONS, STATELESS},
};

/// A server as the transport sees it.
pub struct HttpLink {
    http: Arc<dyn HttpClient>,
    endpoint: HttpEndpoint,
    pub limits: ConnectionLimits,
    state: Mutex<LinkState>,
}

#[derive(Default)]
struct LinkState {
    session: Option<String>,
    version: Option<&'static str>,
    /// The capabilities from the handshake.
    capabilities: Value,
    mirrored: MirroredArguments,
}

/// One HTTP request to the server, before the headers that all requests carry.
pub struct LinkRequest {
    pub method: HttpMethod,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    pub limits: ExchangeLimits,
}

impl HttpLink {
    pub fn new(http: Arc<dyn HttpClient>, endpoint: HttpEndpoint, limits: ConnectionLimits) -> Self {
        Self { http, endpoint, limits, state: Mutex::default() }
    }

    /// The same server under another URL of the same origin, as the `endpoint` event names it.
    pub fn at(&self, url: Url) -> Self {
        let endpoint = HttpEndpoint { url, ..self.endpoint.clone() };
        Self::new(Arc::clone(&self.http), endpoint, self.limits)
    }

    pub const fn url(&self) -> &Url {
        &self.endpoint.url
    }

    /// Sends a request with a token. A rejected token is replaced once: the server did not act on the request.
    pub async fn send(&self, exchange: LinkRequest) -> Result<HttpResponse, UpstreamError> {
        let Some(bearer) = &self.endpoint.bearer else { return self.follow(&exchange, None).await };
        let token = bearer.token().await?;
        let response = self.follow(&exchange, token.as_ref()).await?;
        let Some(rejected) = token.filter(|_| response.status == 401) else { return Ok(response) };
        match bearer.replace(&rejected).await? {
            Some(token) => self.follow(&exchange, Some(&token)).await,
            None => Ok(response),
        }
    }

    /// Follows redirects that keep the method and stay at the origin.
    async fn follow(
        &self,
        exchange: &LinkRequest,
        token: Option<&Zeroizing<String>>,
    ) -> Result<HttpResponse, UpstreamError> {
        let mut url = self.endpoint.url.clone();
        for _ in 0..=REDIRECTS {
            let request = HttpRequest {
                method: exchange.method,
                url: url.clone(),
                headers: self.headers(exchange, token),
                body: exchange.body.clone(),
                limits: exchange.limits,
            };
            let response = self.http.send(request).await?;
            let keeps_method = matches!(response.status, 307 | 308)
                || (exchange.method == HttpMethod::Get && matches!(response.status, 301..=303));
            let Some(location) =
                response.header("location").filter(|_| (300..400).contains(&response.status))
            else {
                return Ok(response);
            };
            let next = url.join(location).map_err(|_| redirect("to an invalid URL"))?;
            if next.origin() != self.endpoint.url.origin() {
                return Err(redirect("to another origin; configure the URL that it redirects to"));
            }
            if !keeps_method {
                return Err(redirect("in a way that changes the request; configure the final URL"));
            }
            url = next;
        }
        Err(redirect("too often"))
    }

    fn headers(&self, exchange: &LinkRequest, token: Option<&Zeroizing<String>>) -> Vec<(String, String)> {
        let is_own =
            |(name, _): &&(String, String)| OWN_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own));
        let configured = self.endpoint.headers.iter().filter(|header| !is_own(header));
        let mut headers: Vec<_> = configured.cloned().collect();
        if let Some(token) = token {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
            headers.push(("Authorization".to_owned(), format!("Bearer {}", token.as_str())));
        }
        if let Some(session) = &self.lock().session {
            headers.push(("Mcp-Session-Id".to_owned(), session.clone()));
        }
        headers.extend(exchange.headers.iter().cloned());
        headers
    }

    /// The headers of a JSON-RPC message beside session and token.
    pub fn message_headers(&self, method: Option<&str>, params: &Value) -> Vec<(String, String)> {
        let mut headers = vec![
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
        ];
        let state = self.lock();
        let version = match method {
            Some("initialize") => None,
            Some("server/discover") => Some(STATELESS),
            _ => state.version,
        };
        headers.extend(version.map(|version| ("MCP-Protocol-Version".to_owned(), version.to_owned())));
        if let (Some(method), Some(STATELESS)) = (method, version) {
            headers.extend(state.mirrored.headers(method, params));
        }
        headers
    }

    /// The headers of a GET for an event stream.
    pub fn stream_headers(&self, last_id: Option<&str>) -> Vec<(String, String)> {
        let mut headers = vec![("Accept".to_owned(), "text/event-stream".to_owned())];
        let version = self.lock().version;
        headers.extend(version.map(|version| ("MCP-Protocol-Version".to_owned(), version.to_owned())));
        headers.extend(last_id.map(|id| ("Last-Event-ID".to_owned(), id.to_owned())));
        headers
    }

    /// Learns from the answer to a request before its caller sees it.
    pub fn learn(&self, method: &str, session: Option<String>, result: &mut Value) {
        let mut state = self.lock();
        match method {
            "initialize" => {
                let version = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                state.version = SESSION_VERSIONS.into_iter().find(|known| *known == version);
                state.session = session;
            }
            "server/discover" => state.version = Some(STATELESS),
            "tools/list" if state.version == Some(STATELESS) => state.mirrored.learn(result),
            _ => return,
        }
        if method != "tools/list" {
            state.capabilities = result.get("capabilities").cloned().unwrap_or_default();
        }
    }

    pub fn has_session(&self) -> bool {
        self.lock().session.is_some()
    }

    pub fn is_stateless(&self) -> bool {
        self.lock().version == Some(STATELESS)
    }

    /// Whether the handshake announced this capability, such as `/tools/listChanged`.
    pub fn announces(&self, pointer: &str) -> bool {
        self.lock().capabilities.pointer(pointer) == Some(&Value::Bool(true))
    }

    /// The server forgot the session, so there is nothing to end.
    pub fn forget_session(&self) {
        self.lock().session = None;
    }

    async fn delete_session(&self) {
        if !self.has_session() {
            return;
        }
        let mut headers = self.stream_headers(None);
        headers.retain(|(name, _)| name != "Accept");
        let limits = ExchangeLimits { head: FAREWELL, idle: FAREWELL, body_bytes: FAREWELL_BYTES };
        let exchange = LinkRequest { method: HttpMethod::Delete, headers, body: Bytes::new(), limits };
        // The server may refuse; it then ends the session by itself.
        let _ = timeout(FAREWELL, self.send(exchange)).await;
        self.forget_session();
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the server's session when it is dropped.
pub struct HttpSession(Arc<HttpLink>);

impl HttpSession {
    pub const fn new(link: Arc<HttpLink>) -> Self {
        Self(link)
    }

    pub async fn end(&self) {
        self.0.delete_session().await;
    }
}

impl Drop for HttpSession {
    fn drop(&mut self) {
        if !self.0.has_session() {
            return;
        }
        // Without a runtime the process ends, and the server's own timeout ends the session.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let link = Arc::clone(&self.0);
            runtime.spawn(async move { link.delete_session().await });
        }
    }
}

/// Reads the challenge of a 401, or of a 403 that asks for more scopes.
pub fn challenge(response: &HttpResponse) -> Option<AuthChallenge> {
    let names = response.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
    let challenge = AuthChallenge::parse(response.status, names.map(|(_, value)| value.as_str()));
    let is_refused = response.status == 401
        || (response.status == 403 && challenge.error.as_deref() == Some("insufficient_scope"));
    is_refused.then_some(challenge)
}

/// The session id of a response. An invalid one breaks the protocol.
pub fn session_id(response: &HttpResponse) -> Result<Option<String>, UpstreamError> {
    let Some(id) = response.header("mcp-session-id") else { return Ok(None) };
    if (1..=SESSION_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(Some(id.to_owned()));
    }
    Err(UpstreamError::Protocol("it sent an invalid session id".to_owned()))
}

fn redirect(why: &str) -> UpstreamError {
    UpstreamError::Protocol(format!("it redirects {why}"))
}

/// Set by this transport, never by configuration.
const OWN_HEADERS: [&str; 8] = [
    "accept",
    "content-type",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "host",
];

const REDIRECTS: usize = 3;
const SESSION_BYTES: usize = 1024;
const FAREWELL: Duration = Duration::from_secs(3);
const FAREWELL_BYTES: u64 = 64 * 1024;
