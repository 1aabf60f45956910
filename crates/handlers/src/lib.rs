//! How a tool is run: JavaScript in the jailed worker, and the effects it may ask for.
#![forbid(unsafe_code)]

mod files;

pub use files::{
    CutOptions, Edited, EntryKind, FileCaps, FileError, FileErrorClass, FileGrants, FileRights, FileStat,
    Files, FindOptions, GrepOptions, Occurrences, SearchHit, SearchOptions, SortOptions,
};
