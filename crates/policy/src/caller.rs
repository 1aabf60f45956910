//! The caller and the arguments of a call, as policies see them.

use std::{borrow::Cow, collections::BTreeSet, fmt};

use serde_json::{Map, Value};

/// An authenticated caller. The server creates it from a verified token, never from claims of a request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    pub subject: String,
    pub permissions: BTreeSet<String>,
    /// Set for anonymous callers, which share one subject. Only quotas use it.
    pub share: Option<QuotaShare>,
}

/// Distinguishes callers that share one subject.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QuotaShare {
    pub address: String,
}

impl Caller {
    pub fn new<P: Into<String>>(
        subject: impl Into<String>,
        permissions: impl IntoIterator<Item = P>,
    ) -> Self {
        let permissions = permissions.into_iter().map(Into::into).collect();
        Self { subject: subject.into(), permissions, share: None }
    }

    /// The key for all quotas. For anonymous callers it includes the address, because one address can open many sessions.
    pub fn quota(&self) -> Cow<'_, str> {
        match &self.share {
            Some(share) => Cow::Owned(format!("{}@{}", self.subject, share.address)),
            None => Cow::Borrowed(&self.subject),
        }
    }
}

/// The arguments of a call: a parsed JSON object. Unparsable arguments cannot be represented.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    pub fn parse(text: &str) -> Result<Self, BadArguments> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| BadArguments(format!("the arguments are not JSON: {error}")))?;
        Self::from_value(value)
    }

    pub fn from_value(value: Value) -> Result<Self, BadArguments> {
        match value {
            Value::Object(members) => Ok(members.into()),
            _ => Err(BadArguments("the arguments are not a JSON object".into())),
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    pub const fn members(&self) -> &Map<String, Value> {
        &self.0
    }
}

impl From<Arguments> for Value {
    fn from(arguments: Arguments) -> Self {
        Self::Object(arguments.0)
    }
}

impl From<Arguments> for Map<String, Value> {
    fn from(arguments: Arguments) -> Self {
        arguments.0
    }
}

impl From<Map<String, Value>> for Arguments {
    fn from(members: Map<String, Value>) -> Self {
        Self(members)
    }
}

/// Why arguments were rejected.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BadArguments(String);

impl fmt::Display for BadArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadArguments {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anonymous_callers_have_separate_quotas() {
        let mut caller = Caller::new::<String>("anonymous:anyone", []);
        assert_eq!(caller.quota(), "anonymous:anyone");
        caller.share = Some(QuotaShare { address: "192.0.2.1".to_owned() });
        assert_eq!(caller.quota(), "anonymous:anyone@192.0.2.1");
    }
}
