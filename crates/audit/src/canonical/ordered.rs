//! Are the members in order as they come? Then what `serde_json` writes is canonical as it stands.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{
    Number, Serializer,
    ser::{CharEscape, CompactFormatter, Formatter},
};

/// Adds the JSON of a value whose members come in order. An error says nothing but that they do not, or that something in it is
/// not spelled the same by everybody.
pub(super) fn write<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    value.serialize(&mut Serializer::with_formatter(out, InOrder::default()))
}

/// As the compact formatter, with an eye on the keys.
#[derive(Default)]
struct InOrder {
    /// The last key of each open object, one after the other, and then the key that is being written.
    keys: Vec<u8>,
    /// Where the last key of each open object begins.
    objects: Vec<usize>,
    /// Where the key that is being written begins.
    key: Option<usize>,
}

impl InOrder {
    /// Keys that are no plain texts are not compared here.
    fn is_no_key(&self) -> io::Result<()> {
        if self.key.is_none() { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

impl Formatter for InOrder {
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.objects.push(self.keys.len());
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        let begin = self.objects.pop().ok_or(io::ErrorKind::InvalidData)?;
        self.keys.truncate(begin);
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, is_first: bool) -> io::Result<()> {
        let last = *self.objects.last().ok_or(io::ErrorKind::InvalidData)?;
        // The first key follows nothing; even the empty one comes after that.
        self.key = Some(if is_first { last } else { self.keys.len() });
        if is_first { Ok(()) } else { writer.write_all(b",") }
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        let last = *self.objects.last().ok_or(io::ErrorKind::InvalidData)?;
        let key = self.key.take().ok_or(io::ErrorKind::InvalidData)?;
        if key == last {
            return Ok(());
        }
        let (before, new) = self.keys.split_at_checked(key).ok_or(io::ErrorKind::InvalidData)?;
        if before.get(last..).is_none_or(|before| before >= new) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        self.keys.drain(last..key);
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, text: &str) -> io::Result<()> {
        if self.key.is_some() {
            // Others are ordered by their UTF-16, which is not the order of their bytes.
            if !text.is_ascii() {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.keys.extend_from_slice(text.as_bytes());
        }
        writer.write_all(text.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        self.is_no_key()?;
        CompactFormatter.write_char_escape(writer, escape)
    }

    fn write_bool<W: ?Sized + Write>(&mut self, writer: &mut W, value: bool) -> io::Result<()> {
        self.is_no_key()?;
        CompactFormatter.write_bool(writer, value)
    }

    fn write_u8<W: ?Sized + Write>(&mut self, writer: &mut W, value: u8) -> io::Result<()> {
        self.write_u64(writer, value.into())
    }

    fn write_u16<W: ?Sized + Write>(&mut self, writer: &mut W, value: u16) -> io::Result<()> {
        self.write_u64(writer, value.into())
    }

    fn write_u32<W: ?Sized + Write>(&mut self, writer: &mut W, value: u32) -> io::Result<()> {
        self.write_u64(writer, value.into())
    }

    fn write_i8<W: ?Sized + Write>(&mut self, writer: &mut W, value: i8) -> io::Result<()> {
        self.write_i64(writer, value.into())
    }

    fn write_i16<W: ?Sized + Write>(&mut self, writer: &mut W, value: i16) -> io::Result<()> {
        self.write_i64(writer, value.into())
    }

    fn write_i32<W: ?Sized + Write>(&mut self, writer: &mut W, value: i32) -> io::Result<()> {
        self.write_i64(writer, value.into())
    }

    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, value: u64) -> io::Result<()> {
        self.is_no_key()?;
        if value < EXACT {
            return CompactFormatter.write_u64(writer, value);
        }
        canonical_number(writer, &value.into())
    }

    fn write_i64<W: ?Sized + Write>(&mut self, writer: &mut W, value: i64) -> io::Result<()> {
        self.is_no_key()?;
        if value.unsigned_abs() < EXACT {
            return CompactFormatter.write_i64(writer, value);
        }
        canonical_number(writer, &value.into())
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        self.is_no_key()?;
        canonical_number(writer, &Number::from_f64(value).ok_or(io::ErrorKind::InvalidData)?)
    }

    fn write_f32<W: ?Sized + Write>(&mut self, _: &mut W, _: f32) -> io::Result<()> {
        Err(io::ErrorKind::InvalidData.into())
    }

    fn write_u128<W: ?Sized + Write>(&mut self, _: &mut W, _: u128) -> io::Result<()> {
        Err(io::ErrorKind::InvalidData.into())
    }

    fn write_i128<W: ?Sized + Write>(&mut self, _: &mut W, _: i128) -> io::Result<()> {
        Err(io::ErrorKind::InvalidData.into())
    }

    fn write_number_str<W: ?Sized + Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::InvalidData.into())
    }

    fn write_raw_fragment<W: ?Sized + Write>(&mut self, _: &mut W, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::InvalidData.into())
    }
}

fn canonical_number<W: ?Sized + Write>(writer: &mut W, number: &Number) -> io::Result<()> {
    let text = serde_json_canonicalizer::to_vec(number)?;
    writer.write_all(&text)
}

/// Smaller integers are exact as doubles, and written as they are.
const EXACT: u64 = 1_000_000_000_000_000;
