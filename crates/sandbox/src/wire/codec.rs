//! Encoding of frame fields, and bounded decoding.

use std::fmt;

/// Appends fields to a frame; fills the header in last.
#[derive(Debug)]
pub struct FrameWriter {
    frame: Vec<u8>,
    /// Length of the first field that exceeds the reader's limit.
    too_long: Option<usize>,
}

impl FrameWriter {
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
        // A length that does not fit is written as the maximum, which every reader rejects.
        self.u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        self.frame.extend(value);
        self
    }

    pub fn text(&mut self, value: &str) -> &mut Self {
        self.bytes(value.as_bytes())
    }

    /// Writes what [`FrameReader::bytes`] accepts; a longer value makes [`Self::finish`] fail.
    pub fn bytes_within(&mut self, value: &[u8], limit: usize) -> &mut Self {
        self.hold(value.len(), limit).bytes(value)
    }

    /// Like [`Self::bytes_within`], for [`FrameReader::text`].
    pub fn text_within(&mut self, value: &str, limit: usize) -> &mut Self {
        self.bytes_within(value.as_bytes(), limit)
    }

    /// Writes what [`FrameReader::count`] accepts.
    pub fn count_within(&mut self, count: usize, limit: usize) -> &mut Self {
        self.hold(count, limit).u32(u32::try_from(count).unwrap_or(u32::MAX))
    }

    pub fn array<const N: usize>(&mut self, value: &[u8; N]) -> &mut Self {
        self.frame.extend(value);
        self
    }

    /// The whole frame. Fails if the frame or a field is longer than the other end accepts.
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

/// Reads fields from a frame body; each is checked against the remaining bytes.
#[derive(Clone, Copy, Debug)]
pub struct FrameReader<'a>(&'a [u8]);

impl<'a> FrameReader<'a> {
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

    /// A number of items of at least `smallest` bytes each, which must fit in the rest of the frame.
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

/// Why a frame is invalid.
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
            Self::TooLong(length) => write!(formatter, "a field of length {length} is longer than allowed"),
            Self::Truncated => formatter.write_str("the frame ends before its fields do"),
            Self::NotText => formatter.write_str("a text field is not UTF-8"),
            Self::Leftover(count) => write!(formatter, "{count} bytes follow the last field"),
            Self::UnknownKind(kind) => write!(formatter, "unknown frame kind {kind}"),
            Self::UnknownValue(value) => write!(formatter, "unknown field value {value}"),
        }
    }
}

impl std::error::Error for WireError {}
