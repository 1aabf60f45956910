//! Which hosts may be reached at all? Plain data; whoever knows the policy fills it in.

use std::net::IpAddr;

use url::Url;

use crate::{
    error::EgressError,
    judge,
    listeners::Listeners,
    target::{Target, TargetHost},
};

/// What one request may reach.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rules {
    pub mode: Mode,
    /// Read in `Allowlist` mode only; empty reaches nothing. An address in the list may be private. A name that resolves to a
    /// private address is refused.
    pub hosts: Vec<HostRule>,
    /// Refused in every mode, also where allowed. An address listed here is refused behind a name too.
    pub blocked_hosts: Vec<HostRule>,
    pub blocked_ports: Vec<u16>,
    /// Refuse addresses off the public internet. `Strict` mode, and `*` in an allow list, guard in any case.
    pub guard_private: Guard,
    /// Refuse the endpoints where clouds hand out credentials, in every mode.
    pub guard_metadata: Guard,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Mode {
    /// Nothing.
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

/// Hosts, at one port or at every port.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct HostRule {
    names: RuleNames,
    /// `None` is every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum RuleNames {
    Any,
    Exact(String),
    Below(String),
    Above(String),
}

impl Rules {
    /// Nothing is reachable; the start for whoever opens one thing after another.
    pub fn blocked() -> Self {
        Self {
            mode: Mode::Blocked,
            hosts: Vec::new(),
            blocked_hosts: Vec::new(),
            blocked_ports: Vec::new(),
            guard_private: Guard::On,
            guard_metadata: Guard::On,
        }
    }

    /// The one host of a URL that the operator named: a collector, an issuer, a webhook. Such hosts stand in private
    /// networks as well; endpoints of metadata stay refused.
    pub fn only(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Self {
            mode: Mode::Allowlist,
            hosts: vec![HostRule::exact(host)],
            guard_private: Guard::Off,
            ..Self::blocked()
        }
    }

    /// Judges a URL without asking the network. A request judges it again, and then its addresses. The listeners of the
    /// gateway are judged only then.
    pub fn judge_host(&self, url: &Url) -> Result<(), EgressError> {
        judge::admit(self, &Target::of(url.clone())?, &Listeners::of_this_process()).map(drop)
    }

    /// The same rules for a question about a name, which has no port.
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
    /// `*`: every host, judged as in `Strict` mode.
    pub const ANY: Self = Self { names: RuleNames::Any, port: None };

    /// A name, or an address without brackets.
    pub const fn exact(host: String) -> Self {
        Self { names: RuleNames::Exact(host), port: None }
    }

    /// `*.example.com`: the name itself and everything below it.
    pub const fn below(name: String) -> Self {
        Self { names: RuleNames::Below(name), port: None }
    }

    /// `docs.*`: names whose first labels are these.
    pub const fn above(name: String) -> Self {
        Self { names: RuleNames::Above(name), port: None }
    }

    /// The same hosts at this port only; at every port where `None`.
    #[must_use]
    pub fn at_port(self, port: Option<u16>) -> Self {
        Self { port, ..self }
    }

    /// Is it `*`, at whatever port? Such a rule names no host.
    pub(crate) fn is_any(&self) -> bool {
        self.names == RuleNames::Any
    }

    /// Does it name exactly this host, and not by a wildcard?
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
            // `*.1.1` is no way to name 8.8.1.1: addresses have no labels.
            (Self::Below(_) | Self::Above(_), TargetHost::Address(_)) => false,
        }
    }
}

fn normal(rule: &str) -> String {
    rule.strip_suffix('.').unwrap_or(rule).to_ascii_lowercase()
}

#[cfg(test)]
mod tests;
