//! Writes canonical JSON in one pass over a value whose members are in order.
//!
//! Each key is compared with the previous one in the bytes already written. Stops at the first value that has to be
//! sorted or written differently.

use std::{fmt, ops::Range};

use serde::{
    Serialize, Serializer,
    ser::{
        Error, Impossible, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, SerializeTupleStruct,
    },
};
use serde_json::Number;

use super::fragment::FRAGMENT;

/// Appends the canonical JSON of a value. After an error, `out` contains a part of it.
pub(super) fn write<T: Serialize + ?Sized>(value: &T, out: &mut Vec<u8>) -> Result<(), NotOrdered> {
    value.serialize(OrderedWriter { out, mode: Mode::Value })
}

/// The members are not in order, or a value needs a form that this writer does not support.
#[derive(Debug)]
pub(super) struct NotOrdered;

impl fmt::Display for NotOrdered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the members are not in canonical order")
    }
}

impl std::error::Error for NotOrdered {}

impl Error for NotOrdered {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// Writes one value.
struct OrderedWriter<'o> {
    out: &'o mut Vec<u8>,
    mode: Mode,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Mode {
    Value,
    /// Only plain ASCII without escapes. Other keys are ordered by UTF-16 units, which is not the order of bytes.
    Key,
    /// The content of a [`Fragment`](super::Fragment), which is already canonical.
    Fragment,
    /// The text of a fragment.
    Verbatim,
}

impl<'o> OrderedWriter<'o> {
    /// The output, for a value that is not a text.
    fn value(self) -> Result<&'o mut Vec<u8>, NotOrdered> {
        if self.mode == Mode::Value { Ok(self.out) } else { Err(NotOrdered) }
    }

    fn put(self, text: &[u8]) -> Result<(), NotOrdered> {
        self.value()?.extend_from_slice(text);
        Ok(())
    }

    fn put_number(self, number: &Number) -> Result<(), NotOrdered> {
        serde_json_canonicalizer::to_writer(number, self.value()?).map_err(|_| NotOrdered)
    }

    fn items(self) -> Result<Items<'o>, NotOrdered> {
        let out = self.value()?;
        out.push(b'[');
        Ok(Items { out, is_first: true })
    }

    fn members(self) -> Result<Members<'o>, NotOrdered> {
        let out = self.value()?;
        out.push(b'{');
        Ok(Members { out, last: None, is_fragment: false })
    }
}

impl<'o> Serializer for OrderedWriter<'o> {
    type Ok = ();
    type Error = NotOrdered;
    type SerializeSeq = Items<'o>;
    type SerializeTuple = Items<'o>;
    type SerializeTupleStruct = Items<'o>;
    type SerializeTupleVariant = Impossible<(), NotOrdered>;
    type SerializeMap = Members<'o>;
    type SerializeStruct = Members<'o>;
    type SerializeStructVariant = Impossible<(), NotOrdered>;

    fn serialize_str(self, text: &str) -> Result<(), NotOrdered> {
        match self.mode {
            Mode::Value => put_text(self.out, text),
            Mode::Key => put_key(self.out, text),
            Mode::Verbatim => {
                self.out.extend_from_slice(text.as_bytes());
                Ok(())
            }
            Mode::Fragment => Err(NotOrdered),
        }
    }

    fn serialize_bool(self, value: bool) -> Result<(), NotOrdered> {
        self.put(if value { b"true" } else { b"false" })
    }

    fn serialize_i8(self, value: i8) -> Result<(), NotOrdered> {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Result<(), NotOrdered> {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Result<(), NotOrdered> {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Result<(), NotOrdered> {
        if value.unsigned_abs() >= EXACT {
            return self.put_number(&value.into());
        }
        serde_json::to_writer(self.value()?, &value).map_err(|_| NotOrdered)
    }

    fn serialize_u8(self, value: u8) -> Result<(), NotOrdered> {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Result<(), NotOrdered> {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Result<(), NotOrdered> {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Result<(), NotOrdered> {
        if value >= EXACT {
            return self.put_number(&value.into());
        }
        serde_json::to_writer(self.value()?, &value).map_err(|_| NotOrdered)
    }

    fn serialize_f32(self, _: f32) -> Result<(), NotOrdered> {
        Err(NotOrdered)
    }

    fn serialize_f64(self, value: f64) -> Result<(), NotOrdered> {
        self.put_number(&Number::from_f64(value).ok_or(NotOrdered)?)
    }

    fn serialize_char(self, value: char) -> Result<(), NotOrdered> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), NotOrdered> {
        Err(NotOrdered)
    }

    fn serialize_none(self) -> Result<(), NotOrdered> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), NotOrdered> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), NotOrdered> {
        self.put(b"null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), NotOrdered> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), NotOrdered> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), NotOrdered> {
        if name == FRAGMENT {
            return value.serialize(OrderedWriter { out: self.value()?, mode: Mode::Fragment });
        }
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), NotOrdered> {
        Err(NotOrdered)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Items<'o>, NotOrdered> {
        self.items()
    }

    fn serialize_tuple(self, _: usize) -> Result<Items<'o>, NotOrdered> {
        self.items()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Items<'o>, NotOrdered> {
        self.items()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, NotOrdered> {
        Err(NotOrdered)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'o>, NotOrdered> {
        self.members()
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Members<'o>, NotOrdered> {
        match (self.mode, name) {
            (Mode::Fragment, RAW) => Ok(Members { out: self.out, last: None, is_fragment: true }),
            // Other raw JSON may have any form.
            (_, RAW) => Err(NotOrdered),
            _ => self.members(),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, NotOrdered> {
        Err(NotOrdered)
    }
}

/// An open array.
pub(super) struct Items<'o> {
    out: &'o mut Vec<u8>,
    is_first: bool,
}

impl Items<'_> {
    fn put<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotOrdered> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        write(value, self.out)
    }

    fn close(self) {
        self.out.push(b']');
    }
}

impl SerializeSeq for Items<'_> {
    type Ok = ();
    type Error = NotOrdered;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotOrdered> {
        self.put(value)
    }

    fn end(self) -> Result<(), NotOrdered> {
        self.close();
        Ok(())
    }
}

impl SerializeTuple for Items<'_> {
    type Ok = ();
    type Error = NotOrdered;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotOrdered> {
        self.put(value)
    }

    fn end(self) -> Result<(), NotOrdered> {
        self.close();
        Ok(())
    }
}

impl SerializeTupleStruct for Items<'_> {
    type Ok = ();
    type Error = NotOrdered;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotOrdered> {
        self.put(value)
    }

    fn end(self) -> Result<(), NotOrdered> {
        self.close();
        Ok(())
    }
}

/// An open object.
pub(super) struct Members<'o> {
    out: &'o mut Vec<u8>,
    /// The range of the last key in `out`, without its quotes.
    last: Option<Range<usize>>,
    is_fragment: bool,
}

impl Members<'_> {
    fn key(&mut self, put: impl FnOnce(&mut Vec<u8>) -> Result<(), NotOrdered>) -> Result<(), NotOrdered> {
        if self.last.is_some() {
            self.out.push(b',');
        }
        let start = self.out.len() + 1;
        put(self.out)?;
        let new = start..self.out.len().saturating_sub(1);
        let is_after = |last: &Range<usize>| self.out.get(last.clone()) < self.out.get(new.clone());
        if !self.last.as_ref().is_none_or(is_after) {
            return Err(NotOrdered);
        }
        self.out.push(b':');
        self.last = Some(new);
        Ok(())
    }

    fn close(self) {
        if !self.is_fragment {
            self.out.push(b'}');
        }
    }
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = NotOrdered;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), NotOrdered> {
        self.key(|out| key.serialize(OrderedWriter { out, mode: Mode::Key }))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), NotOrdered> {
        write(value, self.out)
    }

    fn end(self) -> Result<(), NotOrdered> {
        self.close();
        Ok(())
    }
}

impl SerializeStruct for Members<'_> {
    type Ok = ();
    type Error = NotOrdered;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), NotOrdered> {
        if self.is_fragment {
            return value.serialize(OrderedWriter { out: self.out, mode: Mode::Verbatim });
        }
        self.key(|out| put_key(out, key))?;
        write(value, self.out)
    }

    fn end(self) -> Result<(), NotOrdered> {
        self.close();
        Ok(())
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) -> Result<(), NotOrdered> {
    if has_escapes(text) {
        return serde_json::to_writer(out, text).map_err(|_| NotOrdered);
    }
    put_quoted(out, text);
    Ok(())
}

fn put_key(out: &mut Vec<u8>, key: &str) -> Result<(), NotOrdered> {
    if has_escapes(key) || !key.is_ascii() {
        return Err(NotOrdered);
    }
    put_quoted(out, key);
    Ok(())
}

fn put_quoted(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    out.extend_from_slice(text.as_bytes());
    out.push(b'"');
}

/// Visits all bytes without an early exit, which the compiler vectorises.
fn has_escapes(text: &str) -> bool {
    let needs_escape = |byte: u8| matches!(byte, 0..=0x1f | b'"' | b'\\');
    text.bytes().fold(false, |any, byte| any | needs_escape(byte))
}

/// The name under which `serde_json` serialises raw JSON.
const RAW: &str = "$serde_json::private::RawValue";
/// Smaller integers are exact as doubles and are written unchanged.
const EXACT: u64 = 1_000_000_000_000_000;
