//! How a tool is run: JavaScript in the jailed worker, and the effects it may ask for.
#![forbid(unsafe_code)]

mod files;
mod js;
mod js_files;

pub use files::{
    CutOptions, Edited, EntryKind, FileCaps, FileError, FileErrorClass, FileGrants, FileRights, FileStat,
    Files, FindOptions, GrepOptions, Occurrences, SearchHit, SearchOptions, SortOptions,
};
pub use js::{
    ConsoleLevel, ConsoleLine, EffectRecord, EnvironmentSecrets, FUEL_PER_STATEMENT, Failure, FailureCode,
    JsHandlers, JsReport, JsRunner, JsTool, JsUsage, Places, Returned, SecretSource, missing_helpers,
};
