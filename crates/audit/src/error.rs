//! Why can the journal not be opened, written or read?

use std::{fmt, io, path::Path};

#[derive(Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The entry cannot stand in a journal; nothing was written.
    Entry(String),
    /// The operating system refused; nothing of the record remains in the journal, and a later try may succeed.
    Io { what: String, source: io::Error },
    /// Another process has this journal open for writing.
    InUse { folder: String },
    /// What is on disk is not what was written, or may be read or changed by others.
    Untrusted { what: String },
    /// The journal has no place in the list of journals that stands beside it, and never had one. Nothing was changed.
    Unlisted { name: String },
    /// The key cannot be used.
    Key(String),
    /// What is on disk is no longer known; this journal accepts nothing more.
    Broken(String),
    /// `close` was called.
    Closed,
    /// There is no such record.
    NotFound(String),
    /// The record is there, and no signed checkpoint covers it yet.
    NotCovered(String),
    /// A receipt does not prove what it says.
    Receipt(String),
}

impl JournalError {
    pub(crate) fn io(doing: &str, path: &Path, source: io::Error) -> Self {
        Self::Io { what: format!("cannot {doing} `{}`", path.display()), source }
    }

    pub(crate) fn untrusted(what: impl Into<String>) -> Self {
        Self::Untrusted { what: what.into() }
    }
}

impl fmt::Display for JournalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(what) => write!(f, "the entry cannot be journalled: {what}"),
            Self::Io { what, source } => write!(f, "{what}: {source}"),
            Self::InUse { folder } => write!(
                f,
                "the journal in `{folder}` is being written by another process; stop that one, or give this one \
                 another folder"
            ),
            Self::Untrusted { what } => {
                write!(f, "the journal cannot be continued: {what}; run `toolgate audit verify`")
            }
            Self::Unlisted { name } => write!(
                f,
                "the journal `{name}` is not in the list of journals: an older version began it, or somebody put it \
                 there; run `toolgate audit verify`"
            ),
            Self::Key(what) | Self::NotFound(what) | Self::NotCovered(what) => f.write_str(what),
            Self::Broken(what) => write!(
                f,
                "the journal accepts no more records since {what}; run `toolgate audit verify`, then start again"
            ),
            Self::Receipt(what) => write!(f, "the receipt proves nothing: {what}"),
            Self::Closed => f.write_str("the journal is closed; open it again to write"),
        }
    }
}

impl std::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
