//! Is one value of a setting at least as wide as another?

use std::sync::Arc;

use toolgate_spec::{
    HostNames, HostPattern, PathPattern, PathRoots,
    model::{ApprovalLevel, DataClass, NetworkMode, TrustLevel},
};

use crate::{EffectivePolicy, setting::Listing};

/// A setting's value, seen as something that can be wider or narrower.
pub(super) enum Reach<'p> {
    /// Greater is wider.
    Rank(u64),
    Network(&'p EffectivePolicy),
    /// More is wider: what is allowed.
    Texts(Vec<&'p str>),
    Paths(Vec<&'p PathPattern>),
    /// More is narrower: what is forbidden or watched.
    Denials(Vec<String>),
}

impl<'p> Reach<'p> {
    /// `None` for a setting that has no direction.
    pub fn of(setting: &str, policy: &'p EffectivePolicy) -> Option<Self> {
        let EffectivePolicy { network, files, approval, data, execution, audit, labels, .. } = policy;
        let grants = |value: bool| Self::Rank(u64::from(value));
        let guards = |value: bool| Self::Rank(u64::from(!value));
        Some(match setting {
            "classification" => Self::Rank(policy.classification.value as u64),
            "destructive" => grants(policy.destructive.value),
            "classes.allow" => Self::Texts(texts(&policy.classes.allow)),
            "classes.deny" => denials(&policy.classes.deny),
            "network.mode" | "network.hosts" => Self::Network(policy),
            "network.askForUnknownHosts" => grants(network.ask_for_unknown_hosts.value),
            "network.blockedHosts" => {
                Self::Denials(network.blocked_hosts.values().map(ToString::to_string).collect())
            }
            "network.blockedPorts" => {
                Self::Denials(network.blocked_ports.values().map(ToString::to_string).collect())
            }
            "network.blockPrivateIPs" => guards(network.block_private_ips.value),
            "network.blockMetadata" => guards(network.block_metadata.value),
            "network.proxyOnApproval" => grants(network.proxy_on_approval.value),
            "files.read" => grants(files.read.value),
            "files.write" => grants(files.write.value),
            "files.allowedPaths" => Self::Paths(files.allowed_paths.values().collect()),
            "files.blockedPaths" => {
                Self::Denials(files.blocked_paths.values().map(|path| path.text().to_owned()).collect())
            }
            "approval.level" => Self::Rank(u64::from(u8::MAX) - rank(approval.level.value)),
            "approval.asksByRisk" => guards(approval.asks_by_risk.value),
            "approval.dangerPatterns" => denials(&approval.danger_patterns),
            "approval.askForMethods" => denials(&approval.ask_for_methods),
            "approval.trustAfterApproval" => grants(approval.trust_after_approval.value),
            "data.canReadSecrets" => grants(data.can_read_secrets.value),
            "data.canLeakData" => grants(data.can_leak_data.value),
            "data.sanitizeOutput" => guards(data.sanitize_output.value),
            "execution.sandbox" => Self::Rank(execution.sandbox.value as u64),
            "execution.timeoutMs" => Self::Rank(execution.timeout_ms.value),
            "execution.maxOutputBytes" => Self::Rank(execution.max_output_bytes.value),
            "execution.maxStatements" => Self::Rank(execution.max_statements.value),
            "execution.memoryBytes" => Self::Rank(execution.memory_bytes.value),
            "execution.env" => Self::Rank(execution.env.value as u64),
            "execution.allowedEnvVars" => Self::Texts(texts(&execution.allowed_env_vars)),
            "audit.logArgs" => guards(audit.log_args.value),
            "audit.redactPatterns" => denials(&audit.redact_patterns),
            "audit.alertOn" => denials(&audit.alert_on),
            "audit.useSharedSecretDetector" => guards(audit.use_shared_secret_detector.value),
            // An output that is believed more, or guarded less, flows further.
            "labels.outputTrust" => Self::Rank(trust(labels.output_trust.value)),
            "labels.outputDataClass" => {
                Self::Rank(u64::from(u8::MAX) - class(labels.output_data_class.value))
            }
            "labels.acceptsUntrusted" => grants(labels.accepts_untrusted.value),
            _ => return None,
        })
    }

    /// Does this reach an address that `other` keeps out of reach, although neither includes the other?
    pub fn adds_an_address_to(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Network(after), Self::Network(before)) => names_a_new_address(before, after),
            _ => false,
        }
    }

    /// Is everything within `other` within this too?
    pub fn includes(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rank(wide), Self::Rank(narrow)) => wide >= narrow,
            (Self::Network(wide), Self::Network(narrow)) => network_includes(wide, narrow),
            (Self::Texts(wide), Self::Texts(narrow)) => narrow.iter().all(|text| wide.contains(text)),
            (Self::Paths(wide), Self::Paths(narrow)) => {
                narrow.iter().all(|path| wide.iter().any(|wider| path_includes(wider, path)))
            }
            (Self::Denials(fewer), Self::Denials(more)) => fewer.iter().all(|text| more.contains(text)),
            _ => false,
        }
    }
}

/// By what can be reached: an allow list with `*` is `strict`, an empty one is `blocked`.
fn network_includes(wide: &EffectivePolicy, narrow: &EffectivePolicy) -> bool {
    match (extent(wide), extent(narrow)) {
        (_, Extent::Nothing) | (Extent::Everything, _) | (Extent::Public, Extent::Public) => true,
        (Extent::Public, Extent::Hosts(hosts)) => {
            hosts.values().all(|host| !names_an_address(host)) && narrow.network.block_private_ips.value
        }
        (Extent::Hosts(wide), Extent::Hosts(narrow)) => {
            narrow.values().all(|host| wide.values().any(|wider| host_includes(wider, host)))
        }
        (Extent::Nothing, _)
        | (Extent::Hosts(_), Extent::Public)
        | (Extent::Hosts(_) | Extent::Public, Extent::Everything) => false,
    }
}

enum Extent<'p> {
    Nothing,
    Hosts(&'p Listing<HostPattern>),
    Public,
    Everything,
}

fn extent(policy: &EffectivePolicy) -> Extent<'_> {
    let hosts = &policy.network.hosts;
    let every_host = HostPattern { names: HostNames::Any, port: None };
    match policy.network.mode.value {
        NetworkMode::Blocked => Extent::Nothing,
        NetworkMode::Allowlist if hosts.is_empty() => Extent::Nothing,
        NetworkMode::Allowlist if hosts.values().all(|host| *host == every_host) => Extent::Public,
        NetworkMode::Allowlist => Extent::Hosts(hosts),
        NetworkMode::Strict => Extent::Public,
        NetworkMode::Open => Extent::Everything,
    }
}

/// A list contains an address or `localhost` only if it names it: `*` and `10.*` mean public names.
fn host_includes(wide: &HostPattern, narrow: &HostPattern) -> bool {
    (names_an_address(wide) || !names_an_address(narrow)) && wide.includes(narrow)
}

/// Does `after` name an address that `before` does not reach? Then it is wider, whatever else it gives up.
fn names_a_new_address(before: &EffectivePolicy, after: &EffectivePolicy) -> bool {
    let Extent::Hosts(hosts) = extent(after) else { return false };
    let is_reached = |host: &HostPattern| match extent(before) {
        Extent::Nothing | Extent::Public => false,
        Extent::Hosts(known) => known.values().any(|known| host_includes(known, host)),
        Extent::Everything => true,
    };
    hosts.values().any(|host| names_an_address(host) && !is_reached(host))
}

fn names_an_address(host: &HostPattern) -> bool {
    match &host.names {
        HostNames::Exact(name) => name == "localhost" || name.parse::<std::net::IpAddr>().is_ok(),
        HostNames::Any | HostNames::Below(_) | HostNames::Above(_) => false,
    }
}

/// Exact for a path without wildcards; of two patterns only the same counts, for the rest is not worth guessing.
fn path_includes(wide: &PathPattern, narrow: &PathPattern) -> bool {
    let text = narrow.text();
    if wide.text().trim_end_matches('/') == text.trim_end_matches('/') {
        return true;
    }
    if text.contains('*') {
        return false;
    }
    // Stand-ins that no real path contains, so that `$HOME` and `/home/x` are never taken for each other.
    let roots = PathRoots { workspace: "/\u{1}workspace", home: "/\u{1}home" };
    let path = match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
        (Some(rest), _) => format!("{}{rest}", roots.workspace),
        (None, Some(rest)) => format!("/\u{1}home{rest}"),
        (None, None) => text.to_owned(),
    };
    wide.covers(&path, roots)
}

fn texts(list: &Listing<Arc<str>>) -> Vec<&str> {
    list.values().map(AsRef::as_ref).collect()
}

fn denials<'p>(list: &Listing<Arc<str>>) -> Reach<'p> {
    Reach::Denials(list.values().map(ToString::to_string).collect())
}

fn rank(level: ApprovalLevel) -> u64 {
    level as u64
}

fn trust(level: TrustLevel) -> u64 {
    level as u64
}

fn class(class: DataClass) -> u64 {
    class as u64
}
