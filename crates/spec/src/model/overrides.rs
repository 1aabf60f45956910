//! The author's changes to the baseline. `None` inherits; an explicit value always counts.

#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SandboxOverrides {
    pub add_allow_classes: Vec<String>,
    pub remove_allow_classes: Vec<String>,
    pub add_deny_classes: Vec<String>,
    pub remove_deny_classes: Vec<String>,
    pub network_mode: Option<NetworkMode>,
    pub hosts_allow: Vec<String>,
    pub file_read: Option<bool>,
    pub file_write: Option<bool>,
    pub fs_base_path: Option<String>,
    /// Whether the effect of the tool cannot be undone. Newer than the text of the specification.
    pub destructive: bool,
}

/// From no network to unrestricted, ordered by reach.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum NetworkMode {
    Blocked,
    Allowlist,
    Strict,
    Open,
}

impl NetworkMode {
    pub const ALL: [Self; 4] = [Self::Blocked, Self::Allowlist, Self::Strict, Self::Open];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Allowlist => "allowlist",
            Self::Strict => "strict",
            Self::Open => "open",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}
