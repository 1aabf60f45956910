//! How does a command reach out, whatever it runs in? Through the gateway's own proxy, at sockets of the command's network.

use std::{ffi::OsString, net::Ipv6Addr};

use toolgate_egress::{
    Egress, EgressReason, EgressRules, Exchange, ExchangeKind, ExchangeOutcome, Proxy, ProxyLimits,
    ProxyReport, proxy_environment,
};
use toolgate_gate::{EffectEntry, EffectKind};
use toolgate_sandbox::{Network, ProxySockets};

use super::launch::{Order, Reached, Refused};

/// What an order may reach, settled before its command is made. Opened when there are sockets for it.
#[derive(Debug)]
pub struct Outlet(Option<Settled>);

#[derive(Debug)]
struct Settled {
    rules: EgressRules,
    egress: Egress,
    limits: ProxyLimits,
}

/// A way out for one run, or none. Dropping it ends everything that passes through it.
#[derive(Debug)]
pub struct OpenOutlet(Option<Proxy>);

impl Outlet {
    pub fn of(order: &Order, egress: Option<&Egress>) -> Result<Self, String> {
        let Some(way_out) = order.network.clone() else { return Ok(Self(None)) };
        let egress = egress.ok_or(
            "this gateway has no way out for commands; open its network, or take `network` from the tool",
        )?;
        let limits = ProxyLimits {
            lifetime: order.deadline,
            refused_methods: way_out.refused_methods,
            ..ProxyLimits::default()
        };
        let egress = egress.with_guard(way_out.guard);
        Ok(Self(Some(Settled { rules: way_out.rules, egress, limits })))
    }

    pub fn open(self, sockets: Option<ProxySockets>) -> Result<OpenOutlet, String> {
        let Some(Settled { rules, egress, limits }) = self.0 else { return Ok(OpenOutlet(None)) };
        let ProxySockets { http, dns } = sockets.ok_or("the jail has no sockets for its way out")?;
        let proxy = Proxy::serve(&egress, rules, limits, http, dns)
            .map_err(|error| format!("the way out cannot be served: {error}"))?;
        Ok(OpenOutlet(Some(proxy)))
    }
}

impl OpenOutlet {
    /// Tells what passed until it is asked, also when this is gone.
    pub fn witness(&self) -> impl Fn() -> ProxyReport + Send + use<> {
        let proxy = self.0.as_ref().map(Proxy::witness);
        move || proxy.as_ref().map(|passed| passed()).unwrap_or_default()
    }

    /// Closes it, and tells what passed.
    pub async fn finish(self) -> ProxyReport {
        match self.0 {
            Some(proxy) => proxy.finish().await,
            None => ProxyReport::default(),
        }
    }
}

/// The variables of an order, those that lead to the proxy included, and the network to which they belong.
pub fn environment(order: &Order) -> (Vec<(OsString, OsString)>, Network) {
    let mut env: Vec<(OsString, OsString)> =
        order.env.iter().map(|(name, value)| (name.into(), value.clone())).collect();
    if order.network.is_none() {
        return (env, Network::None);
    }
    // The last of two variables of one name would count for some programs and the first for others.
    let pointing = proxy_environment(PROXY_PORT);
    env.retain(|(name, _)| !pointing.iter().any(|(known, _)| name == known));
    env.extend(pointing.into_iter().map(|(name, value)| (name.into(), value.into())));
    (env, Network::Proxied { http_port: PROXY_PORT })
}

/// A record shows the first of them: what passed before what was refused, and questions for names last.
pub fn effects(passed: &ProxyReport) -> Reached {
    let mut exchanges: Vec<&Exchange> = passed.exchanges.iter().collect();
    exchanges.sort_by_key(|exchange| (exchange.kind == ExchangeKind::Dns, exchange.outcome.is_refusal()));
    Reached {
        told: exchanges.into_iter().map(effect).collect(),
        dropped: passed.dropped,
        dropped_bytes: passed.dropped_bytes,
    }
}

/// Adds what was refused on the way out, each once.
pub fn add_refusals(passed: &ProxyReport, refused: &mut Vec<Refused>) {
    for exchange in passed.exchanges.iter().filter(|exchange| exchange.outcome.is_refusal()) {
        let one = match exchange.outcome {
            ExchangeOutcome::Ended(EgressReason::ContentRefused) => {
                Refused::Other(format!("sending a secret to `{}`", target(exchange)))
            }
            ExchangeOutcome::Ended(EgressReason::MethodNeedsApproval) => Refused::Other(format!(
                "sending `{}` to `{}` without approval",
                exchange.method,
                target(exchange)
            )),
            ExchangeOutcome::Ended(reason) => Refused::Host { target: target(exchange), why: reason.into() },
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

/// Where the proxy listens; above those that only a privileged program could take.
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
    fn no_port_is_taken_for_a_part_of_an_address() {
        check("::1", Some(18_099), "[::1]:18099");
        check("2001:db8::7", Some(443), "[2001:db8::7]:443");
        check("127.0.0.1", Some(80), "127.0.0.1:80");
        check("example.com", Some(443), "example.com:443");
        check("::1", None, "::1");
    }
}
