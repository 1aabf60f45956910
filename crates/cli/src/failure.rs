//! Why could a command not do its work at all? Findings are not failures; they are the work.

use std::{any::Any, fmt, io, path::Path};

use crate::{Ending, terminal::visible};

#[derive(Debug)]
pub enum Failure {
    /// What the user is told, in house grammar, with user text already made visible.
    Told(String),
    /// The documents were read, and what was found in them stops the command.
    Findings(String),
    /// Our own output could not be written.
    Output(io::Error),
    /// This signal ended the command.
    Interrupted(u8),
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self::Told(message.into())
    }

    pub fn at(path: &Path, problem: impl fmt::Display + 'static) -> Self {
        let error = (&problem as &dyn Any).downcast_ref::<io::Error>();
        let problem = error.map_or_else(|| problem.to_string(), in_words);
        Self::Told(format!("`{}`: {}", visible(&path.to_string_lossy()), visible(&problem)))
    }

    /// After a signal, the code that shells give a process that the signal killed.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Findings(_) => Ending::Findings as u8,
            Self::Told(_) | Self::Output(_) => Ending::CouldNotRead as u8,
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
            Self::Told(message) | Self::Findings(message) => f.write_str(message),
            Self::Output(error) => write!(f, "the output could not be written: {}", in_words(error)),
            Self::Interrupted(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}

/// The system's words, but for a full disk, whose remedy is worth a sentence.
fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full; free some space and try again".to_owned(),
        io::ErrorKind::QuotaExceeded => {
            "your disk quota is used up; free some space and try again".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Only output goes through `?` unnamed; whoever reads or writes a file says which one.
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
    fn full_disk_is_called_full() {
        let full = || io::Error::from_raw_os_error(28);
        let told = Failure::at(Path::new("a"), full()).to_string();
        assert_eq!(told, "`a`: the disk is full; free some space and try again");
        assert!(Failure::from(full()).to_string().contains("the disk is full"));
        let wrapped = io::Error::new(io::ErrorKind::StorageFull, "no space at path x");
        assert!(Failure::at(Path::new("a"), wrapped).to_string().contains("the disk is full"));
        assert_eq!(Failure::at(Path::new("a"), "plain").to_string(), "`a`: plain");
    }
}
