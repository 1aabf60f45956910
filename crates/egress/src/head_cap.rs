//! Limits what a server sends before the response body: interim heads (`100`, `103`) and the final head together.
//!
//! hyper limits each head separately and skips any number of interim heads without yielding to other tasks.

use std::{
    error::Error,
    fmt, io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose reads fail once the heads exceed the limit. Body bytes are not counted.
pub struct HeadCap<S> {
    stream: S,
    heads: ResponseHeads,
    most_bytes: usize,
    responses: ResponseCounter,
    /// The response that `heads` counts.
    current: u64,
}

/// Starts a new count for the next response of a connection that is kept alive.
#[derive(Clone, Default)]
pub struct ResponseCounter(Arc<AtomicU64>);

impl ResponseCounter {
    /// Call it before the request is sent, when no byte of its response can have arrived.
    pub fn expect_response(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl<S> HeadCap<S> {
    pub fn new(stream: S, most_bytes: usize, responses: ResponseCounter) -> Self {
        Self { stream, heads: ResponseHeads::new(most_bytes), most_bytes, responses, current: 0 }
    }

    fn count(&mut self, bytes: &[u8]) -> Result<(), HeadsTooLarge> {
        let expected = self.responses.0.load(Ordering::Acquire);
        if expected != self.current {
            self.current = expected;
            self.heads = ResponseHeads::new(self.most_bytes);
        }
        self.heads.read(bytes)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for HeadCap<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if matches!(read, Poll::Ready(Ok(()))) {
            self.count(buffer.filled().get(before..).unwrap_or_default()).map_err(io::Error::other)?;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for HeadCap<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

/// Scans the heads of one response for status lines and the empty lines that end a head.
///
/// An unknown status counts as interim. If it counted as final, the heads after it would not be counted.
struct ResponseHeads {
    left: usize,
    interim: usize,
    /// The first bytes of the current line, and its length.
    line: [u8; STATUS_LINE],
    length: usize,
    state: HeadState,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum HeadState {
    /// Before or in a status line.
    Status,
    /// In the headers of an interim head, or of the final one.
    Interim,
    Final,
    /// Everything that follows is the body.
    Body,
}

impl ResponseHeads {
    const fn new(most_bytes: usize) -> Self {
        Self { left: most_bytes, interim: 0, line: [0; STATUS_LINE], length: 0, state: HeadState::Status }
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), HeadsTooLarge> {
        for byte in bytes {
            if self.state == HeadState::Body {
                return Ok(());
            }
            self.left = self.left.checked_sub(1).ok_or(HeadsTooLarge)?;
            if *byte == b'\n' {
                self.end_line()?;
                self.length = 0;
            } else {
                if let Some(place) = self.line.get_mut(self.length) {
                    *place = *byte;
                }
                self.length += 1;
            }
        }
        Ok(())
    }

    fn end_line(&mut self) -> Result<(), HeadsTooLarge> {
        let is_empty = matches!((self.length, self.line), (0, _) | (1, [b'\r', ..]));
        self.state = match self.state {
            // Empty lines before a status line are skipped.
            HeadState::Status if is_empty => HeadState::Status,
            HeadState::Status if self.is_final() => HeadState::Final,
            HeadState::Status => HeadState::Interim,
            HeadState::Interim if is_empty => {
                self.interim += 1;
                if self.interim > MAX_INTERIM {
                    return Err(HeadsTooLarge);
                }
                HeadState::Status
            }
            HeadState::Final if is_empty => HeadState::Body,
            other => other,
        };
        Ok(())
    }

    /// `101` ends HTTP on this connection, so it counts as final.
    fn is_final(&self) -> bool {
        self.length >= STATUS_LINE
            && matches!(
                self.line,
                [b'H', b'T', b'T', b'P', b'/', b'1', b'.', _, b' ', b'2'..=b'9', b'0'..=b'9', b'0'..=b'9']
                    | [b'H', b'T', b'T', b'P', b'/', b'1', b'.', _, b' ', b'1', b'0', b'1']
            )
    }
}

/// The cause of a failed read.
#[derive(Debug)]
pub struct HeadsTooLarge;

impl HeadsTooLarge {
    /// Whether this error, or one that caused it, is a `HeadsTooLarge`.
    pub fn caused(error: &(dyn Error + 'static)) -> bool {
        std::iter::successors(Some(error), |error| (**error).source()).any(|cause| {
            let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
            inner.and_then(|inner| inner.downcast_ref::<Self>()).is_some()
        })
    }
}

impl fmt::Display for HeadsTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the response headers are too large")
    }
}

impl Error for HeadsTooLarge {}

/// `HTTP/1.1 200`
const STATUS_LINE: usize = 12;
/// Servers send one or two.
const MAX_INTERIM: usize = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns how many bytes are accepted before the heads are too large, or `None` if they never are.
    fn refused_at(text: &str, most: usize, piece: usize) -> Option<usize> {
        let mut heads = ResponseHeads::new(most);
        let mut taken = 0;
        for piece in text.as_bytes().chunks(piece) {
            if heads.read(piece).is_err() {
                return Some(taken);
            }
            taken += piece.len();
        }
        None
    }

    #[test]
    fn body_is_not_counted() {
        let answer = format!("HTTP/1.1 200 OK\r\nx: y\r\n\r\n{}", "\r\n\r\nHTTP/1.1 103\r\n\r\n".repeat(100));
        assert_eq!(refused_at(&answer, 25, 1), None);
        assert_eq!(refused_at(&answer, 24, 1), Some(24));
    }

    #[test]
    fn interim_heads_count_together_with_the_final_one() {
        let interim = "HTTP/1.1 103 Early Hints\nlink: x\n\n";
        let answer = format!("\r\n{interim}{interim}HTTP/1.0 204 No Content\r\n\r\nbody");
        let heads = answer.len() - "body".len();
        assert_eq!(refused_at(&answer, heads, 7), None);
        assert_eq!(refused_at(&answer, heads - 1, 1), Some(heads - 1));
    }

    #[test]
    fn interim_heads_are_few() {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n";
        let answer = |count: usize| interim.repeat(count) + "HTTP/1.1 101 Switching Protocols\r\n\r\n";
        assert_eq!(refused_at(&answer(MAX_INTERIM), 10_000, 1), None);
        assert!(refused_at(&answer(MAX_INTERIM + 1), 10_000, 1).is_some());
    }

    #[test]
    fn invalid_status_lines_never_end_the_heads() {
        for line in ["HTTP/1.1 1OO", "HTTP/1.1  200 OK", "HTTP/2.0 200 OK", "200", "HTTP/1.1 20"] {
            assert_eq!(
                refused_at(&format!("{line}\r\n\r\n{}", "x".repeat(1_000)), 900, 1),
                Some(900),
                "{line}"
            );
        }
    }

    proptest! {
        /// The network splits a response at any position.
        #[test]
        fn chunk_size_makes_no_difference(answer in "(HTTP/1.1 [12]0[0-4]|[ax:]{0,3}|\r?\n){0,20}", piece in 1_usize..20) {
            let most = 40;
            let whole = refused_at(&answer, most, 1).is_some();
            prop_assert_eq!(refused_at(&answer, most, piece).is_some(), whole);
        }
    }
}
