//! The gateway's own environment variables: keys for authenticating callers, credentials for its own requests, and
//! its settings. With an authentication key, a tool could impersonate any caller.

use std::collections::BTreeSet;

/// Variables that no tool gets.
#[derive(Clone, Debug)]
pub enum OwnVariables {
    /// Those named in the configuration, and all that begin with `TOOLGATE_`.
    Named(BTreeSet<String>),
    /// The configuration cannot be read, so any variable may be one.
    Unknown,
}

impl OwnVariables {
    pub fn named(names: impl IntoIterator<Item = String>) -> Self {
        Self::Named(names.into_iter().collect())
    }

    pub fn contains(&self, name: &str) -> bool {
        match self {
            Self::Named(names) => name.starts_with(PREFIX) || names.contains(name),
            Self::Unknown => true,
        }
    }

    /// The error message for one of them.
    pub fn refusal(&self, name: &str) -> String {
        match self {
            Self::Named(_) => format!(
                "`${{{name}}}` is a variable of the gateway itself (a key that ends in `_env` names it, or it begins with `{PREFIX}`), which no tool gets; put the tool's value into another variable"
            ),
            Self::Unknown => format!(
                "`${{{name}}}` may be a variable of the gateway itself, which no tool gets: the configuration cannot be read; fix it first (`toolgate config show` shows the error)"
            ),
        }
    }
}

const PREFIX: &str = "TOOLGATE_";
