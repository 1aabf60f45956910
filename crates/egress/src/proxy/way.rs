//! What do all exchanges of a jail share? The rules, one judge, and one purse of bytes and names.

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
    ledger::{Entry, Ledger},
    limits::ProxyLimits,
};
use crate::{
    error::{EgressError, Reason, quoted},
    fetch::Egress,
    guard::Content,
    judge::JudgedAddr,
    request::meant_methods,
    rules::Rules,
    target::{Target, TargetHost},
};

pub struct Way {
    pub egress: Egress,
    pub limits: ProxyLimits,
    pub ledger: Arc<Ledger>,
    pub rules: Rules,
    /// A question for a name has no port, so no port can refuse it.
    pub rules_of_names: Rules,
    up_left: AtomicU64,
    down_left: AtomicU64,
    names: Mutex<HashSet<String>>,
}

impl Way {
    pub fn new(egress: Egress, rules: Rules, limits: ProxyLimits, ledger: Arc<Ledger>) -> Self {
        Self {
            up_left: AtomicU64::new(limits.bytes_up),
            down_left: AtomicU64::new(limits.bytes_down),
            rules_of_names: rules.for_names(),
            names: Mutex::default(),
            egress,
            limits,
            ledger,
            rules,
        }
    }

    /// The order of every request: the rules, then one resolution, then a judgement of every address.
    pub async fn judged_addresses(
        &self,
        rules: &Rules,
        target: &Target,
    ) -> Result<Vec<JudgedAddr>, EgressError> {
        let admitted = self.egress.admit(rules, target)?;
        if let TargetHost::Name(name) = target.host() {
            self.count_name(name)?;
        }
        self.egress.addresses(&admitted, target).await
    }

    /// Of a tunnel and of a question only the name is seen, and a name can carry something out.
    pub async fn judge_name(&self, target: &Target, written: &str) -> Result<(), EgressError> {
        let content = || Content {
            host: target.host().to_string(),
            url: Some(target.authority()),
            written: vec![written.to_owned()],
            headers: HeaderMap::new(),
            body: Bytes::new(),
        };
        self.egress.judge_content(content).await
    }

    /// What a server may take for the method counts as well.
    pub fn judge_method(&self, method: &str, headers: &HeaderMap) -> Result<(), EgressError> {
        // What is not text is no method.
        let headers = headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
        let is_refused =
            |method: &&str| self.limits.refused_methods.iter().any(|one| one.eq_ignore_ascii_case(method));
        let Some(method) = meant_methods(method, headers).find(is_refused) else { return Ok(()) };
        let method = quoted(method);
        let message = format!(
            "{method} needs a person's approval; take the method from an argument called `method`, so that it can be asked for"
        );
        Err(EgressError::new(Reason::MethodNeedsApproval, message))
    }

    /// A method that cannot be seen may be any.
    pub fn judge_hidden_methods(&self) -> Result<(), EgressError> {
        if self.limits.refused_methods.is_empty() {
            return Ok(());
        }
        let methods = self.limits.refused_methods.join(", ");
        let message = format!(
            "{} need a person's approval, and within a tunnel nobody sees the method; nobody was asked before this run",
            quoted(&methods)
        );
        Err(EgressError::new(Reason::MethodNeedsApproval, message))
    }

    /// Counted before they pass: what does not fit does not leave.
    pub fn count_up(&self, entry: &Entry, bytes: usize) -> Result<(), EgressError> {
        let bytes = take(&self.up_left, bytes, "sent")?;
        entry.add_up(bytes);
        Ok(())
    }

    pub fn count_down(&self, entry: &Entry, bytes: usize) -> Result<(), EgressError> {
        let bytes = take(&self.down_left, bytes, "received")?;
        entry.add_down(bytes);
        Ok(())
    }

    fn count_name(&self, name: &str) -> Result<(), EgressError> {
        if name.len() > self.limits.name_bytes {
            let (name, most) = (quoted(name), self.limits.name_bytes);
            let message = format!("name {name} is longer than {most} characters; use a shorter one");
            return Err(EgressError::new(Reason::TooManyNames, message));
        }
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.contains(name) {
            return Ok(());
        }
        if names.len() >= self.limits.names {
            let most = self.limits.names;
            let message = format!("this run asked for more than {most} different hosts; use fewer");
            return Err(EgressError::new(Reason::TooManyNames, message));
        }
        names.insert(name.to_owned());
        Ok(())
    }
}

fn take(left: &AtomicU64, bytes: usize, verb: &str) -> Result<u64, EgressError> {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
    let spent = |_| {
        let message = format!("this run has {verb} all it may; transfer less");
        EgressError::new(Reason::TrafficLimitReached, message)
    };
    taken.map(|_| bytes).map_err(spent)
}
