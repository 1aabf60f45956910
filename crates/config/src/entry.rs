//! One setting with its value and the source that set it.

use std::fmt;

use serde_json::Value;
use toolgate_spec::SourcePosition;

/// One key that holds a value; `config show --origin` prints all of them.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigEntry {
    /// `server.listen`; inside a list of sections with its index, `auth.jwt.0.issuer`.
    pub key: String,
    /// As written: `120s`, `1MiB`, a path before it is resolved.
    pub value: Value,
    pub origin: ConfigOrigin,
    /// The position in the file, if the file set this value.
    pub position: Option<SourcePosition>,
    /// True for a URL with a query, which may hold an access key. Other secrets cannot be in the file: keys name their variables.
    pub is_secret: bool,
}

/// The source that set a value. Later variants override earlier ones.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ConfigOrigin {
    Default,
    File,
    /// The name of the variable.
    Environment(&'static str),
    /// The name of the option.
    CommandLine(&'static str),
}

impl fmt::Display for ConfigOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File => f.write_str("file"),
            Self::Environment(name) => write!(f, "environment {name}"),
            Self::CommandLine(option) => write!(f, "option {option}"),
        }
    }
}
