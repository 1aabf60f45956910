//! What is a key? Its name, what may stand there, what holds where nothing stands there, and what it is for.
//!
//! Reading, defaults, the JSON Schema, the file that `toolgate init` writes and the table in `docs/config.md` are all derived
//! from the one table in `keys.rs`, so that they cannot disagree.

use serde_json::Value;

use crate::shape::Shape;

#[derive(Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub fallback: Fallback,
    pub doc: &'static str,
}

/// What may stand at a key. `null` may where it is the fallback, and for a section, which is then left as it is.
#[derive(Debug)]
pub(crate) enum Kind {
    /// The number of the format.
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
    Text(Shape),
    Texts(Shape),
    Section(&'static [Key]),
    /// Exactly one of these keys.
    OneOf(&'static [Key]),
    Sections(&'static [Key]),
}

/// What holds where the file says nothing.
#[derive(Debug)]
pub(crate) enum Fallback {
    Required,
    Null,
    Flag(bool),
    Number(u64),
    Text(&'static str),
    Texts(&'static [&'static str]),
    /// The fallbacks of the keys inside.
    Inside,
}

/// Milliseconds.
pub(crate) type Ms = u64;

impl Key {
    pub const fn new(name: &'static str, kind: Kind, fallback: Fallback, doc: &'static str) -> Self {
        Self { name, kind, fallback, doc }
    }

    pub const fn section(name: &'static str, keys: &'static [Self], doc: &'static str) -> Self {
        Self::new(name, Kind::Section(keys), Fallback::Inside, doc)
    }

    /// The value of the fallback; nothing for what is required, or has its fallbacks inside.
    pub fn fallback_value(&self) -> Option<Value> {
        match self.fallback {
            Fallback::Required | Fallback::Inside => None,
            Fallback::Null => Some(Value::Null),
            Fallback::Flag(flag) => Some(flag.into()),
            Fallback::Number(number) => Some(number.into()),
            Fallback::Text(text) => Some(text.into()),
            Fallback::Texts(texts) => Some(texts.to_vec().into()),
        }
    }

    pub const fn is_nullable(&self) -> bool {
        matches!(self.fallback, Fallback::Null) || self.is_plain_section()
    }

    /// A section that is always there, and need not be written.
    pub const fn is_plain_section(&self) -> bool {
        matches!((&self.kind, &self.fallback), (Kind::Section(_), Fallback::Inside))
    }

    pub const fn is_required(&self) -> bool {
        matches!(self.fallback, Fallback::Required)
    }
}

pub(crate) const SECOND: Ms = 1_000;
pub(crate) const MINUTE: Ms = 60 * SECOND;
pub(crate) const HOUR: Ms = 60 * MINUTE;
pub(crate) const DAY: Ms = 24 * HOUR;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
