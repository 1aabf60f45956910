//! The parts of a call's record. Fields are in canonical JSON order.

use std::{collections::BTreeSet, ops::Deref, sync::Arc};

use serde::{Serialize, Serializer};
use serde_json::Value;
use toolgate_audit::Fragment;
use toolgate_policy::Caller;

use crate::{call::decide::Decision, gate::ClientInfo, ports::RunUsage};

/// A JSON value that many records share.
#[derive(Clone, Debug)]
pub struct PreparedJson {
    value: Arc<Value>,
    /// Its JSON text, if it was prepared.
    text: Option<Fragment>,
}

impl PreparedJson {
    /// Serialises the value once, for use in many records.
    pub(crate) fn prepared(value: Value) -> Self {
        let shared = Self::from(value);
        Self { text: Fragment::of(&*shared.value).ok(), ..shared }
    }
}

impl From<Value> for PreparedJson {
    fn from(mut value: Value) -> Self {
        value.sort_all_objects();
        Self { value: Arc::new(value), text: None }
    }
}

impl Deref for PreparedJson {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.value
    }
}

impl Serialize for PreparedJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.text {
            Some(text) => text.serialize(serializer),
            None => self.value.serialize(serializer),
        }
    }
}

/// The authenticated caller.
#[derive(Clone, Debug, Serialize)]
pub struct CallerEntry {
    pub permissions: BTreeSet<String>,
    pub sub: String,
}

impl From<&Caller> for CallerEntry {
    fn from(caller: &Caller) -> Self {
        Self { permissions: caller.permissions.clone(), sub: caller.subject.clone() }
    }
}

/// The client as it describes itself.
#[derive(Clone, Debug, Serialize)]
pub struct ClientInfoEntry {
    pub conversation: Option<String>,
    pub name: Option<String>,
    pub protocol: Option<String>,
    pub transport: &'static str,
    pub version: Option<String>,
}

impl ClientInfoEntry {
    /// The texts that the client chose.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let Self { conversation, name, protocol, version, transport: _ } = self;
        [conversation, name, protocol, version].into_iter().flatten()
    }
}

impl From<&ClientInfo> for ClientInfoEntry {
    fn from(client: &ClientInfo) -> Self {
        let ClientInfo { transport, protocol, name, version, conversation } = client.clone();
        Self { conversation, name, protocol, transport, version }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    pub args_hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coercion_count: Option<usize>,
    /// A list of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coercions: Option<Value>,
}

/// The verdict of one decision source.
#[derive(Clone, Debug, Serialize)]
pub struct DecisionEntry {
    pub source: &'static str,
    pub verdict: &'static str,
    pub why: String,
}

impl From<&Decision> for DecisionEntry {
    fn from(decision: &Decision) -> Self {
        Self { source: decision.source.name(), verdict: decision.verdict.name(), why: decision.why.clone() }
    }
}

/// The report of a run. For a run that was cut off it has only effects and denials.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub console_lines: Option<usize>,
    pub effect_count: u64,
    /// A list of objects.
    pub effects: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<Vec<String>>,
    /// A list of texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageEntry>,
    /// A number, or null if no worker ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worker: Option<Value>,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageEntry {
    pub elapsed_us: u64,
    pub host_bytes: u64,
    pub host_calls: u32,
    pub memory_bytes: u64,
    pub statements: u64,
}

impl From<&RunUsage> for UsageEntry {
    fn from(usage: &RunUsage) -> Self {
        Self {
            elapsed_us: usage.elapsed_us,
            host_bytes: usage.host_bytes,
            host_calls: usage.host_calls,
            memory_bytes: usage.memory_bytes,
            statements: usage.statements,
        }
    }
}

/// The released result.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResponseEntry {
    pub bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    pub output_hash: String,
    /// A list of texts.
    pub redacted_fields: Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prepared_json_is_serialised_like_the_value() {
        let value: Value = serde_json::from_str(r#"{"b":[1.5,"\"x\""],"a":{"d":null,"c":true}}"#).unwrap();
        let (prepared, plain) = (PreparedJson::prepared(value.clone()), PreparedJson::from(value));
        assert!(prepared.text.is_some() && *prepared == *plain);
        assert_eq!(toolgate_audit::canonical(&prepared).unwrap(), toolgate_audit::canonical(&plain).unwrap());
        assert_eq!(serde_json::to_value(&prepared).unwrap(), serde_json::to_value(&plain).unwrap());
    }
}
