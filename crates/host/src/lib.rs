//! The library behind the binary, and for programs that embed a gateway. [`Toolgate`] is a gateway built from one configuration.
//!
//! An embedding program starts with [`block_on`], or calls [`run_if_worker`] first in `main`. Tools run in processes that execute
//! the same program file under another name. `docs/embedding.md` is the guide.
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
mod rollback;
mod rust_tool;
mod secret_values;
mod serve;
mod startup;
mod telemetry;
mod upstreams;

pub use builder::Builder;
pub use catalog::{ShippedTool, preset_names, reserved_name, shipped_tools};
pub use commands::{Commands, ContainerSettings};
pub use decisions::{RecordedQueue, open_queue};
pub use documents::{Document, UnreadFile};
pub use handlers::own_variables;
pub use isolation::{HostLayers, layer_state};
pub use journals::{JournalOwner, note_command};
pub use listing::ToolList;
pub use load::{FoundTools, LoadProblem, LoadWork, Loaded, LoadedTool, ToolOrigin, TrialSelection};
pub use open::{
    ConfigFollower, Extras, OpenError, ReloadReport, TestRunError, TestRuns, Toolgate, WatchStart,
    ask_threshold, open_egress, open_state,
};
pub use policies::{PolicyFilesError, overrides_from, policies_from};
pub use rollback::{StateRollback, find_rollback};
pub use rust_tool::{RustTool, ToolError};
pub use secret_values::{PassphraseFile, SecretValues, open_vault};
pub use serve::{
    ConfigWatch, NotAuthenticated, OnListening, ServeError, ServeLog, ServeOptions, ServeTransport,
    StopSignals, TokenlessCaller, clock_is_behind, rounded,
};
pub use startup::{block_on, run_if_worker};
pub use upstreams::{
    DocumentError, ListedUpstreamTool, ReviewState, ReviewedTool, UpstreamDocument, UpstreamListing,
    UpstreamReview, tool_document,
};

// Every type that a method of `Builder` or `Toolgate` takes or returns, so programs need no other crate of ours.
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
    Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, ApprovalStore, BrokenCall, CallRecord,
    CallStage, CallerEntry, Candidate, ClientInfoEntry, Decider, DecisionEntry, EndKind, FailedCall,
    Finished, Gate, LiveTool, Observer, Outcome, PendingCall, Reason, RefusedCall, ReleasedCall,
    RequestEntry, ResponseEntry, Retry, RunEntry, RunReport, StoredPass, Trial, UsageEntry, Warning,
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
