//! What came back, and which way did it go?

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
    error::{EgressError, Reason},
    exchange::Answer,
    target::for_journal,
};

/// An answer, whole and unpacked.
#[derive(Clone, Eq, PartialEq)]
pub struct Response {
    pub status: u16,
    /// Where the answer came from, after redirects.
    pub url: String,
    /// Names in lower case, in order of first appearance; a repeated header stays repeated. Bytes beyond ASCII are
    /// read as Latin-1.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// One for every server that was spoken to; the last one gave this answer.
    pub hops: Vec<Hop>,
}

/// A place that a request was to go to, as the journal tells it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hop {
    /// Without query, which may carry keys.
    pub url: String,
    /// Nothing if no connection was made.
    pub address: Option<SocketAddr>,
    /// Nothing if no answer came.
    pub status: Option<u16>,
    /// From the question for the address to the end of the answer; zero if it never came.
    pub elapsed: Duration,
    /// Bytes of the body as they came over the wire.
    pub received: u64,
}

/// The way of one request, written down as it goes: who drops the request knows where it was.
#[derive(Clone, Debug, Default)]
pub struct Trail(Arc<Mutex<Vec<Hop>>>);

impl Trail {
    /// All but the last one answered. The last one may have been refused, or be spoken to.
    pub fn hops(&self) -> Vec<Hop> {
        self.written().clone()
    }

    /// Before the place is judged: a refused one is to be known too.
    pub(crate) fn head_for(&self, url: &Url) {
        let (url, elapsed) = (for_journal(url), Duration::ZERO);
        self.written().push(Hop { url, address: None, status: None, elapsed, received: 0 });
    }

    /// Tells more of the last place.
    pub(crate) fn add(&self, tell: impl FnOnce(&mut Hop)) {
        if let Some(hop) = self.written().last_mut() {
            tell(hop);
        }
    }

    fn written(&self) -> MutexGuard<'_, Vec<Hop>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Response {
    /// With at most `cap` bytes of headers as text: a byte beyond ASCII, one of those that came, is two of them.
    pub(crate) fn of(answer: Answer, url: String, cap: usize) -> Result<Self, EgressError> {
        let headers = listed(&answer.headers, answer.unpacked);
        let bytes = headers.iter().map(|(name, value)| name.len().saturating_add(value.len()));
        if bytes.fold(0, usize::saturating_add) > cap {
            let message = format!("the headers of the answer are larger than {cap} bytes as text");
            return Err(EgressError::new(Reason::ResponseHeadersTooLarge, message));
        }
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

/// Is the body still as the server packed it?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unpacked {
    AsSent,
    Decoded,
}

fn listed(headers: &HeaderMap, unpacked: Unpacked) -> Vec<(String, String)> {
    // They describe a body that the caller will not see.
    let is_stale = |name: &http::HeaderName| {
        unpacked == Unpacked::Decoded && (name == CONTENT_ENCODING || name == CONTENT_LENGTH)
    };
    let kept = headers.iter().filter(|(name, _)| !is_stale(name));
    kept.map(|(name, value)| {
        let value = value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
        (name.as_str().to_owned(), value)
    })
    .collect()
}
