//! Network access of commands in jails and containers, through the egress proxy on sockets in the command's network
//! namespace.

use std::{ffi::OsString, net::Ipv6Addr};

use toolgate_egress::{
    Egress, EgressReason, EgressRules, Exchange, ExchangeKind, ExchangeOutcome, Proxy, ProxyLimits,
    ProxyReport, proxy_environment,
};
use toolgate_gate::{EffectEntry, EffectKind};
use toolgate_sandbox::{Network, ProxySockets};

use super::order::{CommandOrder, NetworkEffects};
use crate::cli::report::denial::Denial;

/// The egress of an order, checked before its jail exists. The proxy opens when the jail has sockets.
#[derive(Debug)]
pub struct EgressPlan(Option<EgressSetup>);

#[derive(Debug)]
struct EgressSetup {
    rules: EgressRules,
    egress: Egress,
    limits: ProxyLimits,
}

/// The egress proxy of one run, if any. Dropping it closes all connections.
#[derive(Debug)]
pub struct ProxySession(Option<Proxy>);

impl EgressPlan {
    pub fn of(order: &CommandOrder, egress: Option<&Egress>) -> Result<Self, String> {
        let Some(grant) = order.network.clone() else { return Ok(Self(None)) };
        let egress = egress.ok_or(
            "this gateway has no egress for commands; enable its network, or remove `network` from the tool",
        )?;
        let limits = ProxyLimits {
            lifetime: order.deadline,
            refused_methods: grant.refused_methods,
            ..ProxyLimits::default()
        };
        let egress = egress.with_guard(grant.guard);
        Ok(Self(Some(EgressSetup { rules: grant.rules, egress, limits })))
    }

    pub fn open(self, sockets: Option<ProxySockets>) -> Result<ProxySession, String> {
        let Some(EgressSetup { rules, egress, limits }) = self.0 else { return Ok(ProxySession(None)) };
        let ProxySockets { http, dns } = sockets.ok_or("the jail has no sockets for the egress proxy")?;
        let proxy = Proxy::serve(&egress, rules, limits, http, dns)
            .map_err(|error| format!("cannot serve the egress proxy: {error}"))?;
        Ok(ProxySession(Some(proxy)))
    }
}

impl ProxySession {
    /// Reports the traffic so far, also after this is dropped.
    pub fn witness(&self) -> impl Fn() -> ProxyReport + Send + use<> {
        let proxy = self.0.as_ref().map(Proxy::witness);
        move || proxy.as_ref().map(|passed| passed()).unwrap_or_default()
    }

    /// Closes the proxy and returns its report.
    pub async fn finish(self) -> ProxyReport {
        match self.0 {
            Some(proxy) => proxy.finish().await,
            None => ProxyReport::default(),
        }
    }
}

/// The environment of an order with the proxy variables, and the matching network mode.
pub fn environment(order: &CommandOrder) -> (Vec<(OsString, OsString)>, Network) {
    let mut env: Vec<(OsString, OsString)> =
        order.env.iter().map(|(name, value)| (name.into(), value.clone())).collect();
    if order.network.is_none() {
        return (env, Network::None);
    }
    // Remove duplicates: some programs use the first of two equal variables, others the last.
    let pointing = proxy_environment(PROXY_PORT);
    env.retain(|(name, _)| !pointing.iter().any(|(known, _)| name == known));
    env.extend(pointing.into_iter().map(|(name, value)| (name.into(), value.into())));
    (env, Network::Proxied { http_port: PROXY_PORT })
}

/// The exchanges in the order of the journal, which lists the first: allowed ones before denied ones, DNS last.
pub fn effects(passed: &ProxyReport) -> NetworkEffects {
    let mut exchanges: Vec<&Exchange> = passed.exchanges.iter().collect();
    exchanges.sort_by_key(|exchange| (exchange.kind == ExchangeKind::Dns, exchange.outcome.is_refusal()));
    NetworkEffects {
        listed: exchanges.into_iter().map(effect).collect(),
        dropped: passed.dropped,
        dropped_bytes: passed.dropped_bytes,
    }
}

/// Adds the denials of the proxy, each once.
pub fn add_refusals(passed: &ProxyReport, refused: &mut Vec<Denial>) {
    for exchange in passed.exchanges.iter().filter(|exchange| exchange.outcome.is_refusal()) {
        let one = match exchange.outcome {
            ExchangeOutcome::Ended(EgressReason::ContentRefused) => {
                Denial::Other(format!("sending a secret to `{}`", target(exchange)))
            }
            ExchangeOutcome::Ended(EgressReason::MethodNeedsApproval) => Denial::Other(format!(
                "sending `{}` to `{}` without approval",
                exchange.method,
                target(exchange)
            )),
            ExchangeOutcome::Ended(reason) => Denial::Host { target: target(exchange), why: reason.into() },
            _ => continue,
        };
        if !refused.iter().any(|known| known.describe() == one.describe()) {
            refused.push(one);
        }
    }
}

fn effect(exchange: &Exchange) -> EffectEntry {
    EffectEntry {
        kind: EffectKind::Fetch,
        what: format!("{} {}", exchange.kind.word(), exchange.method).trim_end().to_owned(),
        target: target(exchange),
        to: None,
        outcome: exchange.outcome.code().to_owned(),
        bytes: exchange.bytes(),
        elapsed: exchange.elapsed,
    }
}

fn target(exchange: &Exchange) -> String {
    let host = &exchange.host;
    match exchange.port {
        Some(port) if host.parse::<Ipv6Addr>().is_ok() => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.clone(),
    }
}

/// The port of the proxy: unprivileged.
pub const PROXY_PORT: u16 = 3128;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(host: &str, port: Option<u16>, expect: &str) {
        let exchange = Exchange {
            kind: ExchangeKind::Connect,
            method: "CONNECT".to_owned(),
            host: host.to_owned(),
            port,
            outcome: ExchangeOutcome::Ended(EgressReason::HostNotInAllowlist),
            bytes_up: 0,
            bytes_down: 0,
            elapsed: Duration::ZERO,
        };
        assert_eq!(effect(&exchange).target, expect);
    }

    #[test]
    fn port_is_not_read_as_part_of_an_address() {
        check("::1", Some(18_099), "[::1]:18099");
        check("2001:db8::7", Some(443), "[2001:db8::7]:443");
        check("127.0.0.1", Some(80), "127.0.0.1:80");
        check("example.com", Some(443), "example.com:443");
        check("::1", None, "::1");
    }
}
