//! The response of a request and the hops that led to it.

use std::{
    fmt,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE},
};
use url::Url;

use crate::{
    error::{EgressError, EgressReason},
    exchange::HttpAnswer,
    target::for_journal,
};

/// A complete, decompressed response.
#[derive(Clone, Eq, PartialEq)]
pub struct Response {
    pub status: u16,
    /// The final URL, after redirects.
    pub url: String,
    /// Names in lower case, in order of first appearance; repeated headers stay repeated. Bytes beyond ASCII are
    /// decoded as Latin-1.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// One per server; the last one sent this response.
    pub hops: Vec<Hop>,
}

/// One target of a request, for the journal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hop {
    /// Without the query, which may contain keys.
    pub url: String,
    /// `None` if no connection was made.
    pub address: Option<SocketAddr>,
    /// `None` if no response arrived.
    pub status: Option<u16>,
    /// From the DNS lookup to the end of the response; zero without a response.
    pub elapsed: Duration,
    /// Body bytes on the wire.
    pub received: u64,
}

/// Hops of one request, recorded as they happen. A caller that cancels the request can still read them.
#[derive(Clone, Debug, Default)]
pub struct HopTrail(Arc<Mutex<Vec<Hop>>>);

impl HopTrail {
    /// All hops but the last have responded. The last one may be refused or in progress.
    pub fn hops(&self) -> Vec<Hop> {
        self.lock().clone()
    }

    /// Called before the target is checked, because refused targets are recorded, too.
    pub(crate) fn head_for(&self, url: &Url) {
        let (url, elapsed) = (for_journal(url), Duration::ZERO);
        self.lock().push(Hop { url, address: None, status: None, elapsed, received: 0 });
    }

    /// Updates the last hop.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Hop)) {
        if let Some(hop) = self.lock().last_mut() {
            change(hop);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Hop>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Response {
    /// `cap` limits the headers as text.
    pub(crate) fn of(answer: HttpAnswer, url: String, cap: usize) -> Result<Self, EgressError> {
        let headers = listed(&answer.headers, answer.state, cap)?;
        Ok(Self { status: answer.status.as_u16(), url, headers, body: answer.body, hops: Vec::new() })
    }

    pub fn content_type(&self) -> Option<&str> {
        let mut of_type = self.headers.iter().filter(|(name, _)| name == CONTENT_TYPE.as_str());
        of_type.next().map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .field("hops", &self.hops)
            .finish_non_exhaustive()
    }
}

/// Whether the body was decompressed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyState {
    AsReceived,
    Decompressed,
}

/// Headers as text. `cap` limits their size; a byte beyond ASCII takes two bytes there.
pub(crate) fn listed(
    headers: &HeaderMap,
    state: BodyState,
    cap: usize,
) -> Result<Vec<(String, String)>, EgressError> {
    // These headers describe the compressed body.
    let is_stale = |name: &http::HeaderName| {
        state == BodyState::Decompressed && (name == CONTENT_ENCODING || name == CONTENT_LENGTH)
    };
    let kept = headers.iter().filter(|(name, _)| !is_stale(name));
    let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        let value: String = value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
        (name.as_str().to_owned(), value)
    };
    let listed: Vec<_> = kept.map(text).collect();
    let bytes = listed.iter().map(|(name, value)| name.len().saturating_add(value.len()));
    if bytes.fold(0, usize::saturating_add) > cap {
        let message = format!("the response headers are larger than {cap} bytes");
        return Err(EgressError::new(EgressReason::ResponseHeadersTooLarge, message));
    }
    Ok(listed)
}
