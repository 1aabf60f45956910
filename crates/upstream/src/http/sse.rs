//! Parses `text/event-stream`. Lines end with LF, CR or CRLF, and the network splits them anywhere.

use std::{collections::VecDeque, fmt, time::Duration};

/// One event with data.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ServerEvent {
    /// `message` unless the server names another.
    pub name: String,
    pub data: Vec<u8>,
}

/// Turns pieces of a stream into events. Holds at most the limit of bytes for an unfinished event.
#[derive(Debug)]
pub struct EventParser {
    most_bytes: usize,
    /// The current line.
    line: Vec<u8>,
    /// Whether the last byte was CR. A following LF belongs to the same line end.
    after_cr: bool,
    is_first_line: bool,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    pending_id: Option<String>,
    last_id: Option<String>,
    retry: Option<Duration>,
    ready: VecDeque<ServerEvent>,
}

/// An event or a line is longer than the limit. The stream cannot be read further.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct EventTooLarge;

impl fmt::Display for EventTooLarge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event is too large")
    }
}

impl std::error::Error for EventTooLarge {}

impl EventParser {
    pub const fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            line: Vec::new(),
            after_cr: false,
            is_first_line: true,
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            pending_id: None,
            last_id: None,
            retry: None,
            ready: VecDeque::new(),
        }
    }

    /// Reads a piece of the stream. Complete events wait in `next_event`.
    pub fn push(&mut self, mut piece: &[u8]) -> Result<(), EventTooLarge> {
        while let Some(first) = piece.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                piece = piece.get(1..).unwrap_or_default();
                continue;
            }
            let end = piece.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (text, rest) = piece.split_at(end.unwrap_or(piece.len()));
            let held = self.line.len().saturating_add(self.data.len()).saturating_add(self.name.len());
            if text.len() > self.most_bytes.saturating_sub(held) {
                return Err(EventTooLarge);
            }
            self.line.extend_from_slice(text);
            let Some(ending) = rest.first() else { return Ok(()) };
            self.after_cr = *ending == b'\r';
            piece = rest.get(1..).unwrap_or_default();
            self.end_line();
        }
        Ok(())
    }

    pub fn next_event(&mut self) -> Option<ServerEvent> {
        self.ready.pop_front()
    }

    /// The id of the last complete event, for resuming the stream.
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server wants a client to wait before it reconnects.
    pub const fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if self.is_first_line => rest,
            _ => line.as_slice(),
        };
        self.is_first_line = false;
        if line.is_empty() {
            self.end_event();
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = value.to_vec(),
            b"id" => self.pending_id = usable_id(value).or_else(|| self.pending_id.take()),
            b"retry" => self.retry = retry_time(value).or(self.retry),
            // A comment (an empty field name) or an unknown field.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        if let Some(id) = self.pending_id.take() {
            self.last_id = Some(id).filter(|id| !id.is_empty());
        }
        let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
        // An event without data only sets the id.
        if std::mem::take(&mut self.has_data) && !data.is_empty() {
            let name = if name.is_empty() { DEFAULT_NAME.to_vec() } else { name };
            let name = String::from_utf8_lossy(&name).into_owned();
            self.ready.push_back(ServerEvent { name, data });
        }
    }
}

/// The id travels in a header later. Other ids are ignored, and the stream cannot be resumed there.
fn usable_id(value: &[u8]) -> Option<String> {
    let is_usable =
        value.len() <= ID_BYTES && value.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
    is_usable.then(|| String::from_utf8_lossy(value).trim().to_owned())
}

fn retry_time(value: &[u8]) -> Option<Duration> {
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(value).ok().filter(|_| is_number)?;
    text.parse().ok().map(Duration::from_millis)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
const DEFAULT_NAME: &[u8] = b"message";
const ID_BYTES: usize = 1024;

#[cfg(test)]
mod tests;
