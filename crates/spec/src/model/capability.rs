//! The capability block as written: every setting is optional. `policy` fills in the rest and records origins.

use crate::path_pattern::PathPattern;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapabilityPatch {
    /// The shipped defaults to start from: `read`, `web_fetch`, `write`, `bash` or `send_message`; or
    /// `POLICY_APPROVAL`, which documents cannot write.
    pub extends: Option<String>,
    pub approval: ApprovalPatch,
    pub data: DataPatch,
    pub network: NetworkPatch,
    pub execution: ExecutionPatch,
    pub audit: AuditPatch,
    pub labels: LabelsPatch,
}

impl CapabilityPatch {
    /// The defaults of the older manifest form, with `policy.approval` and without `extends`.
    pub const POLICY_APPROVAL: &str = "policy-approval";

    /// Whether the block extends shipped settings, which may add hosts, paths and variables.
    pub fn may_inherit(&self) -> bool {
        self.extends.as_deref().is_some_and(|name| name != Self::POLICY_APPROVAL)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalPatch {
    pub level: Option<ApprovalLevel>,
    /// Regular expressions over the arguments' text that require approval.
    pub danger_patterns: Option<Vec<String>>,
    pub ask_for_methods: Option<Vec<String>>,
    pub trust_after_approval: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataPatch {
    pub sensitivity: Option<Sensitivity>,
    pub can_read_secrets: Option<bool>,
    pub can_leak_data: Option<bool>,
    pub sanitize_output: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetworkPatch {
    pub access: Option<NetworkAccess>,
    /// The access that an approval may grant; only `proxy` today.
    pub access_upgradeable: Option<String>,
    pub allowed_hosts: Option<Vec<String>>,
    pub require_approval_for_unknown_hosts: Option<bool>,
    pub blocked_hosts: Option<Vec<String>>,
    pub blocked_ports: Option<Vec<u16>>,
    pub block_private_ips: Option<bool>,
    pub block_metadata: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionPatch {
    pub sandbox: Option<SandboxKind>,
    pub timeout_ms: Option<u64>,
    pub max_output_bytes: Option<u64>,
    pub allowed_paths: Option<Vec<PathPattern>>,
    pub blocked_paths: Option<Vec<PathPattern>>,
    pub env: Option<EnvironmentMode>,
    pub allowed_env_vars: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditPatch {
    pub log_args: Option<bool>,
    pub redact_patterns: Option<Vec<String>>,
    pub log_output: Option<bool>,
    pub alert_on: Option<Vec<String>>,
    pub use_shared_secret_detector: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelsPatch {
    pub output_trust: Option<TrustLevel>,
    pub output_data_class: Option<DataClass>,
    pub accepts_untrusted: Option<bool>,
}

/// Defines an enum whose variants have stable names, ordered from harmless to severe.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
        pub enum $name { $($variant,)* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}

named! {
    /// When a person is asked: only by other rules, unless approved before, or every time.
    ApprovalLevel { Auto "auto", Ask "ask", Always "always", }
}
named! {
    /// How sensitive the data is that the tool handles.
    Sensitivity { None "none", Low "low", Medium "medium", High "high", Secret "secret", }
}
named! {
    NetworkAccess { None "none", Limited "limited", Full "full", }
}
named! {
    /// From the strongest isolation to none.
    SandboxKind { Container "container", Process "process", None "none", }
}
named! {
    /// How much of the gateway's environment a command sees, from nothing to everything.
    EnvironmentMode { Clean "clean", Explicit "explicit", Inherit "inherit", }
}
named! {
    /// How far the content is trusted, ascending.
    TrustLevel { Untrusted "untrusted", Verified "verified", User "user", System "system", }
}
named! {
    /// Who may see the content, ascending.
    DataClass { Public "public", Internal "internal", Sensitive "sensitive", Secret "secret", }
}
