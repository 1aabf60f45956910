//! Resolves the network mode from its two notations, and the hosts.

use toolgate_spec::{
    Finding, HostPattern, Pointer,
    model::{NetworkAccess, NetworkMode, ToolSpec},
};

use super::{
    BuiltinDefaults, block,
    handler_host::{self, Destination},
    layers::Layers,
    reject,
};
use crate::{
    base_policy::BasePolicy,
    effective::NetworkPolicy,
    setting::{Setting, SettingList, SettingOrigin},
};

pub(super) fn resolve(
    spec: &ToolSpec,
    ground: &BasePolicy,
    layers: &Layers<'_>,
    findings: &mut Vec<Finding>,
) -> NetworkPolicy {
    refuse_bad_hosts(spec, findings);
    refuse_contradictions(spec, findings);
    let destination = match handler_host::destination(spec) {
        None => None,
        Some(Ok(destination)) => Some(destination),
        Some(Err((at, why))) => {
            findings.push(reject(
                at,
                format!("cannot determine the handler's host: {why}"),
                "write the host literally",
            ));
            None
        }
    };
    let (mode, block_private_ips) = mode(spec, ground, layers, destination.is_some());
    let hosts = match mode.value {
        NetworkMode::Allowlist => hosts(spec, ground, layers, destination.as_ref()),
        NetworkMode::Blocked | NetworkMode::Strict | NetworkMode::Open => {
            SettingList::empty(mode.origin.clone())
        }
    };
    let policy = NetworkPolicy {
        mode,
        hosts,
        ask_for_unknown_hosts: layers
            .flag(|patch| patch.network.require_approval_for_unknown_hosts, BuiltinDefaults::OFF),
        blocked_hosts: layers
            .extended(&layers.defaults.blocked_hosts, |patch| patch.network.blocked_hosts.as_ref()),
        blocked_ports: layers
            .extended(&layers.defaults.blocked_ports, |patch| patch.network.blocked_ports.as_ref()),
        block_private_ips,
        block_metadata: layers.flag(|patch| patch.network.block_metadata, BuiltinDefaults::ON),
        proxy_on_approval: layers
            .setting(|patch| patch.network.access_upgradeable.as_ref().map(|_| true), BuiltinDefaults::OFF),
    };
    if let Some(destination) = destination
        && let Some((why, remedy)) = unreachable_because(&policy, &destination)
    {
        findings.push(reject(
            destination.at,
            format!("the handler's host `{}` is not reachable: {why}", destination.name),
            remedy,
        ));
    }
    policy
}

/// The mode, and whether private addresses are blocked. The two must agree.
fn mode(
    spec: &ToolSpec,
    ground: &BasePolicy,
    layers: &Layers<'_>,
    has_destination: bool,
) -> (Setting<NetworkMode>, Setting<bool>) {
    let of_access = |access: NetworkAccess, origin: &SettingOrigin| {
        let mode = match access {
            NetworkAccess::None => NetworkMode::Blocked,
            NetworkAccess::Limited => NetworkMode::Allowlist,
            NetworkAccess::Full => NetworkMode::Strict,
        };
        Setting::new(mode, origin.clone())
    };
    let of_user = layers.user.and_then(|patch| patch.network.access);
    let mode = if let Some(access) = of_user {
        of_access(access, &SettingOrigin::User)
    } else if let Some(mode) = spec.overrides.network_mode {
        Setting::new(mode, SettingOrigin::Tool)
    } else if let Some(access) = layers.tool.network.access {
        of_access(access, &SettingOrigin::Tool)
    } else if let Some(access) = layers.defaults.patch.network.access {
        of_access(access, &layers.defaults.origin)
    } else if has_destination && !ground.states_network() {
        // A document with a URL but no network setting is granted exactly the host of that URL.
        Setting::new(NetworkMode::Allowlist, SettingOrigin::Tool)
    } else {
        ground.network.clone()
    };
    agree(mode, layers.setting_if_stated(|patch| patch.network.block_private_ips))
}

/// `strict` without the private-address guard is `open`, and `open` with it is `strict`. The later layer wins. If an earlier
/// layer than the one with the mode dropped the guard, the guard stays.
fn agree(mode: Setting<NetworkMode>, guard: Option<Setting<bool>>) -> (Setting<NetworkMode>, Setting<bool>) {
    match (mode.value, guard) {
        (NetworkMode::Open, Some(guard)) if guard.value && guard.origin > mode.origin => {
            (Setting::new(NetworkMode::Strict, guard.origin.clone()), guard)
        }
        (NetworkMode::Open, _) => {
            let guard = Setting::new(false, mode.origin.clone());
            (mode, guard)
        }
        (NetworkMode::Strict, Some(guard)) if !guard.value && guard.origin >= mode.origin => {
            (Setting::new(NetworkMode::Open, guard.origin.clone()), guard)
        }
        (NetworkMode::Strict, Some(guard)) if !guard.value => {
            let guard = Setting::new(true, mode.origin.clone());
            (mode, guard)
        }
        (_, guard) => (mode, guard.unwrap_or(BuiltinDefaults::ON)),
    }
}

/// Overrides replace the whole list. Otherwise the list of the document, or the one it extends, is added to those of
/// profiles and baseline.
fn hosts(
    spec: &ToolSpec,
    ground: &BasePolicy,
    layers: &Layers<'_>,
    destination: Option<&Destination>,
) -> SettingList<HostPattern> {
    if let Some(of_user) = layers.user.and_then(|patch| patch.network.allowed_hosts.as_ref()) {
        return SettingList::of(parsed(of_user), SettingOrigin::User);
    }
    let of_capability = layers.tool.network.allowed_hosts.as_ref();
    if !spec.overrides.hosts_allow.is_empty() || of_capability.is_some() {
        let written = of_capability.unwrap_or(&spec.overrides.hosts_allow);
        return ground.hosts.joined(parsed(written), &SettingOrigin::Tool);
    }
    if let Some(shipped) = &layers.defaults.allowed_hosts {
        return if ground.hosts.is_empty() {
            shipped.clone()
        } else {
            ground.hosts.joined(shipped.values().cloned(), &layers.defaults.origin)
        };
    }
    match destination {
        Some(destination) if !states_mode(spec, ground, layers) => {
            SettingList::of([destination.host.clone()], SettingOrigin::Tool)
        }
        _ => ground.hosts.clone(),
    }
}

fn states_mode(spec: &ToolSpec, ground: &BasePolicy, layers: &Layers<'_>) -> bool {
    spec.overrides.network_mode.is_some()
        || layers.setting_if_stated(|patch| patch.network.access).is_some()
        || ground.states_network()
}

fn parsed(written: &[String]) -> impl Iterator<Item = HostPattern> + '_ {
    written.iter().filter_map(|host| HostPattern::parse(host).ok())
}

/// Why the host cannot be reached, with a remedy. Blocked hosts and ports win over allowed ones.
fn unreachable_because(policy: &NetworkPolicy, to: &Destination) -> Option<(String, String)> {
    let covers = |host: &&HostPattern| host.covers(&to.name, to.port);
    let is_listed = policy.hosts.values().any(|host| covers(&host));
    let allow = || {
        format!(
            "write `network: {{access: limited, allowedHosts: [{}]}}`; where nobody speaks of the network, a \
             handler reaches its own host",
            to.name
        )
    };
    if let Some(pattern) = policy.blocked_hosts.values().find(covers) {
        let origin = &policy.blocked_hosts.origin;
        return Some((
            format!("it is a blocked host ({origin})"),
            format!(
                "remove `{pattern}` from `network.blockedHosts`; listing the host as allowed does not help"
            ),
        ));
    }
    if policy.blocked_ports.values().any(|port| *port == to.port) {
        let origin = &policy.blocked_ports.origin;
        return Some((
            format!("port {} is blocked ({origin})", to.port),
            format!("remove {} from `network.blockedPorts`, or use another port", to.port),
        ));
    }
    match policy.mode.value {
        NetworkMode::Blocked => Some((format!("the network is blocked ({})", policy.mode.origin), allow())),
        NetworkMode::Allowlist if !is_listed && !policy.ask_for_unknown_hosts.value => {
            Some((format!("it is not an allowed host ({})", policy.hosts.origin), allow()))
        }
        _ => None,
    }
}

fn refuse_bad_hosts(spec: &ToolSpec, findings: &mut Vec<Finding>) {
    let network = &spec.governance.capability.network;
    let lists = [("allowedHosts", &network.allowed_hosts), ("blockedHosts", &network.blocked_hosts)];
    for (key, list) in lists {
        for (index, host) in list.iter().flatten().enumerate() {
            if let Err(why) = HostPattern::parse(host) {
                let at = block(spec, "capability").key("network").key(key).index(index);
                findings.push(reject(at, why, WRITE_HOST));
            }
        }
    }
    for (index, host) in spec.overrides.hosts_allow.iter().enumerate() {
        if let Err(why) = HostPattern::parse(host) {
            let at = Pointer::new("/sandboxOverrides/hostsAllow").index(index);
            findings.push(reject(at, why, WRITE_HOST));
        }
    }
}

/// A document may use either notation or both, but they must agree.
fn refuse_contradictions(spec: &ToolSpec, findings: &mut Vec<Finding>) {
    let network = &spec.governance.capability.network;
    let at = |key: &str| block(spec, "capability").key("network").key(key);
    if let (Some(mode), Some(access)) = (spec.overrides.network_mode, network.access) {
        let agree = match mode {
            NetworkMode::Blocked => access == NetworkAccess::None,
            NetworkMode::Allowlist => access == NetworkAccess::Limited,
            NetworkMode::Strict | NetworkMode::Open => access == NetworkAccess::Full,
        };
        if !agree {
            findings.push(reject(
                at("access"),
                format!("`networkMode` is `{}`, `access` is `{}`", mode.name(), access.name()),
                "set it once, or to the same value: blocked = none, allowlist = limited, strict and open = full",
            ));
        }
    }
    let guard_differs = match (spec.overrides.network_mode, network.block_private_ips) {
        (Some(NetworkMode::Open), Some(blocked)) => blocked,
        (Some(NetworkMode::Strict), Some(blocked)) => !blocked,
        _ => false,
    };
    if guard_differs {
        findings.push(reject(
            at("blockPrivateIPs"),
            "`networkMode` and `blockPrivateIPs` disagree",
            "`strict` blocks private addresses, `open` does not",
        ));
    }
    if let Some(allowed) = &network.allowed_hosts
        && !spec.overrides.hosts_allow.is_empty()
    {
        let sorted = |written: &[String]| {
            let mut hosts: Vec<_> = parsed(written).collect();
            hosts.sort_unstable();
            hosts.dedup();
            hosts
        };
        if sorted(allowed) != sorted(&spec.overrides.hosts_allow) {
            findings.push(reject(
                at("allowedHosts"),
                "`hostsAllow` and `allowedHosts` list different hosts",
                "list the hosts once",
            ));
        }
    }
}

const WRITE_HOST: &str =
    "write `api.example.com`, `api.example.com:8443`, `*.example.com`, an IP address or `*`";
