//! A gateway in one value: everything assembled from one configuration, for the binary and for programs that embed it.
//!
//! A program that embeds it begins with [`block_on`], or calls [`run_if_worker`] first in its `main`: tools run in processes that
//! are this same program under another name. `docs/embedding.md` is the guide.
#![forbid(unsafe_code)]

mod alarm;
mod alerts;
mod builder;
mod catalog;
mod commands;
mod decisions;
mod detector;
mod documents;
mod exposure;
mod handlers;
mod isolation;
mod journal;
mod journals;
mod listing;
mod load;
mod open;
mod parallel;
mod policies;
mod restored;
mod rust_tool;
mod secret_values;
mod serve;
mod startup;
mod telemetry;

pub use builder::Builder;
pub use catalog::{Shipped, preset_names, reserved_name, shipped_tools};
pub use commands::{Commands, Container};
pub use decisions::{RecordedQueue, open_queue};
pub use documents::{Document, Unread};
pub use handlers::own_variables;
pub use isolation::{HostLayers, layer_state};
pub use journals::{Writes, note_command};
pub use listing::ToolList;
pub use load::{FoundTools, LoadWork, Loaded, Origin, Problem, Surveyed, ToTry};
pub use open::{
    Beside, Extras, NotTested, OpenError, Reloaded, TestRuns, Toolgate, Watched, ask_threshold, open_egress,
    open_state,
};
pub use policies::{PolicyFilesError, overrides_from, policies_from};
pub use restored::{Revived, find_revived};
pub use rust_tool::{RustTool, ToolError};
pub use secret_values::{PassphraseFile, SecretValues, open_vault};
pub use serve::{
    Front, Greet, NotAuthenticated, ServeError, ServeLog, ServeOptions, StopSignals, Tokenless, Watching,
    clock_is_behind, rounded,
};
pub use startup::{block_on, run_if_worker};

// Every type that a method of `Builder` or `Toolgate` takes or returns: one dependency and one `use` suffice.
pub use schemars;
pub use serde;
pub use serde_json::{self, Map, Value, json};
pub use toolgate_config::{
    Config, ConfigError, Overrides,
    model::{
        AnonymousAccess, Approvals, AskFrom, Audit, AuditSync, Auth, IssuerAlgorithm, JwtIssuer, JwtKey,
        LimitSettings, LocalCaller, LogLevel, OnAuditFailure, Otlp, RequiredJail, ServerSettings, Webhook,
        WorkerIsolation, WorkerSettings,
    },
};
pub use toolgate_gate::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, ApprovalStore, Broken, CallRecord,
    CallerEntry, Candidate, ClientEntry, Decider, DecisionEntry, End, Failed, Finished, Gate, LiveTool,
    Observer, Outcome, Pending, Reason, Refused, Released, RequestEntry, ResponseEntry, Retry, RunEntry,
    RunReport, Stage, StoredPass, Trial, UsageEntry, Warning,
};
pub use toolgate_handlers::{Arg, CliCommand, OutputParser};
pub use toolgate_policy::{
    ALLOW_ALL, AllowAll, AllowList, And, Arguments, BadArguments, Caller, DENY_ALL, DenyAll, DenyList,
    PerCaller, RiskLevel, Ruling, ToolPolicy, When, allow_list, deny_list, per_caller, when,
};
pub use toolgate_spec::{
    model::{Classification, CommandOutput},
    project::{ProjectError, WireTarget},
};
pub use toolgate_store::FileChanges;
