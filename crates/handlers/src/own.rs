//! Which variables of the environment are the gateway's own? What it knows callers by, what it sends along itself, and what
//! sets it up. A tool that had the first could sign for any caller.

use std::collections::BTreeSet;

/// Variables that no tool gets, however it asks for them.
#[derive(Clone, Debug)]
pub enum OwnVariables {
    /// Those that the configuration names; and in any case those that begin with `TOOLGATE_`.
    Named(BTreeSet<String>),
    /// The configuration that would say so cannot be read, so any may be one.
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

    /// What to say of one of them.
    pub fn refusal(&self, name: &str) -> String {
        match self {
            Self::Named(_) => format!(
                "`${{{name}}}` is a variable of the gateway's own (a key that ends in `_env` names it, or it begins with `{PREFIX}`), which no tool gets; put the tool's value into another variable and name that"
            ),
            Self::Unknown => format!(
                "`${{{name}}}` may be a variable of the gateway's own, which no tool gets, and the configuration that would tell cannot be read; mend it first (`toolgate config show` says what is wrong)"
            ),
        }
    }
}

const PREFIX: &str = "TOOLGATE_";
