//! Runs tools: JavaScript in a jailed worker, commands in a jail, and functions of the embedding program in its
//! process.
#![forbid(unsafe_code)]

mod cli;
mod files;
mod grants;
mod guard;
mod js;
mod mcp;
mod tool_handlers;

mod hard_links;
mod own_variables;
mod places;
mod rust;
mod survey;
mod upstream_http;

pub use cli::{
    AllowedCommands, Arg, CliCommand, CliHandlers, CliTool, CommandHost, CommandOrder, CommandOutcome,
    ContainerLauncher, Denial, Denials, EgressGrant, GatewayEnvironment, HostDenial, JailedLauncher, Launch,
    NetworkEffects, OrderLimits, OutputParser, PreparedCall, ServicePlan, ServiceProcess, ServiceStart,
};
pub use files::{
    CopyLimits, CutOptions, EditResult, EntryKind, FileAccess, FileCaps, FileError, FileErrorClass,
    FileGrants, FileRights, FileStat, Files, FindOptions, GrepOptions, HeldPath, JudgedPath, Occurrences,
    RedactedReads, SearchHit, SearchOptions, SecretRedactor, SortOptions, copy_workspace,
};
pub use js::{FUEL_PER_STATEMENT, JsHandlers, JsRunner, JsTool, check_variables, missing_helpers};
pub use mcp::{
    ListingObserver, McpHandlers, UpstreamIsolation, UpstreamLimits, UpstreamServer, UpstreamStatus,
    UpstreamTransport, Upstreams,
};
pub use own_variables::OwnVariables;
pub use places::{Places, home};
pub use rust::{RustFunction, RustHandlers};
pub use survey::{CallGrants, CallSurvey, GrantedPath};
pub use tool_handlers::ToolHandlers;
pub use upstream_http::UpstreamHttp;
