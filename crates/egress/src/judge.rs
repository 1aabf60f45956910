//! May this host be reached, and under which of its addresses? Nothing is dialled that this file has not let through.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::{
    address::{is_metadata, reached_address, special_range},
    error::{EgressError, Reason, quoted},
    listeners::Listeners,
    rules::{Guard, Mode, Rules},
    target::{Target, TargetHost},
};

/// A host that the rules let through; its addresses are still to be judged.
#[derive(Debug)]
pub struct Admitted<'a> {
    rules: &'a Rules,
    target: &'a Target,
    listeners: &'a Listeners,
    private: Guard,
}

/// An address that was judged for one host. The dialler takes nothing else.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct JudgedAddr(SocketAddr);

impl JudgedAddr {
    pub fn socket(self) -> SocketAddr {
        self.0
    }
}

/// Judges scheme-independent facts that need no network: mode, lists, port, and the address if it is a literal.
pub fn admit<'a>(
    rules: &'a Rules,
    target: &'a Target,
    listeners: &'a Listeners,
) -> Result<Admitted<'a>, EgressError> {
    let host = target.host();
    if rules.mode == Mode::Blocked {
        let message = "network access is blocked for this tool; its network policy must name the host";
        return Err(EgressError::new(Reason::NetworkBlocked, message));
    }
    if is_blocked(rules, host, target.port()) {
        return Err(blocked(host));
    }
    if rules.blocked_ports.contains(&target.port()) {
        let message = format!("port {} is blocked by the network policy", target.port());
        return Err(EgressError::new(Reason::PortBlocked, message));
    }
    if rules.guard_metadata == Guard::On && names_metadata(host) {
        return Err(metadata(host));
    }
    let private = match rules.mode {
        Mode::Blocked | Mode::Strict => Guard::On,
        Mode::Open => rules.guard_private,
        Mode::Allowlist => listed(rules, target)?,
    };
    let admitted = Admitted { rules, target, listeners, private };
    if let TargetHost::Address(address) = host {
        admitted.judge_one(*address, Reason::LiteralPrivateIp)?;
    }
    Ok(admitted)
}

/// Whether the host is on the list, and if so, whether its addresses must be public.
fn listed(rules: &Rules, target: &Target) -> Result<Guard, EgressError> {
    let (host, port) = (target.host(), target.port());
    let mut covering = rules.hosts.iter().filter(|rule| rule.covers(host, port)).peekable();
    if covering.peek().is_some() {
        let is_named = covering.any(|rule| !rule.is_any());
        return Ok(if is_named { rules.guard_private } else { Guard::On });
    }
    let at_another_port = rules.for_names().hosts.iter().any(|rule| rule.covers(host, port));
    let message = if at_another_port {
        format!("host {} is in the allow list, but not with port {port}", quoted(&host.to_string()))
    } else {
        format!("host {} is not in the allow list; add it there", quoted(&host.to_string()))
    };
    Err(EgressError::new(Reason::HostNotInAllowlist, message))
}

impl Admitted<'_> {
    /// A literal is its own only address.
    pub fn judge_literal(&self, address: IpAddr) -> Result<Vec<JudgedAddr>, EgressError> {
        Ok(vec![self.judge_one(address, Reason::LiteralPrivateIp)?])
    }

    /// Judges all answers for a name. One bad answer refuses all: who mixes a private address with public ones hopes
    /// that we take the wrong one.
    pub fn judge_all(&self, answers: &[IpAddr]) -> Result<Vec<JudgedAddr>, EgressError> {
        if answers.is_empty() {
            let message = format!("host {} has no addresses", quoted(&self.target.host().to_string()));
            return Err(EgressError::new(Reason::DnsNoAddresses, message));
        }
        let mut judged: Vec<JudgedAddr> = Vec::with_capacity(answers.len());
        for answer in answers {
            let addr = self.judge_one(*answer, Reason::ResolvedPrivateIp)?;
            if !judged.contains(&addr) {
                judged.push(addr);
            }
        }
        Ok(judged)
    }

    /// The one maker of a judged address.
    fn judge_one(&self, address: IpAddr, reason: Reason) -> Result<JudgedAddr, EgressError> {
        let address = address.to_canonical();
        let (host, port) = (self.target.host(), self.target.port());
        let mut forms = [address, reached_address(address)].into_iter().map(TargetHost::Address);
        // `*` among the blocked hosts was judged by name already.
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

    /// Does the allow list name this private address? It names an address by its number, and the two loopback addresses by
    /// the name `localhost`.
    fn means(&self, address: IpAddr) -> bool {
        let host = self.target.host();
        let is_named = match host {
            TargetHost::Address(_) => true,
            TargetHost::Name(name) => name == "localhost" && LOCALHOST.contains(&address),
        };
        let mut hosts = self.rules.hosts.iter();
        is_named
            && self.rules.mode == Mode::Allowlist
            && hosts.any(|rule| rule.names_exactly(host, self.target.port()))
    }
}

fn is_blocked(rules: &Rules, host: &TargetHost, port: u16) -> bool {
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
    EgressError::new(Reason::HostBlocked, message)
}

fn metadata(host: &TargetHost) -> EgressError {
    let host = quoted(&host.to_string());
    let message =
        format!("host {host} is a cloud metadata endpoint; tools get credentials from their policy");
    EgressError::new(Reason::MetadataEndpoint, message)
}

fn gateway_listener(target: &Target) -> EgressError {
    let message =
        format!("{} leads to this gateway; no tool may call the gateway", quoted(&target.authority()));
    EgressError::new(Reason::GatewayListener, message)
}

fn private(host: &TargetHost, reason: Reason) -> EgressError {
    let quoted = quoted(&host.to_string());
    let message = match host {
        TargetHost::Address(address) => {
            let range = special_range(*address).map_or("", |row| row.name);
            let source = special_range(*address).map_or("", |row| row.source);
            format!(
                "address {quoted} is not public ({range}, {source}); name it in the allow list if it is meant"
            )
        }
        TargetHost::Name(_) => {
            format!(
                "host {quoted} resolves to an address that is not public; list the address if it is meant"
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
