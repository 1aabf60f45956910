//! Bounded reading and plain writing of fields.

use std::fmt;

/// Appends fields to a frame; the header is filled in last.
#[derive(Debug)]
pub struct Writer {
    frame: Vec<u8>,
    /// The first field that is longer than the other end reads.
    too_long: Option<usize>,
}

impl Writer {
    pub fn new(kind: u8) -> Self {
        Self { frame: vec![0, 0, 0, 0, kind], too_long: None }
    }

    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.frame.push(value);
        self
    }

    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.frame.extend(value.to_le_bytes());
        self
    }

    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.frame.extend(value.to_le_bytes());
        self
    }

    pub fn bytes(&mut self, value: &[u8]) -> &mut Self {
        // A length that does not fit is written as the largest one, which no reader accepts.
        self.u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.frame.extend(value);
        self
    }

    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// As [`Reader::bytes`] takes them: with more there is no frame.
    pub fn bytes_within(&mut self, value: &[u8], limit: usize) -> &mut Self {
        self.hold(value.len(), limit).bytes(value)
    }

    /// As [`Reader::text`] takes it.
    pub fn text_within(&mut self, value: &str, limit: usize) -> &mut Self {
        self.bytes_within(value.as_bytes(), limit)
    }

    /// As [`Reader::count`] takes it.
    pub fn count_within(&mut self, count: usize, limit: usize) -> &mut Self {
        self.hold(count, limit).u32(u32::try_from(count).unwrap_or(u32::MAX))
    }

    pub fn array<const N: usize>(&mut self, value: &[u8; N]) -> &mut Self {
        self.frame.extend(value);
        self
    }

    /// The whole frame. One that would be too long for the other end, or has a field that is, is refused here already.
    pub fn finish(mut self) -> Result<Vec<u8>, WireError> {
        let length = self.frame.len().saturating_sub(super::HEADER);
        if length > super::MAX_FRAME {
            return Err(WireError::TooLong(length));
        }
        if let Some(length) = self.too_long {
            return Err(WireError::TooLong(length));
        }
        let announced = u32::try_from(length).map_err(|_| WireError::TooLong(length))?;
        if let Some(place) = self.frame.first_chunk_mut::<4>() {
            *place = announced.to_le_bytes();
        }
        Ok(self.frame)
    }

    fn hold(&mut self, length: usize, limit: usize) -> &mut Self {
        if length > limit {
            self.too_long.get_or_insert(length);
        }
        self
    }
}

/// Takes fields from a frame's body; every one is checked against what is left.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(body: &'a [u8]) -> Self {
        Self(body)
    }

    pub fn u8(&mut self) -> Result<u8, WireError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.0.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(*taken)
    }

    /// At most `limit` bytes.
    pub fn bytes(&mut self, limit: usize) -> Result<&'a [u8], WireError> {
        let length = self.u32()? as usize;
        if length > limit {
            return Err(WireError::TooLong(length));
        }
        let (taken, rest) = self.0.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn text(&mut self, limit: usize) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes(limit)?).map_err(|_| WireError::NotText)
    }

    /// A count of things of which each takes at least `smallest` bytes, so that no count outgrows the frame.
    pub fn count(&mut self, limit: usize, smallest: usize) -> Result<usize, WireError> {
        let count = self.u32()? as usize;
        if count > limit {
            return Err(WireError::TooLong(count));
        }
        if count.saturating_mul(smallest) > self.0.len() {
            return Err(WireError::Truncated);
        }
        Ok(count)
    }

    pub fn end(self) -> Result<(), WireError> {
        if self.0.is_empty() { Ok(()) } else { Err(WireError::Leftover(self.0.len())) }
    }
}

/// A frame that does not say what a frame may say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WireError {
    TooLong(usize),
    Truncated,
    NotText,
    Leftover(usize),
    UnknownKind(u8),
    UnknownValue(u8),
}

impl fmt::Display for WireError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(length) => write!(formatter, "a field of {length} is longer than allowed"),
            Self::Truncated => formatter.write_str("the frame ends before its fields do"),
            Self::NotText => formatter.write_str("a text field is not UTF-8"),
            Self::Leftover(count) => write!(formatter, "{count} bytes follow the last field"),
            Self::UnknownKind(kind) => write!(formatter, "no frame has the kind {kind}"),
            Self::UnknownValue(value) => write!(formatter, "no field has the value {value}"),
        }
    }
}

impl std::error::Error for WireError {}
