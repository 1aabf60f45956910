//! The definition of one configuration key: name, type, default and description.
//!
//! Parsing, defaults, the JSON Schema, the file that `toolgate init` writes and the table in `docs/config.md` are all derived
//! from the table in `keys.rs`. They therefore cannot disagree.

use serde_json::Value;

use crate::shape::TextShape;

#[derive(Debug)]
pub(crate) struct ConfigKey {
    pub name: &'static str,
    pub kind: ConfigValueKind,
    pub fallback: KeyDefault,
    pub doc: &'static str,
}

/// The type of a key's value. `null` is accepted if it is the default, and for a plain section, which then keeps its defaults.
#[derive(Debug)]
pub(crate) enum ConfigValueKind {
    /// The version of the file format.
    Version,
    Flag,
    Number {
        least: u64,
        most: u64,
    },
    Duration {
        least: Ms,
        most: Ms,
    },
    Size {
        least: u64,
        most: u64,
    },
    Choice(&'static [&'static str]),
    Choices(&'static [&'static str]),
    Text(TextShape),
    Texts(TextShape),
    Section(&'static [ConfigKey]),
    /// A section that holds exactly one of these keys.
    OneOf(&'static [ConfigKey]),
    Sections(&'static [ConfigKey]),
}

/// The value of a key that the file does not set.
#[derive(Debug)]
pub(crate) enum KeyDefault {
    Required,
    Null,
    Flag(bool),
    Number(u64),
    Text(&'static str),
    Texts(&'static [&'static str]),
    /// A section; each key inside has a default.
    Inside,
}

/// Milliseconds.
pub(crate) type Ms = u64;

impl ConfigKey {
    pub const fn new(
        name: &'static str,
        kind: ConfigValueKind,
        fallback: KeyDefault,
        doc: &'static str,
    ) -> Self {
        Self { name, kind, fallback, doc }
    }

    pub const fn section(name: &'static str, keys: &'static [Self], doc: &'static str) -> Self {
        Self::new(name, ConfigValueKind::Section(keys), KeyDefault::Inside, doc)
    }

    /// The default as a value; `None` if the key is required or is a section.
    pub fn fallback_value(&self) -> Option<Value> {
        match self.fallback {
            KeyDefault::Required | KeyDefault::Inside => None,
            KeyDefault::Null => Some(Value::Null),
            KeyDefault::Flag(flag) => Some(flag.into()),
            KeyDefault::Number(number) => Some(number.into()),
            KeyDefault::Text(text) => Some(text.into()),
            KeyDefault::Texts(texts) => Some(texts.to_vec().into()),
        }
    }

    pub const fn is_nullable(&self) -> bool {
        matches!(self.fallback, KeyDefault::Null) || self.is_plain_section()
    }

    /// A section that always exists and may be omitted from the file.
    pub const fn is_plain_section(&self) -> bool {
        matches!((&self.kind, &self.fallback), (ConfigValueKind::Section(_), KeyDefault::Inside))
    }

    pub const fn is_required(&self) -> bool {
        matches!(self.fallback, KeyDefault::Required)
    }
}

pub(crate) const SECOND: Ms = 1_000;
pub(crate) const MINUTE: Ms = 60 * SECOND;
pub(crate) const HOUR: Ms = 60 * MINUTE;
pub(crate) const DAY: Ms = 24 * HOUR;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
