//! Which value is in force, and who set it?

use std::fmt;

use serde_json::Value;
use toolgate_spec::Position;

/// One key that has a value of its own; `config show --origin` prints them all.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// `server.listen`; in a list of sections with its place, `auth.jwt.0.issuer`.
    pub key: String,
    /// As written: `120s`, `1MiB`, a path before it is resolved.
    pub value: Value,
    pub origin: Origin,
    /// In the file, where the value was read there.
    pub position: Option<Position>,
    /// The query of a URL may be a key to it. Nothing else in the file can hold a secret: those are named, not written.
    pub is_secret: bool,
}

/// Who set a value; each wins over the ones before it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Origin {
    Default,
    File,
    /// The name of the variable.
    Environment(&'static str),
    /// The name of the option.
    CommandLine(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File => f.write_str("file"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::CommandLine(option) => write!(f, "option {option}"),
        }
    }
}
