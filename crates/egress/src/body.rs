//! Reads and decompresses response bodies. The size limit applies to the bytes on the wire and again to the
//! decompressed bytes.

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
    error::{EgressError, EgressReason, quoted},
    exchange::connection_error,
    limits::EgressLimits,
};

pub async fn read(
    mut incoming: Incoming,
    limits: &EgressLimits,
    received: &AtomicU64,
) -> Result<Vec<u8>, EgressError> {
    let cap = limits.response_body_bytes;
    // The announced length is used only to reject a body early; the loop below counts the real bytes.
    if usize::try_from(incoming.size_hint().lower()).map_or(true, |announced| announced > cap) {
        return Err(too_large(cap));
    }
    let mut body = Vec::new();
    loop {
        let frame = timeout(limits.body_idle, incoming.frame()).await;
        let Some(frame) = frame.map_err(|_| body_idle())? else { return Ok(body) };
        // Trailers are ignored.
        let Ok(data) = frame.map_err(|error| body_error(&error))?.into_data() else { continue };
        received.fetch_add(data.len() as u64, Ordering::Relaxed);
        if data.len() > cap.saturating_sub(body.len()) {
            return Err(too_large(cap));
        }
        body.extend_from_slice(&data);
    }
}

/// The compression of a body.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ContentCoding {
    Gzip,
    Deflate,
    Brotli,
}

impl ContentCoding {
    /// Returns the coding of the body. Several codings are rejected, because nested compression is used for
    /// decompression bombs.
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

pub async fn decompress(coding: ContentCoding, packed: &[u8], cap: usize) -> Result<Vec<u8>, EgressError> {
    match coding {
        ContentCoding::Gzip => {
            let mut decoder = GzipDecoder::new(packed);
            decoder.multiple_members(true);
            drain(decoder, cap).await
        }
        ContentCoding::Deflate => drain(ZlibDecoder::new(packed), cap).await,
        ContentCoding::Brotli => drain(BrotliDecoder::new(packed), cap).await,
    }
}

async fn drain(mut decoder: impl AsyncRead + Unpin, cap: usize) -> Result<Vec<u8>, EgressError> {
    let mut body = Vec::new();
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = decoder.read(&mut chunk).await.map_err(|_| {
            EgressError::new(EgressReason::InvalidEncoding, "the response body cannot be decompressed")
        })?;
        let Some(data) = chunk.get(..count).filter(|data| !data.is_empty()) else { return Ok(body) };
        if count > cap.saturating_sub(body.len()) {
            return Err(too_large(cap));
        }
        body.extend_from_slice(data);
        // Decompression from memory never waits. Yield here; otherwise other tasks wait for the whole body.
        tokio::task::yield_now().await;
    }
}

pub fn too_large(cap: impl std::fmt::Display) -> EgressError {
    let message = format!("the response body is larger than {cap} bytes; request less data");
    EgressError::new(EgressReason::ResponseBodyTooLarge, message)
}

pub fn body_idle() -> EgressError {
    let message = "the server stopped sending in the middle of its response; try again later";
    EgressError::new(EgressReason::ResponseBodyTimeout, message)
}

pub fn unsupported(value: &str) -> EgressError {
    let message = format!("the response has content encoding {}, which was not requested", quoted(value));
    EgressError::new(EgressReason::UnsupportedEncoding, message)
}

/// hyper reports why a body ended early only in the source of its error.
pub fn body_error(error: &hyper::Error) -> EgressError {
    let ended = error.source().and_then(|source| source.downcast_ref::<std::io::Error>());
    if ended.is_some_and(|source| source.kind() == std::io::ErrorKind::UnexpectedEof) {
        return EgressError::new(
            EgressReason::ResponseTruncated,
            "the server closed the connection before the response was complete",
        );
    }
    if ended.is_some_and(|source| {
        matches!(source.kind(), std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData)
    }) {
        return EgressError::new(EgressReason::InvalidResponse, "the response body is not valid HTTP/1.1");
    }
    connection_error(error)
}

const CHUNK_BYTES: usize = 64 * 1024;

#[cfg(test)]
mod tests;
