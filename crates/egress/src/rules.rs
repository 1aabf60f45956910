//! Network rules: which hosts and ports may be reached. Plain data, filled in from the policy by the caller.

use std::net::IpAddr;

use url::Url;

use crate::{
    error::EgressError,
    judge,
    listeners::Listeners,
    target::{RequestTarget, TargetHost},
};

/// The hosts that one request may reach.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EgressRules {
    pub mode: EgressMode,
    /// Used in `Allowlist` mode only; an empty list allows nothing. An address in the list may be private. A name that
    /// resolves to a private address is refused.
    pub hosts: Vec<HostRule>,
    /// Refused in every mode, even if also allowed. A listed address is refused behind a name, too.
    pub blocked_hosts: Vec<HostRule>,
    pub blocked_ports: Vec<u16>,
    /// Refuses addresses outside the public internet. `Strict` mode and `*` in an allow list always refuse them.
    pub guard_private: Guard,
    /// Refuses cloud metadata endpoints, which hand out credentials, in every mode.
    pub guard_metadata: Guard,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum EgressMode {
    /// No host.
    Blocked,
    /// The listed hosts.
    Allowlist,
    /// Every public host.
    Strict,
    /// Every host.
    Open,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Guard {
    On,
    Off,
}

/// A host pattern, for one port or for all ports.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct HostRule {
    names: RuleNames,
    /// `None` means every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum RuleNames {
    Any,
    Exact(String),
    Below(String),
    Above(String),
}

impl EgressRules {
    /// Allows nothing; the starting point for building rules.
    pub fn blocked() -> Self {
        Self {
            mode: EgressMode::Blocked,
            hosts: Vec::new(),
            blocked_hosts: Vec::new(),
            blocked_ports: Vec::new(),
            guard_private: Guard::On,
            guard_metadata: Guard::On,
        }
    }

    /// Allows only the host of a URL that the operator configured: a collector, an issuer, a webhook. The host may be
    /// in a private network. Metadata endpoints stay refused.
    pub fn only(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Self {
            mode: EgressMode::Allowlist,
            hosts: vec![HostRule::exact(host)],
            guard_private: Guard::Off,
            ..Self::blocked()
        }
    }

    /// Checks a URL without network access. A request checks it again, then its addresses and the listeners of the
    /// gateway.
    pub fn judge_host(&self, url: &Url) -> Result<(), EgressError> {
        judge::admit(self, &RequestTarget::of(url.clone())?, &Listeners::of_this_process()).map(drop)
    }

    /// The same rules for a DNS question, which has no port.
    pub(crate) fn for_names(&self) -> Self {
        let any_port = |rule: &HostRule| rule.clone().at_port(None);
        Self {
            hosts: self.hosts.iter().map(any_port).collect(),
            blocked_hosts: self.blocked_hosts.iter().filter(|rule| rule.port.is_none()).cloned().collect(),
            blocked_ports: Vec::new(),
            ..self.clone()
        }
    }
}

impl HostRule {
    /// `*`: every host, with the checks of `Strict` mode.
    pub const ANY: Self = Self { names: RuleNames::Any, port: None };

    /// A name, or an address without brackets.
    pub const fn exact(host: String) -> Self {
        Self { names: RuleNames::Exact(host), port: None }
    }

    /// `*.example.com`: the name itself and all its subdomains.
    pub const fn below(name: String) -> Self {
        Self { names: RuleNames::Below(name), port: None }
    }

    /// `docs.*`: names that start with these labels.
    pub const fn above(name: String) -> Self {
        Self { names: RuleNames::Above(name), port: None }
    }

    /// The same hosts at this port only; `None` means every port.
    #[must_use]
    pub fn at_port(self, port: Option<u16>) -> Self {
        Self { port, ..self }
    }

    /// Whether the pattern is `*`, at any port. Such a rule does not name a host.
    pub(crate) fn is_any(&self) -> bool {
        self.names == RuleNames::Any
    }

    /// Whether the rule names exactly this host, without a wildcard.
    pub(crate) fn names_exactly(&self, host: &TargetHost, port: u16) -> bool {
        matches!(self.names, RuleNames::Exact(_)) && self.covers(host, port)
    }

    pub(crate) fn covers(&self, host: &TargetHost, port: u16) -> bool {
        self.port.is_none_or(|only| only == port) && self.names.cover(host)
    }
}

impl RuleNames {
    fn cover(&self, host: &TargetHost) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Exact(rule), TargetHost::Name(name)) => normal(rule) == *name,
            (Self::Exact(rule), TargetHost::Address(address)) => {
                rule.parse::<IpAddr>().is_ok_and(|named| named.to_canonical() == *address)
            }
            (Self::Below(rule), TargetHost::Name(name)) => {
                let suffix = normal(rule);
                let above = name.strip_suffix(&suffix);
                !suffix.is_empty() && above.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (Self::Above(rule), TargetHost::Name(name)) => {
                let prefix = normal(rule);
                let below = name.strip_prefix(&prefix);
                !prefix.is_empty() && below.is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
            }
            // Addresses have no labels, so `*.1.1` does not match 8.8.1.1.
            (Self::Below(_) | Self::Above(_), TargetHost::Address(_)) => false,
        }
    }
}

fn normal(rule: &str) -> String {
    rule.strip_suffix('.').unwrap_or(rule).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
