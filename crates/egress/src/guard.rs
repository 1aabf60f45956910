//! May this content leave? Asked before anything is sent; who knows what a secret looks like answers.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use http::HeaderMap;

use crate::{
    body::{self, Coding},
    error::{EgressError, Reason, quoted},
};

/// Judges what a request would carry out. Asked about everything, the secrets that were lent to the call among it:
/// whoever makes a guard for a call knows which are meant for which host.
pub trait BodyGuard: Send + Sync {
    /// Why this must not leave, in words that do not repeat it; nothing if it may.
    fn judge(&self, leaving: &Leaving<'_>) -> Option<String>;
}

/// A part of a request on its way out.
#[derive(Clone, Copy)]
pub struct Leaving<'a> {
    /// Where it would go: a name, or an address without brackets.
    pub host: &'a str,
    pub part: Part<'a>,
    pub bytes: &'a [u8],
}

/// Which part of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Part<'a> {
    /// Scheme, host, path and query, as they will be sent; of a tunnel, and of a question for a name, only the host.
    Url,
    /// The value of the header of this name, which says what the value is; judge both.
    Header(&'a str),
    /// The body, unpacked if it says that it is packed.
    Body,
    /// The method, the name of a header or the URL, as the tool wrote it. Their letter case changes on the way out, and
    /// a secret would no longer be recognised.
    Written,
}

/// What is about to leave stays out of logs.
impl fmt::Debug for Leaving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaving")
            .field("host", &self.host)
            .field("part", &self.part)
            .field("bytes", &self.bytes.len())
            .finish()
    }
}

/// All that one request would carry out.
pub struct Content {
    pub host: String,
    /// Nothing where a server chose the URL: what it says, it knows.
    pub url: Option<String>,
    /// The method, the names of headers and the URL, as the tool wrote them.
    pub written: Vec<String>,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// `cap` bounds what a packed body may unpack to.
pub async fn ask(guard: &Arc<dyn BodyGuard>, content: Content, cap: usize) -> Result<(), EgressError> {
    let content = Content { body: unpacked(&content, cap).await?, ..content };
    if content.body.len() <= MOST_INLINE_BYTES {
        return judge_all(&**guard, &content);
    }
    // A long body takes long to look through, and other calls wait for this thread.
    let guard = Arc::clone(guard);
    let judged = tokio::task::spawn_blocking(move || judge_all(&*guard, &content));
    judged.await.unwrap_or_else(|_| Err(refused("the request", "it could not be looked through")))
}

fn judge_all(guard: &dyn BodyGuard, content: &Content) -> Result<(), EgressError> {
    let judge = |part, bytes| guard.judge(&Leaving { host: &content.host, part, bytes });
    if let Some(why) = content.url.as_ref().and_then(|url| judge(Part::Url, url.as_bytes())) {
        return Err(refused("the URL", &why));
    }
    for written in &content.written {
        if let Some(why) = judge(Part::Written, written.as_bytes()) {
            return Err(refused("the method, a header name or the host", &why));
        }
    }
    for (name, value) in &content.headers {
        if let Some(why) = judge(Part::Header(name.as_str()), value.as_bytes()) {
            return Err(refused(&format!("header {}", quoted(name.as_str())), &why));
        }
    }
    if content.body.is_empty() {
        return Ok(());
    }
    judge(Part::Body, &content.body).map_or(Ok(()), |why| Err(refused("the body", &why)))
}

/// Packing hides content from a guard that looks for words. What cannot be unpacked cannot be judged.
async fn unpacked(content: &Content, cap: usize) -> Result<Bytes, EgressError> {
    if content.body.is_empty() {
        return Ok(Bytes::new());
    }
    let opaque =
        |_| refused("the body", "it is packed in a way that cannot be looked into; send it as it is");
    match Coding::of(&content.headers).map_err(opaque)? {
        None => Ok(content.body.clone()),
        Some(coding) => body::unpack(coding, &content.body, cap).await.map(Bytes::from).map_err(opaque),
    }
}

fn refused(part: &str, why: &str) -> EgressError {
    EgressError::new(Reason::ContentRefused, format!("{part} must not leave: {why}"))
}

const MOST_INLINE_BYTES: usize = 4 * 1024;

#[cfg(test)]
pub mod tests;
