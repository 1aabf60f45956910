//! What may this tool do? Every setting that is enforced, resolved, each with its origin.

use std::sync::Arc;

use toolgate_spec::{
    HostPattern, PathPattern,
    model::{
        ApprovalLevel, Classification, DataClass, EnvironmentMode, NetworkMode, SandboxKind, Sensitivity,
        TrustLevel,
    },
};

use crate::{
    asking::AskByRisk,
    setting::{Listing, Setting},
};

/// The policy in force for one tool. Made by `resolve` and by nothing else.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EffectivePolicy {
    /// The profile that the document names, whose chain was applied.
    pub profile: Option<Arc<str>>,
    /// What a call can do to the world: the declared word, raised by what the tool may in fact do.
    pub classification: Setting<Classification>,
    pub destructive: Setting<bool>,
    pub classes: ClassPolicy,
    pub network: NetworkPolicy,
    pub files: FilePolicy,
    pub approval: ApprovalPolicy,
    pub data: DataPolicy,
    pub execution: ExecutionPolicy,
    pub audit: AuditPolicy,
    pub labels: LabelPolicy,
}

/// Host classes. None exist here; the lists are merged, checked, scored and shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPolicy {
    pub allow: Listing<Arc<str>>,
    pub deny: Listing<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPolicy {
    pub mode: Setting<NetworkMode>,
    /// Filled in `allowlist` mode only. `*` is every public host, judged as `strict`; an empty list reaches nothing.
    pub hosts: Listing<HostPattern>,
    /// Ask for a host outside the list instead of refusing it.
    pub ask_for_unknown_hosts: Setting<bool>,
    /// Refused even where allowed.
    pub blocked_hosts: Listing<HostPattern>,
    pub blocked_ports: Listing<u16>,
    pub block_private_ips: Setting<bool>,
    pub block_metadata: Setting<bool>,
    /// A person may lift `blocked` to the egress proxy for one call.
    pub proxy_on_approval: Setting<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FilePolicy {
    pub read: Setting<bool>,
    pub write: Setting<bool>,
    /// What relative paths are taken from.
    pub base_path: Setting<Arc<str>>,
    /// Empty where the tool may neither read nor write.
    pub allowed_paths: Listing<PathPattern>,
    /// Refused even where allowed.
    pub blocked_paths: Listing<PathPattern>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalPolicy {
    pub level: Setting<ApprovalLevel>,
    /// The level follows from the classification, because no layer states `approval.level`.
    pub level_follows_class: bool,
    /// From which risk level calls are asked about. It counts with `auto` only; `ask` and `always` ask in any case.
    pub ask_from: Setting<AskByRisk>,
    /// Regular expressions as text; whoever matches compiles them once, when the tool is loaded.
    pub danger_patterns: Listing<Arc<str>>,
    pub ask_for_methods: Listing<Arc<str>>,
    pub trust_after_approval: Setting<bool>,
}

impl ApprovalPolicy {
    /// Is a person asked every single time?
    pub fn is_required(&self) -> bool {
        match self.level.value {
            ApprovalLevel::Auto => false,
            ApprovalLevel::Ask => !self.trust_after_approval.value,
            ApprovalLevel::Always => true,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct DataPolicy {
    pub sensitivity: Setting<Sensitivity>,
    pub can_read_secrets: Setting<bool>,
    pub can_leak_data: Setting<bool>,
    pub sanitize_output: Setting<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExecutionPolicy {
    pub sandbox: Setting<SandboxKind>,
    pub timeout_ms: Setting<u64>,
    pub max_output_bytes: Setting<u64>,
    pub max_statements: Setting<u64>,
    pub memory_bytes: Setting<u64>,
    pub env: Setting<EnvironmentMode>,
    /// Counts with `env: explicit`.
    pub allowed_env_vars: Listing<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AuditPolicy {
    pub log_args: Setting<bool>,
    pub log_output: Setting<bool>,
    pub redact_patterns: Listing<Arc<str>>,
    pub alert_on: Listing<Arc<str>>,
    pub use_shared_secret_detector: Setting<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LabelPolicy {
    pub output_trust: Setting<TrustLevel>,
    pub output_data_class: Setting<DataClass>,
    pub accepts_untrusted: Setting<bool>,
}
