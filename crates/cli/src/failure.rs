//! The error of a command that could not finish its work. Findings in documents are results, not failures.

use std::{any::Any, fmt, io, path::Path};

use crate::{CommandExit, terminal::visible};

#[derive(Debug)]
pub enum Failure {
    /// The message for the user. Untrusted text in it has passed through `visible`.
    Message(String),
    /// Findings in the documents stop the command.
    Findings(String),
    /// Standard output could not be written.
    Output(io::Error),
    /// This signal ended the command.
    Interrupted(u8),
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self::Message(message.into())
    }

    pub fn at(path: &Path, problem: impl fmt::Display + 'static) -> Self {
        let error = (&problem as &dyn Any).downcast_ref::<io::Error>();
        let problem = error.map_or_else(|| problem.to_string(), in_words);
        Self::Message(format!("`{}`: {}", visible(&path.to_string_lossy()), visible(&problem)))
    }

    /// After a signal, 128 plus its number, as shells report it.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Findings(_) => CommandExit::Findings as u8,
            Self::Message(_) | Self::Output(_) => CommandExit::CouldNotRead as u8,
            Self::Interrupted(signal) => 128 + *signal,
        }
    }

    pub fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message(message) | Self::Findings(message) => f.write_str(message),
            Self::Output(error) => write!(f, "the output could not be written: {}", in_words(error)),
            Self::Interrupted(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}

/// The system's message, with a remedy if the disk is full.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space and try again".to_owned(),
        io::ErrorKind::QuotaExceeded => {
            "the disk quota is exceeded; free some space and try again".to_owned()
        }
        _ => error.to_string(),
    }
}

/// For standard output only. Use [`Failure::at`] for files, because it names the path.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::Output(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_has_a_remedy() {
        let full = || io::Error::from_raw_os_error(28);
        let message = Failure::at(Path::new("a"), full()).to_string();
        assert_eq!(message, "`a`: the disk is full; free some space and try again");
        assert!(Failure::from(full()).to_string().contains("the disk is full"));
        let wrapped = io::Error::new(io::ErrorKind::StorageFull, "no space at path x");
        assert!(Failure::at(Path::new("a"), wrapped).to_string().contains("the disk is full"));
        assert_eq!(Failure::at(Path::new("a"), "plain").to_string(), "`a`: plain");
    }
}
