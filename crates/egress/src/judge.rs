//! Decides which hosts and which of their addresses a request may reach. Only addresses that pass here are dialled.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::{
    address::{is_metadata, reached_address, special_range},
    error::{EgressError, EgressReason, quoted},
    listeners::Listeners,
    rules::{EgressMode, EgressRules, Guard},
    target::{RequestTarget, TargetHost},
};

/// A host that the rules allow. Its addresses are not checked yet.
#[derive(Debug)]
pub struct AdmittedHost<'a> {
    rules: &'a EgressRules,
    target: &'a RequestTarget,
    listeners: &'a Listeners,
    private: Guard,
}

/// An address that was checked for one host. `dial` accepts nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JudgedAddr(SocketAddr);

impl JudgedAddr {
    pub fn socket(self) -> SocketAddr {
        self.0
    }
}

/// Checks everything that needs no network: mode, host lists, port, and the address if the host is one.
pub fn admit<'a>(
    rules: &'a EgressRules,
    target: &'a RequestTarget,
    listeners: &'a Listeners,
) -> Result<AdmittedHost<'a>, EgressError> {
    let host = target.host();
    if rules.mode == EgressMode::Blocked {
        let message = "network access is blocked for this tool; its network policy must name the host";
        return Err(EgressError::new(EgressReason::NetworkBlocked, message));
    }
    if is_blocked(rules, host, target.port()) {
        return Err(blocked(host));
    }
    if rules.blocked_ports.contains(&target.port()) {
        let message = format!("port {} is blocked by the network policy", target.port());
        return Err(EgressError::new(EgressReason::PortBlocked, message));
    }
    if rules.guard_metadata == Guard::On && names_metadata(host) {
        return Err(metadata(host));
    }
    let private = match rules.mode {
        EgressMode::Blocked | EgressMode::Strict => Guard::On,
        EgressMode::Open => rules.guard_private,
        EgressMode::Allowlist => listed(rules, target)?,
    };
    let admitted = AdmittedHost { rules, target, listeners, private };
    if let TargetHost::Address(address) = host {
        admitted.judge_one(*address, EgressReason::LiteralPrivateIp)?;
    }
    Ok(admitted)
}

/// Checks the allow list. Returns whether the addresses of a listed host must be public.
fn listed(rules: &EgressRules, target: &RequestTarget) -> Result<Guard, EgressError> {
    let (host, port) = (target.host(), target.port());
    let mut covering = rules.hosts.iter().filter(|rule| rule.covers(host, port)).peekable();
    if covering.peek().is_some() {
        let is_named = covering.any(|rule| !rule.is_any());
        return Ok(if is_named { rules.guard_private } else { Guard::On });
    }
    let at_another_port = rules.for_names().hosts.iter().any(|rule| rule.covers(host, port));
    let message = if at_another_port {
        format!(
            "host {} is in the allow list, but not with port {port}; add the port there",
            quoted(&host.to_string())
        )
    } else {
        format!("host {} is not in the allow list; add it there", quoted(&host.to_string()))
    };
    Err(EgressError::new(EgressReason::HostNotInAllowlist, message))
}

impl AdmittedHost<'_> {
    /// An address literal is its only address.
    pub fn judge_literal(&self, address: IpAddr) -> Result<Vec<JudgedAddr>, EgressError> {
        Ok(vec![self.judge_one(address, EgressReason::LiteralPrivateIp)?])
    }

    /// Checks all addresses of a name. One bad address rejects all: an attacker mixes private and public addresses and
    /// hopes that we connect to the private one.
    pub fn judge_all(&self, answers: &[IpAddr]) -> Result<Vec<JudgedAddr>, EgressError> {
        if answers.is_empty() {
            let message = format!("host {} has no addresses", quoted(&self.target.host().to_string()));
            return Err(EgressError::new(EgressReason::DnsNoAddresses, message));
        }
        let mut judged: Vec<JudgedAddr> = Vec::with_capacity(answers.len());
        for answer in answers {
            let addr = self.judge_one(*answer, EgressReason::ResolvedPrivateIp)?;
            if !judged.contains(&addr) {
                judged.push(addr);
            }
        }
        Ok(judged)
    }

    /// The only constructor of `JudgedAddr`.
    fn judge_one(&self, address: IpAddr, reason: EgressReason) -> Result<JudgedAddr, EgressError> {
        let address = address.to_canonical();
        let (host, port) = (self.target.host(), self.target.port());
        let mut forms = [address, reached_address(address)].into_iter().map(TargetHost::Address);
        // The rule `*` in the blocked hosts already matched by name.
        if forms.any(|form| is_blocked(self.rules, &form, port)) {
            return Err(blocked(host));
        }
        if self.rules.guard_metadata == Guard::On && is_metadata(address) {
            return Err(metadata(host));
        }
        if self.private == Guard::On && special_range(address).is_some() && !self.means(address) {
            return Err(private(host, reason));
        }
        let socket = SocketAddr::new(address, port);
        if self.listeners.accept_at(socket) {
            return Err(gateway_listener(self.target));
        }
        Ok(JudgedAddr(socket))
    }

    /// Whether the allow list explicitly names this private address: by the address itself, or by the name `localhost`
    /// for a loopback address.
    fn means(&self, address: IpAddr) -> bool {
        let host = self.target.host();
        let is_named = match host {
            TargetHost::Address(_) => true,
            TargetHost::Name(name) => name == "localhost" && LOCALHOST.contains(&address),
        };
        let mut hosts = self.rules.hosts.iter();
        is_named
            && self.rules.mode == EgressMode::Allowlist
            && hosts.any(|rule| rule.names_exactly(host, self.target.port()))
    }
}

fn is_blocked(rules: &EgressRules, host: &TargetHost, port: u16) -> bool {
    rules.blocked_hosts.iter().any(|rule| rule.covers(host, port))
}

fn names_metadata(host: &TargetHost) -> bool {
    match host {
        TargetHost::Name(name) => METADATA_NAMES.contains(&name.as_str()),
        TargetHost::Address(address) => is_metadata(*address),
    }
}

fn blocked(host: &TargetHost) -> EgressError {
    let message = format!("host {} is blocked by the network policy", quoted(&host.to_string()));
    EgressError::new(EgressReason::HostBlocked, message)
}

fn metadata(host: &TargetHost) -> EgressError {
    let host = quoted(&host.to_string());
    let message =
        format!("host {host} is a cloud metadata endpoint; tools get credentials from their policy only");
    EgressError::new(EgressReason::MetadataEndpoint, message)
}

fn gateway_listener(target: &RequestTarget) -> EgressError {
    let message =
        format!("{} leads to this gateway; tools must not call the gateway", quoted(&target.authority()));
    EgressError::new(EgressReason::GatewayListener, message)
}

fn private(host: &TargetHost, reason: EgressReason) -> EgressError {
    let quoted = quoted(&host.to_string());
    let message = match host {
        TargetHost::Address(address) => {
            let range = special_range(*address).map_or("", |row| row.name);
            let source = special_range(*address).map_or("", |row| row.source);
            format!(
                "address {quoted} is not public ({range}, {source}); add it to the allow list if this is intended"
            )
        }
        TargetHost::Name(_) => {
            format!(
                "host {quoted} resolves to an address that is not public; add the address to the allow list if this is intended"
            )
        }
    };
    EgressError::new(reason, message)
}

/// The addresses of the name `localhost` (RFC 6761).
const LOCALHOST: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

const METADATA_NAMES: [&str; 9] = [
    "instance-data",
    "instance-data.ec2.internal",
    "metadata",
    "metadata.azure.internal",
    "metadata.goog",
    "metadata.google.internal",
    "metadata.packet.net",
    "metadata.platformequinix.com",
    "metadata.tencentyun.com",
];

#[cfg(test)]
mod tests;
