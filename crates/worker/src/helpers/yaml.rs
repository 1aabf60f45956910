//! What does a YAML text hold? One document of YAML 1.2 as plain data.
//!
//! Tags of a program's own are refused, aliases and merge keys are followed within bounds, and a key that stands twice is
//! an error. Keys become texts. `.nan` and `.inf`, for which JSON has no number, come back as those texts, and dates are
//! texts too. An empty text is `null`.

#[cfg(test)]
mod tests;

use std::{cell::Cell, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy, Options, options};

use super::{Answer, HelperError, shortened};

pub fn parse(text: &str) -> Result<Answer, HelperError> {
    if text.len() > MAX_INPUT {
        return Err(too_large());
    }
    let room = Cell::new(MAX_OUTPUT);
    let tree =
        serde_saphyr::with_deserializer_from_str_with_options(text, reader_options(), |deserializer| {
            Plain { room: &room }.deserialize(deserializer)
        });
    if room.get() == 0 {
        return Err(too_large());
    }
    let json = tree.map_err(|error| failed(&error.to_string()))?.to_string();
    if json.len() > MAX_OUTPUT { Err(too_large()) } else { Ok(Answer::Json(json)) }
}

fn reader_options() -> Options {
    options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            max_documents: 1,
            max_aliases: 10_000,
            max_anchors: 10_000,
            max_nodes: 500_000,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 100_000 },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Merge,
        strict_booleans: true,
        legacy_octal_numbers: false,
        non_finite_float_policy: NonFiniteFloatPolicy::AsString,
        reject_unsupported_tags: true,
        with_snippet: false,
    }
}

/// Builds a value, and spends the room that is left for the answer: an alias can say a long text again and again.
#[derive(Clone, Copy)]
struct Plain<'room> {
    room: &'room Cell<usize>,
}

impl Plain<'_> {
    fn spend<E: Error>(self, bytes: usize) -> Result<(), E> {
        self.room.set(self.room.get().saturating_sub(bytes.saturating_add(OVERHEAD)));
        if self.room.get() == 0 { Err(E::custom("too large")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for Plain<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Plain<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plain data")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Number(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.spend(0).map(|()| Value::Number(value.into()))
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript has no wider number")]
    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript has no wider number")]
    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.spend::<E>(0)?;
        Ok(Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.spend(value.len()).map(|()| Value::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.spend::<A::Error>(0)?;
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.spend::<A::Error>(0)?;
        let mut object = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            self.spend::<A::Error>(key.len())?;
            // `1` and `"1"` are two keys to YAML and one here.
            if object.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{}`", key.escape_debug())));
            }
            let value = members.next_value_seed(self)?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// The library's messages may have several lines and say where.
fn failed(message: &str) -> HelperError {
    let line = message.lines().next().unwrap_or("the text is not YAML");
    HelperError::runtime(HELPER, "parse-failed", shortened(line.chars(), MOST_SHOWN))
}

fn too_large() -> HelperError {
    HelperError::runtime(
        HELPER,
        "result-too-large",
        "the text or its data is larger than 16 MiB; split it first",
    )
}

const HELPER: &str = "safety.parser.yaml";
const MAX_INPUT: usize = 16 << 20;
const MAX_OUTPUT: usize = 16 << 20;
/// What a value costs beyond its text.
const OVERHEAD: usize = 8;
const MAX_DEPTH: usize = 100;
const MOST_SHOWN: usize = 300;
