//! Validates a tool's request and builds the HTTP message. Connection headers are set here, never by the tool.

use std::fmt;

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{
        ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING,
        CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION, CONTENT_TYPE, COOKIE, EXPECT, HOST,
        IF_MODIFIED_SINCE, IF_NONE_MATCH, PRAGMA, RANGE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
    },
};
use http_body_util::Full;

use crate::{
    error::{EgressError, EgressReason, quoted},
    limits::EgressLimits,
    target::RequestTarget,
};

/// A request from a tool.
#[derive(Clone, Eq, PartialEq)]
pub struct Request {
    pub method: String,
    pub url: String,
    /// Connection headers (`Host`, `Content-Length`, `Transfer-Encoding`, `Proxy-…`, …) are dropped.
    pub headers: Vec<(String, String)>,
    /// Dropped for GET and HEAD.
    pub body: Bytes,
    pub redirects: Redirects,
    /// Names of headers that carry secrets. They are sent to the first origin only, and never follow a redirect from
    /// https to http.
    pub sensitive_headers: Vec<String>,
    pub body_holds: BodyHolds,
}

/// Returns the method of a request and all methods from override headers. Many frameworks let such a header turn a POST
/// into a DELETE.
pub fn effective_methods<'a>(
    method: &'a str,
    headers: impl Iterator<Item = (&'a str, &'a str)>,
) -> impl Iterator<Item = &'a str> {
    let overriding = headers.filter(|(name, _)| overrides_method(name));
    std::iter::once(method).chain(overriding.flat_map(|(_, value)| value.split(',').map(str::trim)))
}

fn overrides_method(header: &str) -> bool {
    // Many servers treat `_` and `-` in header names alike.
    let header = header.replace('_', "-");
    METHOD_OVERRIDES.iter().any(|name| header.eq_ignore_ascii_case(name))
}

const METHOD_OVERRIDES: [&str; 3] = ["x-http-method", "x-http-method-override", "x-method-override"];

/// Whether a redirect may take the body to another origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyHolds {
    Data,
    /// The body is sent to the first origin only. A redirect that would forward it is an error.
    Secrets,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Redirects {
    Follow,
    /// A redirect ends the request with an error.
    Error,
    /// A redirect is returned like any other response.
    Manual,
}

impl Request {
    /// A GET without headers that follows redirects.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: "GET".into(),
            url: url.into(),
            headers: Vec::new(),
            body: Bytes::new(),
            redirects: Redirects::Follow,
            sensitive_headers: Vec::new(),
            body_holds: BodyHolds::Data,
        }
    }
}

/// Keeps header values, the query and the body out of logs.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("url", &self.url.split(['?', '#']).next().unwrap_or_default())
            .field("headers", &names)
            .field("body_bytes", &self.body.len())
            .field("redirects", &self.redirects)
            .finish_non_exhaustive()
    }
}

/// A valid request. Redirects change it.
pub struct Outgoing {
    /// The method and header names in the tool's spelling.
    written: Vec<String>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    sensitive: Vec<HeaderName>,
    credentials: Credentials,
    body_holds: BodyHolds,
}

/// Whether the original request carried credentials, which must not be sent unencrypted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Credentials {
    Carried,
    Absent,
}

impl Outgoing {
    pub fn of(request: &Request, limits: &EgressLimits) -> Result<Self, EgressError> {
        let method = valid_method(&request.method)?;
        let headers = valid_headers(&request.headers, limits)?;
        let sensitive = sensitive_names(&request.sensitive_headers)?;
        if request.body.len() > limits.request_body_bytes {
            let message =
                format!("the request body is longer than {} bytes; send less", limits.request_body_bytes);
            return Err(EgressError::new(EgressReason::RequestBodyTooLarge, message));
        }
        let is_bodiless = method == Method::GET || method == Method::HEAD;
        let body = if is_bodiless { Bytes::new() } else { request.body.clone() };
        let is_secret =
            |name: &HeaderName| *name == AUTHORIZATION || *name == COOKIE || sensitive.contains(name);
        let credentials =
            if headers.keys().any(is_secret) { Credentials::Carried } else { Credentials::Absent };
        let names = request.headers.iter().map(|(name, _)| name);
        let written = std::iter::once(&request.method).chain(names).cloned().collect();
        Ok(Self { written, method, headers, body, sensitive, credentials, body_holds: request.body_holds })
    }

    pub fn written(&self) -> &[String] {
        &self.written
    }

    pub fn method(&self) -> &Method {
        &self.method
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub fn body(&self) -> &Bytes {
        &self.body
    }

    pub fn credentials(&self) -> Credentials {
        self.credentials
    }

    pub fn has_body(&self) -> bool {
        !self.body.is_empty()
    }

    pub fn has_secret_body(&self) -> bool {
        self.has_body() && self.body_holds == BodyHolds::Secrets
    }

    /// The redirect asks for a GET of the new URL.
    pub fn become_get(&mut self) {
        self.method = Method::GET;
        self.body = Bytes::new();
        for name in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION] {
            self.headers.remove(name);
        }
    }

    /// Keeps only headers that every server may see: any other header may be a credential. Removed headers stay removed
    /// when a later redirect leads back to the first origin.
    pub fn leave_origin(&mut self) {
        let names: Vec<HeaderName> = self.headers.keys().cloned().collect();
        for name in names {
            if !HARMLESS.contains(&name) || self.sensitive.contains(&name) {
                self.headers.remove(name);
            }
        }
    }

    /// A message for a connection that serves one request.
    pub fn to_http(&self, target: &RequestTarget) -> Result<http::Request<Full<Bytes>>, EgressError> {
        let mut request = self.to_kept_alive(target)?;
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate, br"));
        Ok(request)
    }

    /// A message for a connection that is kept alive. Its response is read in pieces and must not be compressed.
    pub fn to_kept_alive(&self, target: &RequestTarget) -> Result<http::Request<Full<Bytes>>, EgressError> {
        let unusable = |what: &str| {
            let message = format!("cannot send the {what} of the URL for {}", quoted(&target.authority()));
            EgressError::new(EgressReason::InvalidUrl, message)
        };
        let uri = Uri::builder().path_and_query(target.path_and_query());
        let uri = uri.build().map_err(|_| unusable("path"))?;
        let host = HeaderValue::try_from(target.authority()).map_err(|_| unusable("host"))?;
        let mut request = http::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = uri;
        let headers = request.headers_mut();
        headers.insert(HOST, host);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(DEFAULT_USER_AGENT));
        if !self.headers.contains_key(ACCEPT) {
            headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        }
        if self.headers.contains_key(USER_AGENT) {
            headers.remove(USER_AGENT);
        }
        for (name, value) in &self.headers {
            headers.append(name.clone(), value.clone());
        }
        Ok(request)
    }
}

fn valid_method(text: &str) -> Result<Method, EgressError> {
    let invalid = || {
        let message = format!("{} is not a method; use GET, POST, PUT, PATCH, DELETE or HEAD", quoted(text));
        EgressError::new(EgressReason::InvalidMethod, message)
    };
    if text.len() > MAX_METHOD_BYTES {
        return Err(invalid());
    }
    let upper = text.to_ascii_uppercase();
    if FORBIDDEN_METHODS.contains(&upper.as_str()) {
        let message = format!("method {} is not allowed; use another one", quoted(text));
        return Err(EgressError::new(EgressReason::ForbiddenMethod, message));
    }
    Method::from_bytes(upper.as_bytes()).map_err(|_| invalid())
}

fn valid_headers(given: &[(String, String)], limits: &EgressLimits) -> Result<HeaderMap, EgressError> {
    let bytes: usize = given.iter().map(|(name, value)| name.len() + value.len()).sum();
    if given.len() > limits.request_headers || bytes > limits.request_header_bytes {
        let message = format!(
            "the request has more than {} headers or {} bytes of them; send fewer",
            limits.request_headers, limits.request_header_bytes
        );
        return Err(EgressError::new(EgressReason::RequestHeadersTooLarge, message));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in given {
        let valid_name = valid_name(name)?;
        // Validate a header before dropping it: a line break indicates header injection.
        let valid_value = valid_value(name, value)?;
        if !belongs_to_connection(&valid_name) {
            headers.append(valid_name, valid_value);
        }
    }
    Ok(headers)
}

/// Some servers read bytes beyond ASCII as Latin-1, others as UTF-8.
fn valid_value(name: &str, value: &str) -> Result<HeaderValue, EgressError> {
    let sound = HeaderValue::from_str(value).ok().filter(|_| value.is_ascii());
    sound.ok_or_else(|| {
        let name = quoted(name);
        let message = format!("the value of header {name} has control or non-ASCII characters; encode it");
        EgressError::new(EgressReason::InvalidHeader, message)
    })
}

fn sensitive_names(given: &[String]) -> Result<Vec<HeaderName>, EgressError> {
    given.iter().map(|name| valid_name(name)).collect()
}

fn valid_name(name: &str) -> Result<HeaderName, EgressError> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
        let message = format!("{} is not a header name; use letters, digits and `-`", quoted(name));
        EgressError::new(EgressReason::InvalidHeader, message)
    })
}

/// Headers that would let a tool change the message framing or address intermediaries.
fn belongs_to_connection(name: &HeaderName) -> bool {
    CONNECTION_HEADERS.contains(name)
        || name.as_str().starts_with("proxy-")
        || matches!(name.as_str(), "keep-alive" | "http2-settings")
}

static CONNECTION_HEADERS: [HeaderName; 9] = [
    ACCEPT_ENCODING, // set to the codings that `body` can decode
    CONNECTION,
    CONTENT_LENGTH,
    EXPECT,
    HOST,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

static HARMLESS: [HeaderName; 11] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_LANGUAGE,
    CONTENT_TYPE,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    PRAGMA,
    RANGE,
    USER_AGENT,
];

const FORBIDDEN_METHODS: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];
const MAX_METHOD_BYTES: usize = 32;
const DEFAULT_USER_AGENT: &str = concat!("toolgate/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests;
