//! Errors in a configuration, each with its position and a remedy.

use std::fmt;

use toolgate_spec::{Pointer, SourcePosition};

use crate::{entry::ConfigOrigin, shape::shown};

/// One error. All errors of a file are reported together.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    /// The source of the wrong value.
    pub origin: ConfigOrigin,
    /// The position in the file, if the value or its key is written there.
    pub position: Option<SourcePosition>,
    /// The key as a JSON pointer, such as `/server/listen`; empty for the whole file.
    pub at: Pointer,
    pub problem: String,
    pub remedy: String,
}

impl ConfigError {
    /// The key in dotted form: `server.listen`, `auth.jwt.0.issuer`.
    pub fn key(&self) -> String {
        self.at.tokens().iter().map(|token| shown(token)).collect::<Vec<_>>().join(".")
    }
}

/// One line: position, key, problem, remedy.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.position, self.origin) {
            (Some(SourcePosition { line, column }), _) => write!(f, "line {line}, column {column}: ")?,
            (None, ConfigOrigin::Environment(name)) => write!(f, "environment {name}: ")?,
            (None, ConfigOrigin::CommandLine(option)) => write!(f, "option {option}: ")?,
            (None, ConfigOrigin::Default) => f.write_str("default of ")?,
            (None, ConfigOrigin::File) => {}
        }
        let key = self.key();
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for ConfigError {}
