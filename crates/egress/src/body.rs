//! How much of an answer is taken in? At most the cap over the wire, and at most the cap unpacked.

use std::{
    error::Error as _,
    sync::atomic::{AtomicU64, Ordering},
};

use async_compression::tokio::bufread::{BrotliDecoder, GzipDecoder, ZlibDecoder};
use http::{HeaderMap, header::CONTENT_ENCODING};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::timeout,
};

use crate::{
    error::{EgressError, Reason, quoted},
    exchange::lost,
    limits::Limits,
};

pub async fn read(
    mut incoming: Incoming,
    limits: &Limits,
    received: &AtomicU64,
) -> Result<Vec<u8>, EgressError> {
    let cap = limits.response_body_bytes;
    // An announced length is believed only when it is bad news.
    if usize::try_from(incoming.size_hint().lower()).map_or(true, |announced| announced > cap) {
        return Err(too_large(cap));
    }
    let mut body = Vec::new();
    loop {
        let frame = timeout(limits.body_idle, incoming.frame()).await;
        let Some(frame) = frame.map_err(|_| silent())? else { return Ok(body) };
        // Trailers are nobody's business here.
        let Ok(data) = frame.map_err(|error| cut(&error))?.into_data() else { continue };
        received.fetch_add(data.len() as u64, Ordering::Relaxed);
        if data.len() > cap.saturating_sub(body.len()) {
            return Err(too_large(cap));
        }
        body.extend_from_slice(&data);
    }
}

/// How a body was packed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Coding {
    Gzip,
    Deflate,
    Brotli,
}

impl Coding {
    /// The one coding we asked for; two on top of each other serve nobody but a bomb.
    pub fn of(headers: &HeaderMap) -> Result<Option<Self>, EgressError> {
        let mut found = None;
        for value in headers.get_all(CONTENT_ENCODING) {
            let value = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
            for word in value.split(',').map(str::trim) {
                let coding = match word {
                    "" | "identity" => continue,
                    "gzip" | "x-gzip" => Self::Gzip,
                    "deflate" => Self::Deflate,
                    "br" => Self::Brotli,
                    _ => return Err(unsupported(&value)),
                };
                if found.replace(coding).is_some() {
                    return Err(unsupported(&value));
                }
            }
        }
        Ok(found)
    }
}

pub async fn unpack(coding: Coding, packed: &[u8], cap: usize) -> Result<Vec<u8>, EgressError> {
    match coding {
        Coding::Gzip => {
            let mut decoder = GzipDecoder::new(packed);
            decoder.multiple_members(true);
            drain(decoder, cap).await
        }
        Coding::Deflate => drain(ZlibDecoder::new(packed), cap).await,
        Coding::Brotli => drain(BrotliDecoder::new(packed), cap).await,
    }
}

async fn drain(mut decoder: impl AsyncRead + Unpin, cap: usize) -> Result<Vec<u8>, EgressError> {
    let mut body = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = decoder.read(&mut chunk).await.map_err(|_| {
            EgressError::new(Reason::InvalidEncoding, "the body of the answer cannot be decompressed")
        })?;
        let Some(data) = chunk.get(..count).filter(|data| !data.is_empty()) else { return Ok(body) };
        if count > cap.saturating_sub(body.len()) {
            return Err(too_large(cap));
        }
        body.extend_from_slice(data);
        // A reader over memory is always ready: without this, others would wait for the whole body.
        tokio::task::yield_now().await;
    }
}

fn too_large(cap: usize) -> EgressError {
    let message = format!("the body of the answer is larger than {cap} bytes; ask for less");
    EgressError::new(Reason::ResponseBodyTooLarge, message)
}

fn silent() -> EgressError {
    let message = "the server fell silent within its answer; try again later";
    EgressError::new(Reason::ResponseBodyTimeout, message)
}

fn unsupported(value: &str) -> EgressError {
    let message = format!("the answer is packed as {}, which was not asked for", quoted(value));
    EgressError::new(Reason::UnsupportedEncoding, message)
}

/// A body that ends early hides its reason one level down.
pub fn cut(error: &hyper::Error) -> EgressError {
    let ended = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    if ended.is_some_and(|source| source.kind() == std::io::ErrorKind::UnexpectedEof) {
        return EgressError::new(
            Reason::ResponseTruncated,
            "the server closed the connection within the answer",
        );
    }
    if ended.is_some_and(|source| {
        matches!(source.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData)
    }) {
        return EgressError::new(Reason::InvalidResponse, "the body of the answer is not valid HTTP/1.1");
    }
    lost(error)
}

const CHUNK_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests;
