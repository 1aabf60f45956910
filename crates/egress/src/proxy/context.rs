//! State shared by all exchanges of a proxy: rules, counters and limits.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use http::HeaderMap;

use super::{
    ledger::{ExchangeEntry, ExchangeLedger},
    limits::ProxyLimits,
};
use crate::{
    error::{EgressError, EgressReason, quoted},
    fetch::Egress,
    guard::Content,
    judge::JudgedAddr,
    request::effective_methods,
    rules::EgressRules,
    target::{RequestTarget, TargetHost},
};

pub struct ProxyContext {
    pub egress: Egress,
    pub limits: ProxyLimits,
    pub ledger: Arc<ExchangeLedger>,
    pub rules: EgressRules,
    /// A DNS question has no port, so port rules do not apply.
    pub dns_rules: EgressRules,
    up_left: AtomicU64,
    down_left: AtomicU64,
    names: Mutex<HashSet<String>>,
}

impl ProxyContext {
    pub fn new(egress: Egress, rules: EgressRules, limits: ProxyLimits, ledger: Arc<ExchangeLedger>) -> Self {
        Self {
            up_left: AtomicU64::new(limits.bytes_up),
            down_left: AtomicU64::new(limits.bytes_down),
            dns_rules: rules.for_names(),
            names: Mutex::default(),
            egress,
            limits,
            ledger,
            rules,
        }
    }

    /// Checks the rules, resolves once and checks every address, in this order.
    pub async fn judged_addresses(
        &self,
        rules: &EgressRules,
        target: &RequestTarget,
    ) -> Result<Vec<JudgedAddr>, EgressError> {
        let admitted = self.egress.admit(rules, target)?;
        if let TargetHost::Name(name) = target.host() {
            self.count_name(name)?;
        }
        self.egress.addresses(&admitted, target).await
    }

    /// Lets the guard check a name. The name is the only visible part of a tunnel or a DNS question, and it can leak
    /// data.
    pub async fn judge_name(&self, target: &RequestTarget, written: &str) -> Result<(), EgressError> {
        let content = || Content {
            host: target.host().to_string(),
            url: Some(target.authority()),
            written: vec![written.to_owned()],
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        self.egress.judge_content(content).await
    }

    /// Also checks methods in override headers, which a server may use instead.
    pub fn judge_method(&self, method: &str, headers: &HeaderMap) -> Result<(), EgressError> {
        // A value that is not text cannot be a method.
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let is_refused =
            |method: &&str| self.limits.refused_methods.iter().any(|one| one.eq_ignore_ascii_case(method));
        let Some(method) = effective_methods(method, headers).find(is_refused) else { return Ok(()) };
        let method = quoted(method);
        let message = format!(
            "{method} needs approval; take the method from an argument called `method`, which lets the gateway ask for approval"
        );
        Err(EgressError::new(EgressReason::MethodNeedsApproval, message))
    }

    /// Refuses tunnels if any method needs approval, because the proxy cannot see the method inside a tunnel.
    pub fn check_tunnel_methods(&self) -> Result<(), EgressError> {
        if self.limits.refused_methods.is_empty() {
            return Ok(());
        }
        let methods = self.limits.refused_methods.join(", ");
        let message = format!(
            "{} need approval, and the proxy cannot see the method inside a tunnel; this run has no approval",
            quoted(&methods)
        );
        Err(EgressError::new(EgressReason::MethodNeedsApproval, message))
    }

    /// Counts bytes before they are sent; bytes beyond the limit are not sent.
    pub fn count_up(&self, entry: &ExchangeEntry, bytes: usize) -> Result<(), EgressError> {
        let bytes = take(&self.up_left, bytes, "sent")?;
        entry.add_up(bytes);
        Ok(())
    }

    pub fn count_down(&self, entry: &ExchangeEntry, bytes: usize) -> Result<(), EgressError> {
        let bytes = take(&self.down_left, bytes, "received")?;
        entry.add_down(bytes);
        Ok(())
    }

    fn count_name(&self, name: &str) -> Result<(), EgressError> {
        if name.len() > self.limits.name_bytes {
            let (name, most) = (quoted(name), self.limits.name_bytes);
            let message = format!("host name {name} is longer than {most} characters; use a shorter one");
            return Err(EgressError::new(EgressReason::TooManyNames, message));
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(name) {
            return Ok(());
        }
        if names.len() >= self.limits.names {
            let most = self.limits.names;
            let message = format!("this run looked up more than {most} different hosts; use fewer");
            return Err(EgressError::new(EgressReason::TooManyNames, message));
        }
        names.insert(name.to_owned());
        Ok(())
    }
}

fn take(left: &AtomicU64, bytes: usize, verb: &str) -> Result<u64, EgressError> {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
    let exceeded = |_| {
        let message = format!("this run reached its limit of {verb} bytes; transfer less");
        EgressError::new(EgressReason::TrafficLimitReached, message)
    };
    taken.map(|_| bytes).map_err(exceeded)
}
