//! Reads requests from a command and writes responses to it. Every step is limited in size and time.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{
    context::ProxyContext,
    head::{self, BodyFraming, RequestHead, invalid},
    ledger::ExchangeEntry,
    refusal,
};
use crate::error::{EgressError, EgressReason};

/// The command's end of a connection, with bytes that were read but not yet parsed.
pub struct ProxyClient {
    pub stream: TcpStream,
    pub buffer: BytesMut,
    answer: AnswerState,
}

/// Whether a response has begun. The command would read a second one as part of the first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AnswerState {
    NotYet,
    Begun,
}

impl ProxyClient {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: BytesMut::new(), answer: AnswerState::NotYet }
    }

    /// Returns `None` if the command closed the connection without sending anything.
    pub async fn head(
        &mut self,
        context: &ProxyContext,
        entry: &ExchangeEntry,
    ) -> Result<Option<RequestHead>, EgressError> {
        let late = |_| EgressError::new(EgressReason::RequestTimeout, "the request did not arrive in time");
        timeout(context.limits.head_time, self.whole_head(context, entry)).await.map_err(late)?
    }

    async fn whole_head(
        &mut self,
        context: &ProxyContext,
        entry: &ExchangeEntry,
    ) -> Result<Option<RequestHead>, EgressError> {
        let most = context.limits.head_bytes;
        let mut seen = 0;
        loop {
            let end = head::end(&self.buffer, seen)?;
            if end.unwrap_or(self.buffer.len()) > most {
                let message = format!("the request line and headers are longer than {most} bytes; send less");
                return Err(EgressError::new(EgressReason::RequestHeadersTooLarge, message));
            }
            if let Some(end) = end {
                context.count_up(entry, end)?;
                return RequestHead::parse(&self.buffer.split_to(end)).map(Some);
            }
            seen = self.buffer.len();
            if !self.more().await? {
                return if seen == 0 {
                    Ok(None)
                } else {
                    Err(invalid("it ends before its headers are complete"))
                };
            }
        }
    }

    /// Reads the whole body, because it is checked before any of it leaves.
    pub async fn body(
        &mut self,
        framing: BodyFraming,
        context: &ProxyContext,
        entry: &ExchangeEntry,
    ) -> Result<Bytes, EgressError> {
        let most = context.egress.limits().request_body_bytes;
        let idle = context.limits.idle;
        match framing {
            BodyFraming::Absent => Ok(Bytes::new()),
            BodyFraming::Length(length) if length > most => Err(too_large(most)),
            BodyFraming::Length(length) => {
                context.count_up(entry, length)?;
                self.fill(length, idle).await?;
                Ok(self.buffer.split_to(length).freeze())
            }
            BodyFraming::Chunked => self.chunks(most, context, entry).await,
        }
    }

    async fn chunks(
        &mut self,
        most: usize,
        context: &ProxyContext,
        entry: &ExchangeEntry,
    ) -> Result<Bytes, EgressError> {
        let mut body = BytesMut::new();
        loop {
            let size = self.chunk_size(context.limits.idle).await?;
            if size > most.saturating_sub(body.len()) {
                return Err(too_large(most));
            }
            context.count_up(entry, size)?;
            self.fill(size + LINE_END.len(), context.limits.idle).await?;
            body.extend_from_slice(&self.buffer.split_to(size));
            // After the last chunk this must be the empty line; trailers are not supported.
            if !self.buffer.starts_with(LINE_END) {
                return Err(invalid("a chunk is longer than announced, or trailers follow the last one"));
            }
            self.buffer.advance(LINE_END.len());
            if size == 0 {
                return Ok(body.freeze());
            }
        }
    }

    /// Accepts only digits and a line end. Parsers disagree about everything else that the format allows here.
    async fn chunk_size(&mut self, idle: Duration) -> Result<usize, EgressError> {
        let bad = || invalid("a chunk size is not a hexadecimal number of at most eight digits");
        loop {
            let line = self.buffer.iter().position(|byte| !byte.is_ascii_hexdigit());
            let digits = line.unwrap_or(self.buffer.len());
            if digits > MAX_SIZE_DIGITS || line == Some(0) {
                return Err(bad());
            }
            if let Some(rest) = line.and_then(|at| self.buffer.get(at..)).filter(|rest| rest.len() > 1) {
                if !rest.starts_with(LINE_END) {
                    return Err(bad());
                }
                let size = self.buffer.split_to(digits);
                self.buffer.advance(LINE_END.len());
                let size =
                    std::str::from_utf8(&size).ok().and_then(|size| usize::from_str_radix(size, 16).ok());
                return size.ok_or_else(bad);
            }
            self.fill(self.buffer.len() + 1, idle).await?;
        }
    }

    /// Reads until the buffer holds `length` bytes.
    async fn fill(&mut self, length: usize, idle: Duration) -> Result<(), EgressError> {
        while self.buffer.len() < length {
            if !timeout(idle, self.more()).await.map_err(|_| idle_timeout())?? {
                return Err(invalid("it ends before its body is complete"));
            }
        }
        Ok(())
    }

    /// Returns false at the end of the stream.
    pub async fn more(&mut self) -> Result<bool, EgressError> {
        self.buffer.reserve(CHUNK_BYTES);
        let count = self.stream.read_buf(&mut self.buffer).await.map_err(|_| connection_lost())?;
        Ok(count > 0)
    }

    /// Sends `100 Continue`, which a client may wait for before it sends a body. Not part of the response.
    pub async fn invite_body(&mut self, idle: Duration) -> Result<(), EgressError> {
        self.write(b"HTTP/1.1 100 Continue\r\n\r\n", idle).await
    }

    /// Writes a part of the response.
    pub async fn say(&mut self, bytes: &[u8], idle: Duration) -> Result<(), EgressError> {
        self.answer = AnswerState::Begun;
        self.write(bytes, idle).await
    }

    async fn write(&mut self, bytes: &[u8], idle: Duration) -> Result<(), EgressError> {
        timeout(idle, self.stream.write_all(bytes))
            .await
            .map_err(|_| idle_timeout())?
            .map_err(|_| connection_lost())
    }

    /// Sends the error if no response has begun, then closes the connection.
    pub async fn refuse(&mut self, error: &EgressError) {
        if self.answer == AnswerState::NotYet {
            // A failed write cannot be reported to the command.
            let _ = self.say(&refusal::answer(error), CLOSE_TIMEOUT).await;
        }
        self.close().await;
    }

    /// Closing a socket with unread bytes resets the connection and destroys a response that is still in transit. Reads
    /// some of them first.
    pub async fn close(&mut self) {
        let _ = timeout(CLOSE_TIMEOUT, async {
            let _ = self.stream.shutdown().await;
            let mut left = MAX_UNREAD_BYTES;
            while left > 0 {
                self.buffer.clear();
                match self.more().await {
                    Ok(true) => left = left.saturating_sub(self.buffer.len()),
                    Ok(false) | Err(_) => break,
                }
            }
        })
        .await;
    }
}

fn too_large(most: usize) -> EgressError {
    let message = format!("the request body is longer than {most} bytes; send less");
    EgressError::new(EgressReason::RequestBodyTooLarge, message)
}

pub fn idle_timeout() -> EgressError {
    EgressError::new(EgressReason::ConnectionIdle, "the connection was idle for too long")
}

pub fn connection_lost() -> EgressError {
    EgressError::new(EgressReason::ConnectionLost, "the connection was lost; try again later")
}

const LINE_END: &[u8] = b"\r\n";
const MAX_SIZE_DIGITS: usize = 8;
const CHUNK_BYTES: usize = 16 * 1024;
const MAX_UNREAD_BYTES: usize = 1024 * 1024;
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
