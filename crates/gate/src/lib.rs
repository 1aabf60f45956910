//! The two flows: a call through six stages with a journal around them, and publishing.
//!
//! A call is admit → bind → check → decide → execute → filter; see `call.rs`. Publishing is `publish.rs`. `ports.rs`
//! has the traits that other crates implement for the gate.
#![forbid(unsafe_code)]

mod approval;
mod call;
mod danger;
mod digest;
mod disk_checks;
mod gate;
mod limiter;
mod live;
mod metrics;
mod open_calls;
mod outcome;
mod patterns;
mod ports;
mod publish;
mod reason;
mod registry;

pub use approval::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, ApprovalStore, Binding,
    ConsumedApproval, Decider, HiddenArguments, NewApproval, QueueLimit, RememberScope, Trust,
};
pub use call::{
    CallJournal, CallRecord, CallerEntry, ClientInfoEntry, DecisionEntry, PreparedJson, Purpose,
    RequestEntry, ResponseEntry, RunEntry, UsageEntry, catch_panic, fitted, text_for_journal, until_lapse,
};
pub use disk_checks::{DiskCheckLimits, DiskCheckPermit, DiskCheckPermits, NO_DISK_CHECK_PERMIT};
pub use gate::{
    ApprovalSettings, ArgumentLimits, Call, ClientAnswer, ClientInfo, Finished, Gate, GateParts,
    JournalDetail, Observer, OnJournalFailure,
};
pub use limiter::CallLimits;
pub use live::LiveTool;
pub use metrics::{IsolationLayer, Metrics};
pub use outcome::{BrokenCall, FailedCall, Outcome, PendingCall, RefusedCall, ReleasedCall, Warning};
pub use ports::{
    Answer, ApprovedSecrets, Ask, AuthStatus, Clock, EffectEntry, EffectKind, PassStore, Prompt, Refusal,
    RunFailure, RunFuture, RunReport, RunRequest, RunUsage, Runnable, StopFlag, StopOnDrop, StoredPass,
    Survey, SurveyQuestion, Surveyed, SystemClock, Touch, UnreportedEffects,
};
pub use publish::{
    Candidate, Handlers, Observed, Publisher, TestEffects, Trial, Unpublishable, WiderGrant, test_arguments,
    tightened, wider_than_used,
};
pub use reason::{AUTH, CallStage, EndKind, Reason, Retry};
pub use registry::{ListPosition, LiveSet};
