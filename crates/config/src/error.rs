//! What is wrong with a configuration, where, and what to write instead.

use std::fmt;

use toolgate_spec::{Pointer, Position};

use crate::{entry::Origin, shape::shown};

/// One thing to mend. They are gathered, never cut short.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ConfigError {
    /// Where the value came from that is at fault.
    pub origin: Origin,
    /// In the file; absent where the value did not come from there, or the file has no place for it.
    pub position: Option<Position>,
    /// The key, such as `/server/listen`; empty for the whole file.
    pub at: Pointer,
    pub problem: String,
    pub remedy: String,
}

impl ConfigError {
    /// The key as people write it: `server.listen`, `auth.jwt.0.issuer`.
    pub fn key(&self) -> String {
        self.at.tokens().iter().map(|token| shown(token)).collect::<Vec<_>>().join(".")
    }
}

/// One line: place, key, problem, remedy.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.position, self.origin) {
            (Some(Position { line, column }), _) => write!(f, "line {line}, column {column}: ")?,
            (None, Origin::Environment(name)) => write!(f, "environment {name}: ")?,
            (None, Origin::CommandLine(option)) => write!(f, "option {option}: ")?,
            (None, Origin::Default) => f.write_str("default of ")?,
            (None, Origin::File) => {}
        }
        let key = self.key();
        if !key.is_empty() {
            write!(f, "{key}: ")?;
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl std::error::Error for ConfigError {}
