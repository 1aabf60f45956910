//! The capability block, as written: every setting may be absent. `policy` fills in the rest and keeps the origins.

use crate::path_pattern::PathPattern;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CapabilityPatch {
    /// A shipped set of defaults to start from: `read`, `web_fetch`, `write`, `bash` or `send_message`; or
    /// `POLICY_APPROVAL`, which no document can write.
    pub extends: Option<String>,
    pub approval: ApprovalPatch,
    pub data: DataPatch,
    pub network: NetworkPatch,
    pub execution: ExecutionPatch,
    pub audit: AuditPatch,
    pub labels: LabelsPatch,
}

impl CapabilityPatch {
    /// The defaults of a manifest in the older form, with `policy.approval` and without `extends`.
    pub const POLICY_APPROVAL: &str = "policy-approval";

    /// Does the author start from shipped settings, which may bring hosts, paths and variables along?
    pub fn may_inherit(&self) -> bool {
        self.extends.as_deref().is_some_and(|name| name != Self::POLICY_APPROVAL)
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApprovalPatch {
    pub level: Option<ApprovalLevel>,
    /// Regular expressions over the arguments' text that escalate to a person.
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
    /// What access may become with approval; only `proxy` today.
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

/// An enum whose variants have stable names; the order is from harmless to grave.
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
    /// When a person is asked: never by itself, unless trusted before, every time.
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
    /// From the strongest wall to none.
    SandboxKind { Container "container", Process "process", None "none", }
}
named! {
    /// What of the gateway's environment a command sees; from nothing to everything.
    EnvironmentMode { Clean "clean", Explicit "explicit", Inherit "inherit", }
}
named! {
    /// Whose word is it? Ordered upwards.
    TrustLevel { Untrusted "untrusted", Verified "verified", User "user", System "system", }
}
named! {
    /// Who may see it? Ordered upwards.
    DataClass { Public "public", Internal "internal", Sensitive "sensitive", Secret "secret", }
}
