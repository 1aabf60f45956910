//! The path to a value while walking a document. Costs no allocation; it becomes a pointer only for a finding.

use serde_json::{Map, Value};

use crate::Pointer;

#[derive(Clone, Copy, Debug)]
pub(super) enum ValuePath<'t> {
    Root,
    Key(&'t ValuePath<'t>, &'t str),
    Index(&'t ValuePath<'t>, usize),
}

impl<'t> ValuePath<'t> {
    pub(super) fn key(&'t self, key: &'t str) -> Self {
        Self::Key(self, key)
    }

    pub(super) fn index(&'t self, index: usize) -> Self {
        Self::Index(self, index)
    }

    pub(super) fn pointer(&self) -> Pointer {
        match self {
            Self::Root => Pointer::root(),
            Self::Key(parent, key) => parent.pointer().key(key),
            Self::Index(parent, index) => parent.pointer().index(*index),
        }
    }

    /// The pointer to the object or array that holds this value or key.
    pub(super) fn parent_pointer(&self) -> Pointer {
        match self {
            Self::Root => Pointer::root(),
            Self::Key(parent, _) | Self::Index(parent, _) => parent.pointer(),
        }
    }

    /// Whether `text` is the key itself: `strings_and_keys` visits keys too.
    pub(super) fn is_key(&self, text: &str) -> bool {
        matches!(self, Self::Key(_, key) if *key == text)
    }

    /// The nearest key above this value, skipping array indices.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Root => None,
            Self::Key(_, key) => Some(key),
            Self::Index(parent, _) => parent.name(),
        }
    }
}

/// Visits every string value and every key below `value`. The readers bound the depth of documents.
pub(super) fn strings_and_keys(
    value: &Value,
    location: &ValuePath<'_>,
    visit: &mut impl FnMut(&str, &ValuePath<'_>),
) {
    match value {
        Value::String(text) => visit(text, location),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                strings_and_keys(item, &location.index(index), visit);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let location = location.key(key);
                visit(key, &location);
                strings_and_keys(member, &location, visit);
            }
        }
        _ => {}
    }
}

/// The elements of an array, or nothing.
pub(super) fn elements<'a>(document: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    document.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
