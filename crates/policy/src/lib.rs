//! Policy: what a tool may do, how risky it is, whether it may be called, and by whom.
//!
//! Pure: results depend on arguments only. No clock, disk, environment or socket.
#![forbid(unsafe_code)]

mod asking;
mod base_policy;
mod caller;
mod cedar;
mod compare;
mod decision_source;
mod defaults;
mod effective;
mod keys;
mod lifecycle;
mod mask;
mod output;
mod permission;
mod profile;
mod rate;
mod resolve;
mod safety;
mod secret_source;
mod set;
mod setting;
#[cfg(test)]
mod testing;
mod tool_policy;
mod user;
mod verdict;
mod view;

pub use asking::{AskByRisk, AskThreshold, QuestionSource, questions_of_every_call, questions_of_some_calls};
pub use caller::{Arguments, BadArguments, Caller, QuotaShare};
pub use cedar::{CedarError, CedarPolicies, CedarRuling, CedarTool};
pub use compare::{
    ChangeDirection, PolicyChange, Relaxation, SettingValues, ToolVersion, compare, policy_changes,
    relaxations,
};
pub use decision_source::DecisionSource;
pub use effective::{
    ApprovalPolicy, AuditPolicy, ClassPolicy, DataPolicy, EffectivePolicy, ExecutionPolicy, FilePolicy,
    LabelPolicy, NetworkPolicy,
};
pub use keys::DistinctMembers;
pub use lifecycle::{Digests, Lifecycle, LifecycleState, PassOutcome, PassRecord, state};
pub use mask::Mask;
pub use output::OutputPolicy;
pub use permission::{ALLOW_DESTRUCTIVE, PermissionRules, missing_permissions};
pub use rate::{Risk, RiskLevel, RiskReason, Wording, effective_level, rate};
pub use resolve::resolve;
pub use safety::{policy_warnings, safety_mismatch, safety_to_json, tool_safety};
pub use secret_source::{SecretConsumer, SecretSource};
pub use set::{PolicyError, PolicySet};
pub use setting::{Setting, SettingList, SettingOrigin};
pub use tool_policy::{
    ALLOW_ALL, AllowAll, AllowList, And, DENY_ALL, DenyAll, DenyList, PerCaller, Ruling, ToolPolicy, When,
    allow_list, deny_list, per_caller, when,
};
pub use user::UserOverrides;
pub use verdict::Verdict;
pub use view::{SettingView, policy_digest};
