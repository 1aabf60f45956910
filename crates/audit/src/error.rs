//! Errors of opening, writing and reading a journal.

use std::{fmt, io, path::Path};

#[derive(Debug)]
#[non_exhaustive]
pub enum JournalError {
    /// The entry is invalid; nothing was written.
    Entry(String),
    /// The operating system returned an error. No part of the record remains in the journal, and a retry may succeed.
    Io { what: String, source: io::Error },
    /// Another process has this journal open for writing.
    InUse { folder: String },
    /// The files were changed, or others may read or change them.
    Untrusted { what: String },
    /// The journal is not in the list of journals beside it, and never was. Nothing was changed.
    Unlisted { name: String },
    /// The key cannot be used.
    Key(String),
    /// The state on disk is unknown; this journal accepts no more records.
    Broken(String),
    /// `close` was called.
    Closed,
    /// There is no such record.
    NotFound(String),
    /// The record exists, but no signed checkpoint covers it yet.
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
                "the journal in `{folder}` is open for writing in another process; stop that one, or use another \
                 directory"
            ),
            Self::Untrusted { what } => {
                write!(f, "the journal cannot be continued: {what}; run `toolgate audit verify`")
            }
            Self::Unlisted { name } => write!(
                f,
                "the journal `{name}` is not in the list of journals: an older version created it, or it was added \
                 there; run `toolgate audit verify`"
            ),
            Self::Key(what) | Self::NotFound(what) | Self::NotCovered(what) => f.write_str(what),
            Self::Broken(what) => write!(
                f,
                "the journal accepts no more records, because {what}; run `toolgate audit verify`, then start again"
            ),
            Self::Receipt(what) => write!(f, "the receipt is not valid: {what}"),
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
