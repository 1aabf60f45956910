//! What is this call granted?

use std::path::PathBuf;

use toolgate_spec::PathPattern;

#[derive(Clone, Debug)]
pub struct FileGrants {
    /// The only writable folder, and what relative paths are taken from. Always a read root too.
    pub workspace: PathBuf,
    /// Further folders that may be read. One that does not exist grants nothing.
    pub read_roots: Vec<PathBuf>,
    /// What `$WORKSPACE` stands for in the patterns: the gateway's workspace, of which `workspace` may be a part.
    pub pattern_workspace: PathBuf,
    /// What `$HOME` stands for in the patterns.
    pub home: PathBuf,
    pub rights: FileRights,
    /// Inside the roots only what one of these covers; an empty list grants nothing.
    pub allowed: Vec<PathPattern>,
    /// Refused even where allowed, by whichever name it is reached.
    pub blocked: Vec<PathPattern>,
    /// Those among the blocked that are the gateway's own, by their real names.
    pub own: Vec<PathBuf>,
    /// Where gateways take turns at changing a workspace: a folder that no tool can open.
    pub turns: PathBuf,
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

/// How much one call of a function may cost the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FileCaps {
    /// Of a file that is read whole.
    pub read_bytes: usize,
    /// Of a file as it stands after writing.
    pub write_bytes: usize,
    /// Read by one function that goes line by line, over all its files.
    pub scan_bytes: usize,
    pub line_bytes: usize,
    /// Lines returned. `grep` stops there; the others fail rather than answer with a part.
    pub lines: usize,
    /// Hits returned by `search_in_files`, which stops there.
    pub hits: usize,
    /// Names returned by `list` and `find`.
    pub entries: usize,
    /// Entries looked at by one walk over a tree, wanted or not.
    pub walked: usize,
    pub depth: usize,
    /// Text returned by one function that goes line by line or lists names.
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
