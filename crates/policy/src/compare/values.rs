//! The settings of a policy as plain values. They can be stored and compared with a later policy.

use serde_json::{Map, Value};

use crate::EffectivePolicy;

/// The value of every setting by name, without origins.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingValues(Map<String, Value>);

impl SettingValues {
    pub fn of(policy: &EffectivePolicy) -> Self {
        let settings = policy.settings().into_iter();
        Self(settings.map(|setting| (setting.name.to_owned(), setting.value)).collect())
    }

    /// Parses the output of `to_text`; `None` for other text.
    pub fn from_text(text: &str) -> Option<Self> {
        match serde_json::from_str(text) {
            Ok(Value::Object(values)) => Some(Self(values)),
            _ => None,
        }
    }

    pub fn to_text(&self) -> String {
        // A map of plain values can always be written as JSON.
        serde_json::to_string(&self.0).unwrap_or_default()
    }

    pub(super) fn get(&self, setting: &str) -> Option<&Value> {
        self.0.get(setting)
    }
}
