//! Which hosts may be reached at all? Plain data; whoever knows the policy fills it in.

use std::net::IpAddr;

use url::Url;

use crate::{
    error::EgressError,
    judge,
    target::{Target, TargetHost},
};

/// What one request may reach.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Rules {
    pub mode: Mode,
    /// Read in `Allowlist` mode only; empty reaches nothing.
    pub hosts: Vec<HostRule>,
    /// Refused in every mode, also where allowed. An address listed here is refused behind a name too.
    pub blocked_hosts: Vec<HostRule>,
    pub blocked_ports: Vec<u16>,
    /// Refuse addresses off the public internet. `Strict` mode, and `*` in an allow list, guard in any case.
    pub guard_private: Guard,
    /// Refuse the endpoints where clouds hand out credentials, in every mode.
    pub guard_metadata: Guard,
    /// Addresses that the allow list names as such: they may be private. A name that resolves to one may not.
    pub literal_addresses: Vec<IpAddr>,
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

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum HostRule {
    /// `*`: every host, judged as in `Strict` mode.
    Any,
    /// A name, or an address without brackets.
    Exact(String),
    /// `*.example.com`: the name itself and everything below it.
    Below(String),
    /// `docs.*`: names whose first labels are these.
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
            literal_addresses: Vec::new(),
        }
    }

    /// The one host of a URL that the operator named: a collector, an issuer, a webhook. Such hosts stand in private
    /// networks as well; endpoints of metadata stay refused.
    pub fn only(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Self {
            mode: Mode::Allowlist,
            literal_addresses: host.parse().ok().into_iter().collect(),
            hosts: vec![HostRule::Exact(host)],
            guard_private: Guard::Off,
            ..Self::blocked()
        }
    }

    /// Everything that can be said about a URL without asking the network. A request asks again, and then judges
    /// the addresses too.
    pub fn judge_host(&self, url: &Url) -> Result<(), EgressError> {
        judge::admit(self, &Target::of(url.clone())?).map(drop)
    }

    pub(crate) fn allows_localhost_by_name(&self) -> bool {
        let localhost = TargetHost::Name("localhost".into());
        let named = |rule: &HostRule| matches!(rule, HostRule::Exact(_)) && rule.covers(&localhost);
        self.mode == Mode::Allowlist && self.hosts.iter().any(named)
    }
}

impl HostRule {
    pub(crate) fn covers(&self, host: &TargetHost) -> bool {
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
