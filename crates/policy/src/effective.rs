//! The resolved policy of a tool: every enforced setting with its origin.

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
    setting::{Setting, SettingList},
};

/// The resolved policy of one tool. Only `resolve` creates it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct EffectivePolicy {
    /// The profile that the document names and whose chain was applied.
    pub profile: Option<Arc<str>>,
    /// The effect of a call: the declared class, raised if the tool may do more.
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

/// Java host classes. Toolgate has none; the lists are still merged, checked, rated and shown.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassPolicy {
    pub allow: SettingList<Arc<str>>,
    pub deny: SettingList<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct NetworkPolicy {
    pub mode: Setting<NetworkMode>,
    /// Used in `allowlist` mode only. `*` is every public host and is rated like `strict`; an empty list reaches nothing.
    pub hosts: SettingList<HostPattern>,
    /// Ask a person for a host outside the list instead of refusing it.
    pub ask_for_unknown_hosts: Setting<bool>,
    /// Denied even if allowed elsewhere.
    pub blocked_hosts: SettingList<HostPattern>,
    pub blocked_ports: SettingList<u16>,
    pub block_private_ips: Setting<bool>,
    pub block_metadata: Setting<bool>,
    /// A person may lift `blocked` to the egress proxy for one call.
    pub proxy_on_approval: Setting<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FilePolicy {
    pub read: Setting<bool>,
    pub write: Setting<bool>,
    /// The base of relative paths.
    pub base_path: Setting<Arc<str>>,
    /// Empty if the tool may neither read nor write.
    pub allowed_paths: SettingList<PathPattern>,
    /// Denied even if allowed elsewhere.
    pub blocked_paths: SettingList<PathPattern>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ApprovalPolicy {
    pub level: Setting<ApprovalLevel>,
    /// The level follows from the classification, because no layer states `approval.level`.
    pub level_follows_class: bool,
    /// The risk level from which calls require approval. Applies to `auto` only; `ask` and `always` ask in any case.
    pub ask_from: Setting<AskByRisk>,
    /// Regular expressions as text; compiled once, when the tool is loaded.
    pub danger_patterns: SettingList<Arc<str>>,
    pub ask_for_methods: SettingList<Arc<str>>,
    pub trust_after_approval: Setting<bool>,
}

impl ApprovalPolicy {
    /// True if every call requires approval.
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
    /// Applies to `env: explicit`.
    pub allowed_env_vars: SettingList<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct AuditPolicy {
    pub log_args: Setting<bool>,
    pub log_output: Setting<bool>,
    pub redact_patterns: SettingList<Arc<str>>,
    pub alert_on: SettingList<Arc<str>>,
    pub use_shared_secret_detector: Setting<bool>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LabelPolicy {
    pub output_trust: Setting<TrustLevel>,
    pub output_data_class: Setting<DataClass>,
    pub accepts_untrusted: Setting<bool>,
}
