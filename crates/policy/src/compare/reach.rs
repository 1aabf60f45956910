//! Compares two values of one setting by how much they allow.
//!
//! Works on the values that `SettingValues` holds, because the policy of an earlier publication exists only in that form.

use serde_json::Value;
use toolgate_spec::{
    HostNames, HostPattern, PathPattern, PathRoots,
    model::{
        ApprovalLevel, Classification, DataClass, EnvironmentMode, NetworkMode, SandboxKind, TrustLevel,
    },
};

use super::SettingValues;
use crate::asking::AskByRisk;

/// A setting's value as something that can be wider or narrower.
pub(super) enum SettingReach {
    /// Greater is wider.
    Rank(u64),
    Network(Extent),
    /// A longer list is wider: allowed entries.
    Texts(Vec<String>),
    Paths(Vec<PathPattern>),
    /// A longer list is narrower: denied or watched entries.
    Denials(Vec<String>),
}

impl SettingReach {
    /// `None` for a setting without a direction, and for a value that is missing or unknown.
    pub fn of(setting: &str, values: &SettingValues) -> Option<Self> {
        let value = values.get(setting)?;
        Some(match setting {
            "classification" => Self::Rank(Classification::from_name(value.as_str()?)? as u64),
            "destructive"
            | "network.askForUnknownHosts"
            | "network.proxyOnApproval"
            | "files.read"
            | "files.write"
            | "approval.trustAfterApproval"
            | "data.canReadSecrets"
            | "data.canLeakData"
            | "labels.acceptsUntrusted" => Self::Rank(u64::from(value.as_bool()?)),
            "network.blockPrivateIPs"
            | "network.blockMetadata"
            | "data.sanitizeOutput"
            | "audit.logArgs"
            | "audit.useSharedSecretDetector" => Self::Rank(u64::from(!value.as_bool()?)),
            "classes.allow" | "execution.allowedEnvVars" => Self::Texts(texts(value)?),
            "classes.deny"
            | "network.blockedHosts"
            | "network.blockedPorts"
            | "files.blockedPaths"
            | "approval.dangerPatterns"
            | "approval.askForMethods"
            | "audit.redactPatterns"
            | "audit.alertOn" => Self::Denials(texts(value)?),
            "network.mode" | "network.hosts" => Self::Network(Extent::of(values)?),
            "files.allowedPaths" => {
                let paths = texts(value)?;
                let paths = paths.iter().map(|path| PathPattern::parse(path).ok());
                Self::Paths(paths.collect::<Option<_>>()?)
            }
            "approval.level" => stricter(ApprovalLevel::from_name(value.as_str()?)? as u64),
            "approval.askFrom" => Self::Rank(AskByRisk::from_name(value.as_str()?)?.rank()),
            "execution.sandbox" => Self::Rank(SandboxKind::from_name(value.as_str()?)? as u64),
            "execution.timeoutMs"
            | "execution.maxOutputBytes"
            | "execution.maxStatements"
            | "execution.memoryBytes" => Self::Rank(value.as_u64()?),
            "execution.env" => Self::Rank(EnvironmentMode::from_name(value.as_str()?)? as u64),
            // Output with more trust or fewer guards may flow further.
            "labels.outputTrust" => Self::Rank(TrustLevel::from_name(value.as_str()?)? as u64),
            "labels.outputDataClass" => stricter(DataClass::from_name(value.as_str()?)? as u64),
            _ => return None,
        })
    }

    /// True if this reaches an address that `other` does not, although neither includes the other.
    pub fn adds_an_address_to(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Network(after), Self::Network(before)) => names_a_new_address(before, after),
            _ => false,
        }
    }

    /// True if this includes everything in `other`.
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

/// A rank whose greater values are narrower.
const fn stricter(rank: u64) -> SettingReach {
    SettingReach::Rank(u64::MAX - rank)
}

fn texts(list: &Value) -> Option<Vec<String>> {
    let text = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    Some(list.as_array()?.iter().map(text).collect())
}

/// Compares reachable hosts: an allow list with `*` equals `strict`, an empty one equals `blocked`.
fn network_includes(wide: &Extent, narrow: &Extent) -> bool {
    match (wide, narrow) {
        (_, Extent::Nothing) | (Extent::Everything, _) | (Extent::Public, Extent::Public) => true,
        (Extent::Public, Extent::Hosts { hosts, blocks_private }) => {
            hosts.iter().all(|host| !names_an_address(host)) && *blocks_private
        }
        (Extent::Hosts { hosts: wide, .. }, Extent::Hosts { hosts: narrow, .. }) => {
            narrow.iter().all(|host| wide.iter().any(|wider| host_includes(wider, host)))
        }
        (Extent::Nothing, _)
        | (Extent::Hosts { .. }, Extent::Public)
        | (Extent::Hosts { .. } | Extent::Public, Extent::Everything) => false,
    }
}

/// The hosts that a policy reaches.
pub(super) enum Extent {
    Nothing,
    Hosts { hosts: Vec<HostPattern>, blocks_private: bool },
    Public,
    Everything,
}

impl Extent {
    fn of(values: &SettingValues) -> Option<Self> {
        let hosts = texts(values.get("network.hosts")?)?;
        let hosts: Vec<HostPattern> =
            hosts.iter().map(|host| HostPattern::parse(host).ok()).collect::<Option<_>>()?;
        let every_host = HostPattern { names: HostNames::Any, port: None };
        Some(match NetworkMode::from_name(values.get("network.mode")?.as_str()?)? {
            NetworkMode::Blocked => Self::Nothing,
            NetworkMode::Allowlist if hosts.is_empty() => Self::Nothing,
            NetworkMode::Allowlist if hosts.iter().all(|host| *host == every_host) => Self::Public,
            NetworkMode::Allowlist => {
                let blocks_private = values.get("network.blockPrivateIPs")?.as_bool()?;
                Self::Hosts { hosts, blocks_private }
            }
            NetworkMode::Strict => Self::Public,
            NetworkMode::Open => Self::Everything,
        })
    }
}

/// A list contains an address or `localhost` only if it names it: `*` and `10.*` match public names only.
fn host_includes(wide: &HostPattern, narrow: &HostPattern) -> bool {
    (names_an_address(wide) || !names_an_address(narrow)) && wide.includes(narrow)
}

/// True if `after` names an address that `before` does not reach. It is then wider, even if it drops other hosts.
fn names_a_new_address(before: &Extent, after: &Extent) -> bool {
    let Extent::Hosts { hosts, .. } = after else { return false };
    let is_reached = |host: &HostPattern| match before {
        Extent::Nothing | Extent::Public => false,
        Extent::Hosts { hosts: known, .. } => known.iter().any(|known| host_includes(known, host)),
        Extent::Everything => true,
    };
    hosts.iter().any(|host| names_an_address(host) && !is_reached(host))
}

fn names_an_address(host: &HostPattern) -> bool {
    match &host.names {
        HostNames::Exact(name) => name == "localhost" || name.parse::<std::net::IpAddr>().is_ok(),
        HostNames::Any | HostNames::Below(_) | HostNames::Above(_) => false,
    }
}

/// Exact for a path without wildcards. Two patterns are compared for equality only.
fn path_includes(wide: &PathPattern, narrow: &PathPattern) -> bool {
    let text = narrow.text();
    if wide.text().trim_end_matches('/') == text.trim_end_matches('/') {
        return true;
    }
    if text.contains('*') {
        return false;
    }
    // Placeholders that no real path contains, so `$HOME` and `/home/x` never match each other.
    let roots = PathRoots { workspace: "/\u{1}workspace", home: "/\u{1}home" };
    let path = match (text.strip_prefix("$WORKSPACE"), text.strip_prefix("$HOME")) {
        (Some(rest), _) => format!("{}{rest}", roots.workspace),
        (None, Some(rest)) => format!("/\u{1}home{rest}"),
        (None, None) => text.to_owned(),
    };
    wide.covers(&path, roots)
}
