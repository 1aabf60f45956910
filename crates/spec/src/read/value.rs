//! A serde visitor for both formats: builds a `Value`, rejects duplicate keys, and notes numbers that lose precision.

use std::{cell::Cell, fmt};

use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

/// A value without duplicate keys; deserializing a duplicate fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Unambiguous(pub Value);

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UniqueKeys(&ReadNotes::default()).deserialize(deserializer).map(Self)
    }
}

#[derive(Default)]
pub(super) struct ReadNotes {
    pub has_wide_numbers: Cell<bool>,
}

#[derive(Clone, Copy)]
pub(super) struct UniqueKeys<'notes>(pub &'notes ReadNotes);

impl<'de> DeserializeSeed<'de> for UniqueKeys<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        self.note_width(value.unsigned_abs());
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        self.note_width(value);
        Ok(Value::Number(value.into()))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        Err(E::custom(format_args!("number {value} is out of range")))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        Err(E::custom(format_args!("number {value} is out of range")))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        if value.fract() == 0.0 && value.abs() > EXACT_LIMIT_FLOAT {
            self.0.has_wide_numbers.set(true);
        }
        Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("NaN and infinity are not JSON numbers"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("{DUPLICATE_KEY} `{key}`")));
            }
            let value = members.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

impl UniqueKeys<'_> {
    fn note_width(self, magnitude: u64) {
        if magnitude > EXACT_LIMIT {
            self.0.has_wide_numbers.set(true);
        }
    }
}

pub(super) const DUPLICATE_KEY: &str = "duplicate key";

/// The largest integer up to which a double represents every integer exactly.
const EXACT_LIMIT: u64 = (1 << 53) - 1;
#[expect(clippy::cast_precision_loss, reason = "2^53 - 1 is exact in a double")]
pub(crate) const EXACT_LIMIT_FLOAT: f64 = EXACT_LIMIT as f64;
