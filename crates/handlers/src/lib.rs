//! Runs tools: JavaScript in the jailed worker, with the effects it may ask for; commands in a jail; functions of the embedding
//! program in its process.
#![forbid(unsafe_code)]

mod all;
mod cli;
mod files;
mod grants;
mod guard;
mod js;
mod js_files;
mod own;
mod places;
mod rust;
mod several_names;
mod survey;

pub use all::ToolHandlers;
pub use cli::{
    Access, AllowedCommands, Arg, Bind, CliCommand, CliHandlers, CliTool, CommandHost, ContainerLauncher,
    Ended, Ending, GatewayEnvironment, JailedLauncher, Launch, NotReached, Order, OrderLimits, OutputParser,
    Reached, Refusals, Refused, Settled, Trace, Usage, WayOut,
};
pub use files::{
    CopyLimits, CutOptions, Edited, EntryKind, FileCaps, FileError, FileErrorClass, FileGrants, FileRights,
    FileStat, Files, FindOptions, GrepOptions, Held, JudgedPath, Occurrences, SearchHit, SearchOptions,
    SortOptions, Veil, VeiledReads, Wanted, copy_workspace,
};
pub use js::{
    ConsoleLevel, ConsoleLine, EffectRecord, FUEL_PER_STATEMENT, Failure, FailureCode, JsHandlers, JsReport,
    JsRunner, JsTool, JsUsage, Returned, check_variables, missing_helpers,
};
pub use own::OwnVariables;
pub use places::{Places, home};
pub use rust::{RustFunction, RustHandlers};
pub use survey::{CallGrants, CallSurvey, GrantedPath};
