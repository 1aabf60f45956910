//! Who calls, and with what: as much of both as a policy may look at.

use std::{borrow::Cow, collections::BTreeSet, fmt};

use serde_json::{Map, Value};

/// An authenticated caller. The server makes one from a verified token, never from what a request claims.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    pub subject: String,
    pub permissions: BTreeSet<String>,
    /// Set for anonymous callers, which share one subject. Only quotas look at it.
    pub share: Option<QuotaShare>,
}

/// Tells callers apart that share one subject.
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

    /// The key of every quota. For an anonymous caller the address counts: it can open many sessions.
    pub fn quota(&self) -> Cow<'_, str> {
        match &self.share {
            Some(share) => Cow::Owned(format!("{}@{}", self.subject, share.address)),
            None => Cow::Borrowed(&self.subject),
        }
    }
}

/// A call's arguments: a JSON object, parsed. There is no form for what could not be parsed.
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

/// Why there are no arguments.
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
