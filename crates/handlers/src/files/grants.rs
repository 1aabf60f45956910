//! The file grants of a call.

use std::path::PathBuf;

use toolgate_spec::PathPattern;

#[derive(Clone, Debug)]
pub struct FileGrants {
    /// The only writable directory, and the base of relative paths. Always a read root too.
    pub workspace: PathBuf,
    /// Further directories that may be read. One that does not exist grants nothing.
    pub read_roots: Vec<PathBuf>,
    /// The value of `$WORKSPACE` in the patterns: the gateway's workspace, of which `workspace` may be a part.
    pub pattern_workspace: PathBuf,
    /// The value of `$HOME` in the patterns.
    pub home: PathBuf,
    pub rights: FileRights,
    /// Inside the roots, only paths covered by these are granted; an empty list grants nothing.
    pub allowed: Vec<PathPattern>,
    /// Denied even where allowed, under every name.
    pub blocked: Vec<PathPattern>,
    /// The gateway's own files among the blocked ones, by their real paths.
    pub own: Vec<PathBuf>,
    /// The directory for workspace locks between gateways. No tool can open it.
    pub locks: PathBuf,
    pub caps: FileCaps,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileRights {
    Read,
    Write,
    ReadWrite,
}

impl FileRights {
    pub(super) const fn may_read(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    pub(super) const fn may_write(self) -> bool {
        matches!(self, Self::Write | Self::ReadWrite)
    }
}

/// Limits for one call of a function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileCaps {
    /// Size of a file that is read completely.
    pub read_bytes: usize,
    /// Size of a file after writing.
    pub write_bytes: usize,
    /// Bytes read by one line-by-line function, over all its files.
    pub scan_bytes: usize,
    pub line_bytes: usize,
    /// Lines returned. `grep` stops there; other functions fail instead of returning a part.
    pub lines: usize,
    /// Hits returned by `search_in_files`, which stops there.
    pub hits: usize,
    /// Names returned by `list` and `find`.
    pub entries: usize,
    /// Entries visited by one tree walk, whether they match or not.
    pub walked: usize,
    pub depth: usize,
    /// Text returned by one function that reads lines or lists names.
    pub output_bytes: usize,
}

impl Default for FileCaps {
    fn default() -> Self {
        Self {
            read_bytes: 10 * MIB,
            write_bytes: 10 * MIB,
            scan_bytes: 64 * MIB,
            line_bytes: MIB,
            lines: 10_000,
            hits: 1_000,
            entries: 10_000,
            walked: 100_000,
            depth: 64,
            output_bytes: 8 * MIB,
        }
    }
}

const MIB: usize = 1024 * 1024;
