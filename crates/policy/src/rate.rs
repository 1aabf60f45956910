//! Rates the risk of a resolved policy. The rating is never stored in the document.
//!
//! Every signal is rated separately and the highest level counts, so narrowing a setting never raises the level.

mod classes;

use std::borrow::Cow;

use toolgate_spec::{
    HostNames, PathPattern,
    model::{Body, EnvironmentMode, NetworkMode, SandboxKind, ToolSpec},
};

use crate::{
    PolicySet,
    effective::{ApprovalPolicy, EffectivePolicy, NetworkPolicy},
    resolve::{runs_commands, runs_in_process},
    setting::{Setting, SettingOrigin},
};

/// Rates the effective settings, regardless of the layer that set them.
pub fn rate(policy: &EffectivePolicy, spec: &ToolSpec, set: &PolicySet) -> Risk {
    let mut because = Vec::new();
    network(policy, &mut because);
    files(policy, &mut because);
    beyond_the_specification(policy, spec, &mut because);
    if policy.destructive.value {
        because.push(RiskReason::new(
            "destructive",
            RiskLevel::L5,
            "its effects cannot be undone",
            "destructive",
            &policy.destructive.origin,
        ));
    }
    execution(policy, spec, &mut because);
    classes::judge(&policy.classes, set.shipped_classes(), &mut because);
    let level = because.iter().map(|reason| reason.level).max().unwrap_or(RiskLevel::L0);
    Risk { level, because }
}

/// The level shown to people: one band lower if a person confirms every call, but at least L1. It is not lowered if the
/// description tries to manipulate the model.
pub fn effective_level(risk: &Risk, approval: &ApprovalPolicy, wording: Wording) -> RiskLevel {
    let is_credited = approval.is_required() && wording == Wording::Clean;
    match risk.level {
        RiskLevel::L5 if is_credited => RiskLevel::L4,
        RiskLevel::L4 if is_credited => RiskLevel::L3,
        RiskLevel::L3 if is_credited => RiskLevel::L2,
        RiskLevel::L2 if is_credited => RiskLevel::L1,
        level => level,
    }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Risk {
    pub level: RiskLevel,
    /// All signals, not only the highest one.
    pub because: Vec<RiskReason>,
}

/// From no detected risk to possible sandbox escape. Inherent levels are L0, L3, L4 and L5; L1 and L2 result from approval.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RiskLevel {
    L0,
    L1,
    L2,
    L3,
    L4,
    L5,
}

impl RiskLevel {
    pub const ALL: [Self; 6] = [Self::L0, Self::L1, Self::L2, Self::L3, Self::L4, Self::L5];

    pub const fn name(self) -> &'static str {
        match self {
            Self::L0 => "L0",
            Self::L1 => "L1",
            Self::L2 => "L2",
            Self::L3 => "L3",
            Self::L4 => "L4",
            Self::L5 => "L5",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// One signal: its level, and the setting and layer that cause it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RiskReason {
    /// Stable; see the table in `docs/settings.md`.
    pub code: &'static str,
    pub level: RiskLevel,
    pub text: Cow<'static, str>,
    /// A name from `EffectivePolicy::settings`, or `handler`.
    pub setting: &'static str,
    pub origin: SettingOrigin,
}

impl RiskReason {
    fn new(
        code: &'static str,
        level: RiskLevel,
        text: impl Into<Cow<'static, str>>,
        setting: &'static str,
        origin: &SettingOrigin,
    ) -> Self {
        Self { code, level, text: text.into(), setting, origin: origin.clone() }
    }
}

/// The result of the scan for poisoned descriptions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wording {
    Clean,
    Poisoned,
}

fn network(policy: &EffectivePolicy, because: &mut Vec<RiskReason>) {
    let network = &policy.network;
    let mut signal = |code, level, text: Cow<'static, str>, setting, origin: &SettingOrigin| {
        because.push(RiskReason::new(code, level, text, setting, origin));
    };
    match network.mode.value {
        NetworkMode::Blocked if !network.proxy_on_approval.value => return,
        NetworkMode::Blocked => {
            let origin = &network.proxy_on_approval.origin;
            let text = "a person may let a call reach hosts that it names".into();
            return signal("network-on-approval", RiskLevel::L3, text, "network.proxyOnApproval", origin);
        }
        NetworkMode::Allowlist => {
            if let Some(any) = network.hosts.entries.iter().find(|host| host.value.names == HostNames::Any) {
                let text = "the allow list contains `*`: every public host".into();
                signal("network-any-host", RiskLevel::L4, text, "network.hosts", &any.origin);
            } else if let Some(first) = network.hosts.entries.first() {
                let text = match network.hosts.entries.len() {
                    1 => "reaches one named host".into(),
                    count => format!("reaches {count} named hosts").into(),
                };
                signal("network-allowlist", RiskLevel::L3, text, "network.hosts", &first.origin);
            }
        }
        NetworkMode::Strict => {
            let text = "reaches every public host".into();
            signal("network-strict", RiskLevel::L3, text, "network.mode", &network.mode.origin);
        }
        NetworkMode::Open => {
            let text = "reaches every host, private networks too".into();
            signal("network-open", RiskLevel::L4, text, "network.mode", &network.mode.origin);
        }
    }
    if network.ask_for_unknown_hosts.value {
        let origin = &network.ask_for_unknown_hosts.origin;
        let text = "may ask for hosts outside its list".into();
        signal("network-unknown-hosts", RiskLevel::L3, text, "network.askForUnknownHosts", origin);
    }
    let reaches_any = reaches_any(network);
    if reaches_any && !network.block_private_ips.value && network.mode.value != NetworkMode::Open {
        let (text, origin) = ("private addresses are not blocked".into(), &network.block_private_ips.origin);
        signal("network-private", RiskLevel::L4, text, "network.blockPrivateIPs", origin);
    }
    if reaches_any && !network.block_metadata.value {
        let (text, origin) =
            ("cloud metadata endpoints are not blocked".into(), &network.block_metadata.origin);
        signal("network-metadata", RiskLevel::L4, text, "network.blockMetadata", origin);
    }
}

/// True if a call can reach a host without approval.
fn reaches_any(network: &NetworkPolicy) -> bool {
    match network.mode.value {
        NetworkMode::Blocked => false,
        NetworkMode::Allowlist => !network.hosts.is_empty() || network.ask_for_unknown_hosts.value,
        NetworkMode::Strict | NetworkMode::Open => true,
    }
}

fn files(policy: &EffectivePolicy, because: &mut Vec<RiskReason>) {
    let files = &policy.files;
    if files.write.value {
        because.push(RiskReason::new(
            "file-write",
            RiskLevel::L4,
            "writes files",
            "files.write",
            &files.write.origin,
        ));
    }
    if files.read.value {
        because.push(RiskReason::new(
            "file-read",
            RiskLevel::L3,
            "reads files",
            "files.read",
            &files.read.origin,
        ));
    }
}

/// Signals for grants that only manifests and capability blocks can make. A Safe Tool Spec that uses only
/// `sandboxOverrides` keeps the level of the specification's algorithm.
fn beyond_the_specification(policy: &EffectivePolicy, spec: &ToolSpec, because: &mut Vec<RiskReason>) {
    if !policy.files.read.value {
        return;
    }
    let mut signal = |code, text: Cow<'static, str>, setting, origin: &SettingOrigin| {
        because.push(RiskReason::new(code, RiskLevel::L4, text, setting, origin));
    };
    let outside = outside_the_workspace(policy, spec);
    if let Some(path) = outside {
        let text = format!("reads `{}`, which is outside the workspace", path.value.text()).into();
        signal("file-read-outside", text, "files.allowedPaths", &path.origin);
    }
    let secrets = &policy.data.can_read_secrets;
    // The shipped `read` and `bash` lift this guard for the workspace only, which has no such paths.
    let is_shipped = matches!(secrets.origin, SettingOrigin::Defaults(_)) && outside.is_none();
    if secrets.value && !is_shipped {
        let text = "reads files, including locations of credentials".into();
        signal("file-read-secrets", text, "data.canReadSecrets", &secrets.origin);
    }
    if reaches_any(&policy.network) && !asks_for_both_by_specification(spec) {
        let text = "reads files and can send them to other hosts".into();
        signal("files-and-network", text, "network.mode", &policy.network.mode.origin);
    }
}

/// An allowed path outside the workspace; for JavaScript also outside its base path, which the specification rates.
fn outside_the_workspace<'p>(
    policy: &'p EffectivePolicy,
    spec: &ToolSpec,
) -> Option<&'p Setting<PathPattern>> {
    let base: &str = match spec.body {
        Body::JavaScript { .. } => &policy.files.base_path.value,
        Body::Handler(_) => WORKSPACE,
    };
    let is_inside = |path: &str| [WORKSPACE, base].iter().any(|base| is_below(path, base));
    policy.files.allowed_paths.entries.iter().find(|path| !is_inside(path.value.text()))
}

/// A text comparison is enough: both reject `..`, and the workspace has no alias here.
fn is_below(path: &str, base: &str) -> bool {
    let rest = path.strip_prefix(base.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn asks_for_both_by_specification(spec: &ToolSpec) -> bool {
    let overrides = &spec.overrides;
    let asks_for_network = match overrides.network_mode {
        None | Some(NetworkMode::Blocked) => false,
        Some(NetworkMode::Allowlist) => !overrides.hosts_allow.is_empty(),
        Some(NetworkMode::Strict | NetworkMode::Open) => true,
    };
    matches!(spec.body, Body::JavaScript { .. }) && overrides.file_read == Some(true) && asks_for_network
}

fn execution(policy: &EffectivePolicy, spec: &ToolSpec, because: &mut Vec<RiskReason>) {
    let execution = &policy.execution;
    if runs_commands(spec) {
        because.push(RiskReason::new(
            "native-command",
            RiskLevel::L3,
            "runs a program of the host",
            "handler",
            &SettingOrigin::Tool,
        ));
    }
    if runs_in_process(spec) {
        because.push(RiskReason::new(
            "in-process",
            RiskLevel::L3,
            "runs inside the gateway's process; no sandbox enforces what it declares",
            "handler",
            &SettingOrigin::Tool,
        ));
    } else if execution.sandbox.value == SandboxKind::None {
        because.push(RiskReason::new(
            "no-sandbox",
            RiskLevel::L5,
            "disables the sandbox",
            "execution.sandbox",
            &execution.sandbox.origin,
        ));
    }
    if execution.env.value == EnvironmentMode::Inherit {
        because.push(RiskReason::new(
            "env-inherit",
            RiskLevel::L4,
            "sees the gateway's environment, except known secrets",
            "execution.env",
            &execution.env.origin,
        ));
    }
}

const WORKSPACE: &str = "$WORKSPACE";

#[cfg(test)]
mod tests;
