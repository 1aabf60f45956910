//! A response body as a bounded sequence of messages.

use super::{
    HttpBody, HttpError, HttpResponse,
    sse::{EventParser, ServerEvent},
};
use crate::{
    UpstreamError,
    message::{self, Incoming},
};

/// The events of one response.
pub struct EventStream {
    body: Box<dyn HttpBody>,
    parser: EventParser,
    most_bytes: usize,
}

impl EventStream {
    pub fn new(body: Box<dyn HttpBody>, most_bytes: usize) -> Self {
        Self { body, parser: EventParser::new(most_bytes), most_bytes }
    }

    /// Returns the next event, or `None` when the response ended. A broken connection is an end, too: the caller may
    /// resume the stream.
    pub async fn next_event(&mut self) -> Result<Option<ServerEvent>, StreamEnd> {
        loop {
            if let Some(event) = self.parser.next_event() {
                return Ok(Some(event));
            }
            let Some(piece) = self.body.next().await.map_err(StreamEnd::Broken)? else { return Ok(None) };
            self.parser.push(&piece).map_err(|_| {
                StreamEnd::Invalid(format!("it sent an event of more than {} bytes", self.most_bytes))
            })?;
        }
    }

    pub const fn parser(&self) -> &EventParser {
        &self.parser
    }

    /// Reads the rest. Only then can the connection be used again.
    pub async fn drain(mut self) {
        while let Ok(Some(_)) = self.body.next().await {}
    }
}

/// Why a stream ended before its time.
#[derive(Debug)]
pub enum StreamEnd {
    Broken(HttpError),
    Invalid(String),
}

impl From<StreamEnd> for UpstreamError {
    fn from(end: StreamEnd) -> Self {
        match end {
            // The request that opened the stream was sent.
            StreamEnd::Broken(error) => Self::Lost(error.to_string()),
            StreamEnd::Invalid(why) => Self::Protocol(why),
        }
    }
}

/// Counts what a stream may contain.
#[derive(Debug)]
pub struct EventBudget {
    events: u32,
    noise: u32,
}

impl EventBudget {
    /// For the response to one request.
    pub const fn of_request() -> Self {
        Self { events: MOST_EVENTS, noise: MOST_NOISE }
    }

    /// For a stream that stays open: events are not counted, only those that are not messages.
    pub const fn of_stream() -> Self {
        Self { events: u32::MAX, noise: MOST_NOISE }
    }

    /// Reads the message of an event. `None`: the event has another name, or is not a message.
    pub fn read(&mut self, event: &ServerEvent) -> Result<Option<Incoming>, UpstreamError> {
        if self.events != u32::MAX {
            self.events = self.events.checked_sub(1).ok_or_else(|| too_many("events for one request"))?;
        }
        let incoming = if event.name == "message" { message::read(&event.data)? } else { Incoming::Noise };
        if incoming == Incoming::Noise {
            self.noise = self.noise.checked_sub(1).ok_or_else(|| too_many("events that are not messages"))?;
            return Ok(None);
        }
        Ok(Some(incoming))
    }
}

/// Reads a whole body of at most `most_bytes`.
pub async fn read_body(mut response: HttpResponse, most_bytes: usize) -> Result<Vec<u8>, UpstreamError> {
    let mut whole = Vec::new();
    while let Some(piece) = response.body.next().await.map_err(StreamEnd::Broken)? {
        if piece.len() > most_bytes.saturating_sub(whole.len()) {
            return Err(UpstreamError::Protocol(format!(
                "it sent a message of more than {most_bytes} bytes"
            )));
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
}

/// The media type of a response, in lower case and without parameters.
pub fn media_type(response: &HttpResponse) -> String {
    let value = response.header("content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn too_many(what: &str) -> UpstreamError {
    UpstreamError::Protocol(format!("it sent too many {what}"))
}

const MOST_EVENTS: u32 = 10_000;
const MOST_NOISE: u32 = 1000;

pub const EVENT_STREAM: &str = "text/event-stream";
