//! The closed list of sources that decide about a call.

use std::fmt;

/// Decides about a call, or wants a person to be asked. The names go into the journal and into prompts and are stable.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum DecisionSource {
    /// The permissions that the tool requires of its caller.
    Permissions,
    /// The policy of a program that embeds the gateway.
    ProgramPolicy,
    /// The operator's Cedar policies.
    Cedar,
    /// A test run, which needs no approval.
    LocalPass,
    /// `humanInTheLoop` of the document.
    HumanInTheLoop,
    /// The approval level of the tool's capability.
    Capability,
    /// The tool's risk level.
    Risk,
    /// The gateway confirms every call.
    Gateway,
    DangerPattern,
    /// A host that is not in the tool's list.
    UnknownHost,
    /// A host, although the tool has no network.
    Network,
    /// An HTTP method that can change something.
    Method,
    /// A probable secret in the arguments of a tool that sends them out.
    Secret,
}

impl DecisionSource {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Permissions => "permissions",
            Self::ProgramPolicy => "policy",
            Self::Cedar => "cedar",
            Self::LocalPass => "local_pass",
            Self::HumanInTheLoop => "human_in_the_loop",
            Self::Capability => "capability",
            Self::Risk => "risk",
            Self::Gateway => "gateway",
            Self::DangerPattern => "danger_pattern",
            Self::UnknownHost => "unknown_host",
            Self::Network => "network",
            Self::Method => "method",
            Self::Secret => "secret",
        }
    }
}

impl fmt::Display for DecisionSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
