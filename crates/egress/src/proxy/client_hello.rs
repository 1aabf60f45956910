//! Reads the ClientHello of a TLS connection: reassembles it from its records and parses it strictly.

/// Reassembles a ClientHello while bytes arrive.
#[derive(Debug, Default)]
pub struct ClientHelloReader {
    /// The number of bytes read so far; whole records only.
    read: usize,
    message: Vec<u8>,
}

/// The checked content of a ClientHello.
#[derive(Debug, Eq, PartialEq)]
pub struct ClientHello {
    /// The SNI host name in lower case.
    pub name: Option<String>,
    pub inner: InnerHello,
}

/// Whether the ClientHello contains an encrypted inner ClientHello, which only the server can read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InnerHello {
    Absent,
    Encrypted,
}

/// The bytes are not the beginning of a ClientHello.
#[derive(Debug, Eq, PartialEq)]
pub struct NotTls;

impl ClientHelloReader {
    /// `wire` holds all bytes received so far. Returns `None` until the ClientHello is complete.
    pub fn read(&mut self, wire: &[u8]) -> Result<Option<ClientHello>, NotTls> {
        loop {
            let rest = wire.get(self.read..).unwrap_or_default();
            if rest.first().is_some_and(|kind| *kind != HANDSHAKE) || self.read > MAX_WIRE_BYTES {
                return Err(NotTls);
            }
            let Some((header, rest)) = rest.split_first_chunk::<5>() else { return Ok(None) };
            let [_, major, _, high, low] = *header;
            let length = usize::from(u16::from_be_bytes([high, low]));
            if major != 3 || !(1..=MAX_RECORD_BYTES).contains(&length) {
                return Err(NotTls);
            }
            let Some(fragment) = rest.get(..length) else { return Ok(None) };
            self.message.extend_from_slice(fragment);
            self.read += header.len() + length;
            if let Some(hello) = self.whole()? {
                return Ok(Some(hello));
            }
        }
    }

    fn whole(&self) -> Result<Option<ClientHello>, NotTls> {
        let mut reader = TlsReader(&self.message);
        if self.message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(NotTls);
        }
        let Some((_, length)) = reader.number(1).zip(reader.number(3)) else { return Ok(None) };
        if length > MAX_HELLO_BYTES {
            return Err(NotTls);
        }
        let Some(body) = reader.take(length) else { return Ok(None) };
        // The server would read a second message in the same record, and this parser would not.
        if !reader.is_empty() {
            return Err(NotTls);
        }
        hello(body).ok_or(NotTls).map(Some)
    }
}

/// RFC 8446, 4.1.2; the same structure since TLS 1.0.
fn hello(body: &[u8]) -> Option<ClientHello> {
    let mut reader = TlsReader(body);
    reader.take(VERSION_AND_RANDOM_BYTES)?;
    reader.vector(1).filter(|session| session.len() <= 32)?;
    reader.vector(2).filter(|suites| !suites.is_empty() && suites.len() % 2 == 0)?;
    reader.vector(1).filter(|compressions| !compressions.is_empty())?;
    let mut hello = ClientHello { name: None, inner: InnerHello::Absent };
    if reader.is_empty() {
        return Some(hello);
    }
    let mut extensions = TlsReader(reader.vector(2)?);
    reader.is_empty().then_some(())?;
    let mut seen = Vec::new();
    while !extensions.is_empty() {
        let kind = extensions.number(2)?;
        let content = extensions.vector(2)?;
        // Implementations disagree about which of two equal extensions counts.
        if seen.contains(&kind) {
            return None;
        }
        seen.push(kind);
        match kind {
            SERVER_NAME => hello.name = Some(server_name(content)?),
            ENCRYPTED_CLIENT_HELLO | ENCRYPTED_SERVER_NAME => hello.inner = InnerHello::Encrypted,
            _ => {}
        }
    }
    Some(hello)
}

/// RFC 6066, 3: the list has one entry in practice. More are rejected.
fn server_name(content: &[u8]) -> Option<String> {
    let mut outer = TlsReader(content);
    let mut list = TlsReader(outer.vector(2)?);
    let kind = list.number(1)?;
    let name = list.vector(2)?;
    if kind != HOST_NAME || !list.is_empty() || !outer.is_empty() || name.is_empty() {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    name.bytes().all(|byte| byte.is_ascii_graphic()).then(|| name.to_ascii_lowercase())
}

struct TlsReader<'a>(&'a [u8]);

impl<'a> TlsReader<'a> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, width: usize) -> Option<usize> {
        let bytes = self.take(width)?;
        Some(bytes.iter().fold(0, |number, byte| (number << 8) | usize::from(*byte)))
    }

    /// Reads a length of `width` bytes, then as many bytes.
    fn vector(&mut self, width: usize) -> Option<&'a [u8]> {
        let length = self.number(width)?;
        self.take(length)
    }
}

/// Room for a ClientHello that is split into small records.
pub const MAX_WIRE_BYTES: usize = 64 * 1024;

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const MAX_RECORD_BYTES: usize = 1 << 14;
const MAX_HELLO_BYTES: usize = 1 << 14;
const VERSION_AND_RANDOM_BYTES: usize = 34;
const SERVER_NAME: usize = 0;
const HOST_NAME: usize = 0;
const ENCRYPTED_CLIENT_HELLO: usize = 0xfe0d;
const ENCRYPTED_SERVER_NAME: usize = 0xffce; // an earlier draft of it

#[cfg(test)]
pub mod tests;
