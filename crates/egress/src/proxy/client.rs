//! How are a command's bytes read, and how is it spoken to? Bounded in length and in time, both ways.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{
    head::{self, Framing, Head, invalid},
    ledger::Entry,
    refusal,
    way::Way,
};
use crate::error::{EgressError, Reason};

/// The command's end of a connection, and what was read of it but not yet used.
pub struct Client {
    pub stream: TcpStream,
    pub buffer: BytesMut,
    answer: Answer,
}

/// Was an answer begun? A second one would be read as part of the first.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Answer {
    NotYet,
    Begun,
}

impl Client {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream, buffer: BytesMut::new(), answer: Answer::NotYet }
    }

    /// `None` if the command hung up without a word.
    pub async fn head(&mut self, way: &Way, entry: &Entry) -> Result<Option<Head>, EgressError> {
        let late = |_| EgressError::new(Reason::RequestTimeout, "the request did not come in time");
        timeout(way.limits.head_time, self.whole_head(way, entry)).await.map_err(late)?
    }

    async fn whole_head(&mut self, way: &Way, entry: &Entry) -> Result<Option<Head>, EgressError> {
        let most = way.limits.head_bytes;
        let mut seen = 0;
        loop {
            let end = head::end(&self.buffer, seen)?;
            if end.unwrap_or(self.buffer.len()) > most {
                let message = format!("the request's head is longer than {most} bytes; send less");
                return Err(EgressError::new(Reason::RequestHeadersTooLarge, message));
            }
            if let Some(end) = end {
                way.count_up(entry, end)?;
                return Head::parse(&self.buffer.split_to(end)).map(Some);
            }
            seen = self.buffer.len();
            if !self.more().await? {
                return if seen == 0 { Ok(None) } else { Err(invalid("it ends within its head")) };
            }
        }
    }

    /// Reads a body whole: it is judged before any of it leaves.
    pub async fn body(&mut self, framing: Framing, way: &Way, entry: &Entry) -> Result<Bytes, EgressError> {
        let most = way.egress.limits().request_body_bytes;
        let idle = way.limits.idle;
        match framing {
            Framing::Absent => Ok(Bytes::new()),
            Framing::Length(length) if length > most => Err(too_large(most)),
            Framing::Length(length) => {
                way.count_up(entry, length)?;
                self.fill(length, idle).await?;
                Ok(self.buffer.split_to(length).freeze())
            }
            Framing::Chunked => self.chunks(most, way, entry).await,
        }
    }

    async fn chunks(&mut self, most: usize, way: &Way, entry: &Entry) -> Result<Bytes, EgressError> {
        let mut body = BytesMut::new();
        loop {
            let size = self.chunk_size(way.limits.idle).await?;
            if size > most.saturating_sub(body.len()) {
                return Err(too_large(most));
            }
            way.count_up(entry, size)?;
            self.fill(size + LINE_END.len(), way.limits.idle).await?;
            body.extend_from_slice(&self.buffer.split_to(size));
            // After the last chunk this is the empty line that says there are no trailers; nobody reads any.
            if !self.buffer.starts_with(LINE_END) {
                return Err(invalid("a chunk is longer than it says, or trailers follow the last one"));
            }
            self.buffer.advance(LINE_END.len());
            if size == 0 {
                return Ok(body.freeze());
            }
        }
    }

    /// Digits and a line end: what else may stand there is read differently by different readers.
    async fn chunk_size(&mut self, idle: Duration) -> Result<usize, EgressError> {
        let bad = || invalid("a chunk's size is not a number of at most eight digits");
        loop {
            let line = self.buffer.iter().position(|byte| !byte.is_ascii_hexdigit());
            let digits = line.unwrap_or(self.buffer.len());
            if digits > MOST_SIZE_DIGITS || line == Some(0) {
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

    /// Reads until the buffer holds this much.
    async fn fill(&mut self, length: usize, idle: Duration) -> Result<(), EgressError> {
        while self.buffer.len() < length {
            if !timeout(idle, self.more()).await.map_err(|_| silent())?? {
                return Err(invalid("it ends within its body"));
            }
        }
        Ok(())
    }

    /// Whether anything came; nothing is the end.
    pub async fn more(&mut self) -> Result<bool, EgressError> {
        self.buffer.reserve(CHUNK_BYTES);
        let count = self.stream.read_buf(&mut self.buffer).await.map_err(|_| hung_up())?;
        Ok(count > 0)
    }

    /// Whoever announces a body may wait for leave to send it. Not an answer yet.
    pub async fn invite_body(&mut self, idle: Duration) -> Result<(), EgressError> {
        self.write(b"HTTP/1.1 100 Continue\r\n\r\n", idle).await
    }

    /// A part of the answer.
    pub async fn say(&mut self, bytes: &[u8], idle: Duration) -> Result<(), EgressError> {
        self.answer = Answer::Begun;
        self.write(bytes, idle).await
    }

    async fn write(&mut self, bytes: &[u8], idle: Duration) -> Result<(), EgressError> {
        timeout(idle, self.stream.write_all(bytes)).await.map_err(|_| silent())?.map_err(|_| hung_up())
    }

    /// Tells why nothing comes, if there is still room to; then hangs up.
    pub async fn refuse(&mut self, error: &EgressError) {
        if self.answer == Answer::NotYet {
            // Nobody is left to hear that the answer could not be written.
            let _ = self.say(&refusal::answer(error), FAREWELL).await;
        }
        self.part().await;
    }

    /// Closing on unread bytes would destroy an answer that is still on its way, so a little of them is read.
    pub async fn part(&mut self) {
        let _ = timeout(FAREWELL, async {
            let _ = self.stream.shutdown().await;
            let mut left = MOST_UNREAD_BYTES;
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
    EgressError::new(Reason::RequestBodyTooLarge, message)
}

pub fn silent() -> EgressError {
    EgressError::new(Reason::ConnectionIdle, "nothing moved on the connection for too long")
}

pub fn hung_up() -> EgressError {
    EgressError::new(Reason::ConnectionLost, "the connection was lost; try again later")
}

const LINE_END: &[u8] = b"\r\n";
const MOST_SIZE_DIGITS: usize = 8;
const CHUNK_BYTES: usize = 16 * 1024;
const MOST_UNREAD_BYTES: usize = 1024 * 1024;
const FAREWELL: Duration = Duration::from_secs(1);
