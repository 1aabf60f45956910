//! Parses one YAML 1.2 document as plain data.
//!
//! Custom tags are refused, aliases and merge keys are followed within limits, and duplicate keys are errors. Keys
//! become strings. `.nan`, `.inf` and dates are returned as strings, because JSON has no such values. An empty text is
//! `null`.

#[cfg(test)]
mod tests;

use std::{cell::RefCell, collections::HashSet, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_saphyr::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy, Options, options};

use super::{HelperAnswer, HelperError};

pub fn parse(text: &str) -> Result<HelperAnswer, HelperError> {
    if text.len() > MAX_INPUT {
        return Err(too_large());
    }
    let json = RefCell::new(String::new());
    let read =
        serde_saphyr::with_deserializer_from_str_with_options(text, reader_options(), |deserializer| {
            YamlToJson { json: &json }.deserialize(deserializer)
        });
    let json = json.into_inner();
    if json.len() > MAX_OUTPUT {
        return Err(too_large());
    }
    read.map_err(|error| failed(&error.to_string()))?;
    Ok(HelperAnswer::Json(json))
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

/// Writes values as JSON while parsing; a tree would take many times as much memory. Checks the length after every
/// part, because an alias can repeat a long text many times.
#[derive(Clone, Copy)]
struct YamlToJson<'json> {
    json: &'json RefCell<String>,
}

impl YamlToJson<'_> {
    fn push<E: Error>(self, text: &str) -> Result<(), E> {
        let mut json = self.json.borrow_mut();
        json.push_str(text);
        if json.len() > MAX_OUTPUT { Err(E::custom("too large")) } else { Ok(()) }
    }
}

impl<'de> DeserializeSeed<'de> for YamlToJson<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for YamlToJson<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("plain data")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.push("null")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.push(if value { "true" } else { "false" })
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.push(&value.to_string())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.push(&value.to_string())
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript has no wider number")]
    fn visit_i128<E: Error>(self, value: i128) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    #[expect(clippy::cast_precision_loss, reason = "JavaScript has no wider number")]
    fn visit_u128<E: Error>(self, value: u128) -> Result<(), E> {
        self.visit_f64(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        match Number::from_f64(value) {
            Some(number) => self.push(&number.to_string()),
            None => self.push(&quote(&value.to_string())),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.push(&quote(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.push::<A::Error>("[")?;
        let mut length = self.json.borrow().len();
        while items.next_element_seed(self)?.is_some() {
            length = self.json.borrow().len();
            self.push::<A::Error>(",")?;
        }
        // Remove the last comma.
        self.json.borrow_mut().truncate(length);
        self.push("]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        self.push::<A::Error>("{")?;
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            // YAML distinguishes the keys `1` and `"1"`; JSON does not.
            if keys.contains(&key) {
                return Err(A::Error::custom(format_args!("duplicate key `{}`", key.escape_debug())));
            }
            if !keys.is_empty() {
                self.push::<A::Error>(",")?;
            }
            self.push::<A::Error>(&quote(&key))?;
            self.push::<A::Error>(":")?;
            members.next_value_seed(self)?;
            keys.insert(key);
        }
        self.push("}")
    }
}

/// The library's messages may have several lines; the first one names the position. A long one is dropped because it
/// quotes the text: the gateway could not redact a truncated secret.
fn failed(message: &str) -> HelperError {
    let line = message.lines().next().filter(|line| line.chars().count() <= MAX_SHOWN);
    HelperError::runtime(HELPER, "parse-failed", line.unwrap_or("the text is not YAML"))
}

fn quote(text: &str) -> String {
    Value::from(text).to_string()
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
const MAX_DEPTH: usize = 100;
const MAX_SHOWN: usize = 300;
