//! Asks a `BodyGuard` whether content may leave, before anything is sent.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;

use crate::{
    body::{self, ContentCoding},
    error::{EgressError, EgressReason, quoted},
};

/// Checks the content of a request before it is sent. It sees everything, including secrets that the call may use; the
/// implementation knows which secret belongs to which host.
pub trait BodyGuard: Send + Sync {
    /// Returns the reason why this must not leave, without repeating the content, or `None` if it may.
    fn judge(&self, leaving: &OutgoingPart<'_>) -> Option<String>;
}

/// One part of a request that is about to be sent.
#[derive(Clone, Copy)]
pub struct OutgoingPart<'a> {
    /// The destination: a name, or an address without brackets.
    pub host: &'a str,
    pub part: RequestPart<'a>,
    pub bytes: &'a [u8],
}

/// The part of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RequestPart<'a> {
    /// Scheme, host, path and query, as they will be sent. For a tunnel and a DNS question only the host.
    Url,
    /// The value of the header with this name. The name says what the value means; check both.
    Header(&'a str),
    /// The body, decompressed according to its Content-Encoding.
    Body,
    /// The method, a header name or the URL in the tool's spelling. Their letter case changes before they are sent,
    /// which would hide a secret.
    Written,
}

/// Keeps the content out of logs.
impl fmt::Debug for OutgoingPart<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingPart")
            .field("host", &self.host)
            .field("part", &self.part)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// All content of one request.
pub struct Content {
    pub host: String,
    /// `None` if a server chose the URL by a redirect: it already knows that URL.
    pub url: Option<String>,
    /// The method, header names and URL in the tool's spelling.
    pub written: Vec<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// `cap` limits the size of the decompressed body.
pub async fn ask(guard: &Arc<dyn BodyGuard>, content: Content, cap: usize) -> Result<(), EgressError> {
    let content = Content { body: decompressed(&content, cap).await?, ..content };
    if content.body.len() <= MAX_INLINE_BYTES {
        return judge_all(&**guard, &content);
    }
    // Checking a large body takes long, and other calls use this thread.
    let guard = Arc::clone(guard);
    let judged = tokio::task::spawn_blocking(move || judge_all(&*guard, &content));
    judged.await.unwrap_or_else(|_| Err(refused("the request", "the check failed")))
}

fn judge_all(guard: &dyn BodyGuard, content: &Content) -> Result<(), EgressError> {
    let judge = |part, bytes| guard.judge(&OutgoingPart { host: &content.host, part, bytes });
    if let Some(why) = content.url.as_ref().and_then(|url| judge(RequestPart::Url, url.as_bytes())) {
        return Err(refused("the URL", &why));
    }
    for written in &content.written {
        if let Some(why) = judge(RequestPart::Written, written.as_bytes()) {
            return Err(refused("the method, a header name or the host", &why));
        }
    }
    for (name, value) in &content.headers {
        if let Some(why) = judge(RequestPart::Header(name.as_str()), value.as_bytes()) {
            return Err(refused(&format!("header {}", quoted(name.as_str())), &why));
        }
    }
    if content.body.is_empty() {
        return Ok(());
    }
    judge(RequestPart::Body, &content.body).map_or(Ok(()), |why| Err(refused("the body", &why)))
}

/// Compression would hide content from the guard. A body that cannot be decompressed is refused.
async fn decompressed(content: &Content, cap: usize) -> Result<Bytes, EgressError> {
    if content.body.is_empty() {
        return Ok(Bytes::new());
    }
    let opaque = |_| refused("the body", "it cannot be decompressed for the check; send it uncompressed");
    match ContentCoding::of(&content.headers).map_err(opaque)? {
        None => Ok(content.body.clone()),
        Some(coding) => body::decompress(coding, &content.body, cap).await.map(Bytes::from).map_err(opaque),
    }
}

fn refused(part: &str, why: &str) -> EgressError {
    EgressError::new(EgressReason::ContentRefused, format!("{part} must not leave: {why}"))
}

const MAX_INLINE_BYTES: usize = 4 * 1024;

#[cfg(test)]
pub mod tests;
