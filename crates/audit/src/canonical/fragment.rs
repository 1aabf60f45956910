//! JSON that many entries share, serialised once.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The canonical JSON of a value. An entry copies it instead of serialising the value again.
#[derive(Clone, Debug)]
pub struct Fragment(Arc<RawValue>);

impl Fragment {
    pub fn of<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        let text = String::from_utf8_lossy(&super::canonical(value)?).into_owned();
        RawValue::from_string(text).map(|raw| Self(raw.into()))
    }
}

impl Serialize for Fragment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(FRAGMENT, &*self.0)
    }
}

/// Marks raw JSON as canonical for the writer. Only `Fragment` uses this name.
pub(super) const FRAGMENT: &str = "$toolgate_audit::Fragment";
