//! Where are we in the document? A trail costs nothing to lay; it becomes a pointer only when there is something
//! to say.

use serde_json::{Map, Value};

use crate::Pointer;

#[derive(Clone, Copy, Debug)]
pub(super) enum Trail<'t> {
    Root,
    Key(&'t Trail<'t>, &'t str),
    Index(&'t Trail<'t>, usize),
}

impl<'t> Trail<'t> {
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

    /// The place of the member that holds this value or key.
    pub(super) fn parent_pointer(&self) -> Pointer {
        match self {
            Self::Root => Pointer::root(),
            Self::Key(parent, _) | Self::Index(parent, _) => parent.pointer(),
        }
    }

    /// Whether `text` is the key itself, as `strings_and_keys` visits it.
    pub(super) fn is_key(&self, text: &str) -> bool {
        matches!(self, Self::Key(_, key) if *key == text)
    }

    /// The key that this value stands under, looking through arrays.
    pub(super) fn name(&self) -> Option<&str> {
        match self {
            Self::Root => None,
            Self::Key(_, key) => Some(key),
            Self::Index(parent, _) => parent.name(),
        }
    }
}

/// Every string value and every key below `value`, with its place. The reader bounds how deep documents nest.
pub(super) fn strings_and_keys(value: &Value, trail: &Trail<'_>, visit: &mut impl FnMut(&str, &Trail<'_>)) {
    match value {
        Value::String(text) => visit(text, trail),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                strings_and_keys(item, &trail.index(index), visit);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let trail = trail.key(key);
                visit(key, &trail);
                strings_and_keys(member, &trail, visit);
            }
        }
        _ => {}
    }
}

/// The elements of an array, or nothing.
pub(super) fn elements<'a>(document: &'a Map<String, Value>, key: &str) -> &'a [Value] {
    document.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
